"""Evidence of illness leads to the right end: who is told what, when the breaker opens, when a model is loaded anew."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry
from tests.support.fakes.fake_triton import FakeTriton

from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import Tier
from gradewire_server.settings.engine import EngineConfig, TritonConfig

pytestmark = pytest.mark.alone

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def minilm(minilm: Path, tmp_path: Path) -> Path:
    """The encoder without its grader, which the fake Triton lacks: every call to load a model is about the encoder."""
    repository = tmp_path / "alone"
    repository.mkdir()
    (repository / MODEL).symlink_to(minilm / MODEL)
    return repository


@pytest.fixture
async def fake(minilm: Path) -> AsyncIterator[FakeTriton]:
    async with FakeTriton(minilm / MODEL) as server:
        yield server


@pytest.fixture
async def engine(fake: FakeTriton, minilm: Path, registry: CollectorRegistry) -> AsyncIterator[Backends]:
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(fake.url, poll_s=0.05, timeout_s=5))
    opened = await Backends.open(config, registry)
    assert opened.health().models == {MODEL: True}
    fake.requests.clear()
    yield opened
    await opened.close()


async def ask(engine: Backends, *texts: str, deadline_s: float | None = None) -> dict[int, Failure]:
    reply = await engine.ports.embeddings.embed("", texts, [Tier.WINDOW] * len(texts), deadline_s=deadline_s)
    return dict(reply.failures)


async def test_failures_open_the_breaker_then_calls_fail_at_once_and_a_probe_closes_it(
    engine: Backends, fake: FakeTriton, registry: CollectorRegistry
) -> None:
    fake.error = (grpc.StatusCode.INTERNAL, "Stub process is not healthy at /secret")
    for number in range(3):
        failures = await ask(engine, f"text {number}")
        assert [failure.status for failure in failures.values()] == [Status.UNAVAILABLE]
        assert "try again" in failures[0].message
        assert "secret" not in failures[0].message
    health = engine.health()
    assert health.models == {MODEL: False}
    assert "cannot compute" in health.troubles[MODEL]
    assert registry.get_sample_value(
        "gradewire_engine_triton_breaker_state", {"model": MODEL, "state": "open"}
    ) or registry.get_sample_value("gradewire_engine_triton_breaker_state", {"model": MODEL, "state": "half_open"})
    before = len(fake.requests)
    assert len(await ask(engine, *(f"more {number}" for number in range(20)))) == 20
    assert all(len(request["input_ids"]) == 1 for request in fake.requests[before:]), "nothing but probes"
    async with asyncio.timeout(20):
        while "load" not in fake.loads:  # noqa: ASYNC110 - the other side's list has no event
            await asyncio.sleep(0.01)
    assert fake.loads[:2] == ["unload", "load"]
    fake.error = None
    async with asyncio.timeout(20):
        while not engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    assert not await ask(engine, "well again")


async def test_a_model_that_fails_already_at_start_is_mended_too(fake: FakeTriton, minilm: Path) -> None:
    fake.error = (grpc.StatusCode.INTERNAL, "Stub process is not healthy")
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(fake.url, poll_s=0.05))
    engine = await Backends.open(config, CollectorRegistry())
    assert engine.health().models == {MODEL: False}
    async with asyncio.timeout(20):
        while fake.loads != ["unload", "load"]:  # noqa: ASYNC110 - the other side's list has no event
            await asyncio.sleep(0.01)
    fake.error = None
    async with asyncio.timeout(20):
        while not engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    await engine.close()


class HoldingTriton(FakeTriton):
    """Describes its model at once to the first caller, and to later ones when `go_on` is set."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.descriptions = 0
        self.checked, self.go_on = asyncio.Event(), asyncio.Event()

    async def ModelConfig(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        self.descriptions += 1
        if self.descriptions > 1:
            self.checked.set()
            await self.go_on.wait()
        return await super().ModelConfig(request, context)


async def test_a_check_that_began_during_the_first_load_does_not_load_again(minilm: Path) -> None:
    async with HoldingTriton(minilm / MODEL) as fake:
        fake.gate.clear()
        config = EngineConfig(minilm, preload=("",), triton=TritonConfig(fake.url, poll_s=0.05, timeout_s=30))
        opening = asyncio.create_task(Backends.open(config, CollectorRegistry()))
        async with asyncio.timeout(20):
            await fake.checked.wait()
        fake.gate.set()
        engine = await opening
        requests = len(fake.requests)
        fake.go_on.set()
        async with asyncio.timeout(20):
            while fake.descriptions < 4:  # noqa: ASYNC110 - the other side's count has no event
                await asyncio.sleep(0.01)
        assert len(fake.requests) == requests, "nothing was loaded or probed again"
        await engine.close()


async def test_one_failure_is_no_reason_to_unload_a_model(engine: Backends, fake: FakeTriton) -> None:
    fake.error = (grpc.StatusCode.INTERNAL, "a hiccup")
    assert await ask(engine, "a text")
    fake.error = None
    await asyncio.sleep(0.3)
    assert not await ask(engine, "a text")
    assert fake.loads == []


async def test_a_model_that_breaks_on_disk_is_called_broken_by_health_and_calls_and_logged_once(
    fake: FakeTriton, minilm: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(minilm / MODEL, tmp_path / "models" / MODEL, ignore=shutil.ignore_patterns("*.onnx"))
    tokenizer = tmp_path / "models" / MODEL / "tokenizer.json"
    whole = tokenizer.read_bytes()
    config = EngineConfig(tmp_path / "models", preload=("",), triton=TritonConfig(fake.url, poll_s=0.05))
    engine = await Backends.open(config, CollectorRegistry())
    tokenizer.write_bytes(whole[:500])
    right = fake.config.parameters["gradewire.digest"].string_value
    fake.config.parameters["gradewire.digest"].string_value = "0" * 64  # so that it is opened anew
    caplog.clear()
    async with asyncio.timeout(20):
        while engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    for number in range(5):
        refused = (await ask(engine, f"a text {number}"))[0]
        status = engine.ports.encoders.status("")
        assert isinstance(status, Failure)
        assert "is broken. Run gradewire models verify" in status.message
        assert refused == status
        assert engine.health().troubles[MODEL] == status.message
        assert engine.health().models == {MODEL: False}
        await asyncio.sleep(0.1)
    said = [record.getMessage() for record in caplog.records if "broken" in record.getMessage()]
    assert 1 <= len(said) == len(set(said)), said
    tokenizer.write_bytes(whole)
    fake.config.parameters["gradewire.digest"].string_value = right
    async with asyncio.timeout(20):
        while not engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    assert engine.health().troubles == {}
    assert not await ask(engine, "a text")
    await engine.close()


async def test_a_model_that_hangs_is_loaded_anew_and_one_that_is_busy_with_others_is_not(
    engine: Backends, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradewire_server.encoders.triton_model.PROBE_TIMEOUT_S", 0.5)
    fake.gate.clear()
    others = asyncio.create_task(_count_up(fake))
    statuses: list[Status] = []
    async with asyncio.timeout(20):
        while engine.health().models[MODEL]:
            # More than once: on a busy machine the deadline of one may pass before it is sent, and tells nothing then.
            failures = await ask(engine, "waits", deadline_s=time.monotonic() + 0.3)
            statuses += [failure.status for failure in failures.values()]
            await asyncio.sleep(0.6)
    assert statuses[0] == Status.TIMEOUT
    assert set(statuses) <= {Status.TIMEOUT, Status.UNAVAILABLE}, "refused at once as soon as it is known to hang"
    assert "did not answer in time" in (await ask(engine, "refused at once"))[0].message
    await asyncio.sleep(4)  # five probes
    assert fake.loads == []
    others.cancel()
    async with asyncio.timeout(20):
        while fake.loads != ["unload", "load"]:  # noqa: ASYNC110 - the other side's list has no event
            await asyncio.sleep(0.01)
    fake.gate.set()
    async with asyncio.timeout(20):
        while not engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    assert not await ask(engine, "well again")


async def _count_up(fake: FakeTriton) -> None:
    while True:
        fake.computed += 1
        await asyncio.sleep(0.05)


async def test_a_model_that_somebody_else_loads_or_has_loaded_is_left_alone(engine: Backends, fake: FakeTriton) -> None:
    fake.error = (grpc.StatusCode.INTERNAL, "Stub process is not healthy")
    fake.state = "LOADING"
    fake.computed = 100
    await ask(engine, "a text")
    await asyncio.sleep(4.5)
    assert fake.loads == []
    fake.state = "READY"
    async with asyncio.timeout(20):
        while "load" not in fake.loads:  # noqa: ASYNC110 - the other side's list has no event
            await asyncio.sleep(0.01)
    assert fake.loads == ["unload", "load"]


async def test_a_run_that_fails_once_is_sent_again(engine: Backends, fake: FakeTriton) -> None:
    for number in range(5):
        fake.errors = [(grpc.StatusCode.INTERNAL, "Stub process is not healthy")]
        assert not await ask(engine, f"a text {number}")
    assert engine.health().models == {MODEL: True}


@pytest.mark.parametrize("given_s", [3.0, 60.0])
async def test_a_queue_that_allows_less_than_the_caller_is_overload(
    engine: Backends, fake: FakeTriton, given_s: float
) -> None:
    fake.error = (grpc.StatusCode.UNAVAILABLE, "Request timeout expired")
    for number in range(5):
        failures = await ask(engine, f"a text {number}", deadline_s=time.monotonic() + given_s)
        assert "waited too long in Triton's queue; try again later" in failures[0].message
    assert len(fake.requests) == 5
    assert engine.health().models == {MODEL: True}
