"""Nothing that is not the model's own vectors gets past the engine, whatever Triton answers with."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from tests.support.fakes.fake_triton import FakeTriton, Tensors

from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.settings.engine import EngineConfig, TritonConfig

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
async def fake(minilm: Path) -> AsyncIterator[FakeTriton]:
    async with FakeTriton(minilm / MODEL) as server:
        yield server


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
async def engine(fake: FakeTriton, minilm: Path, registry: CollectorRegistry) -> AsyncIterator[Backends]:
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(fake.url, poll_s=0.05, timeout_s=5))
    opened = await Backends.open(config, registry)
    assert opened.health().models == {MODEL: True}
    fake.requests.clear()
    fake.asked.clear()
    fake.deadlines_s.clear()
    fake.queue_timeouts_us.clear()
    yield opened
    await opened.close()


async def ask(engine: Backends, *texts: str, deadline_s: float | None = None) -> dict[int, Failure]:
    reply = await engine.ports.embeddings.embed("", texts, [Tier.WINDOW] * len(texts), deadline_s=deadline_s)
    return dict(reply.failures)


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda outputs: {key: value for key, value in outputs.items() if key != name}


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Tensors], Tensors]:  # type: ignore[type-arg]
    return lambda outputs: {**outputs, name: change(outputs[name])}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (changed("sentence_embedding", lambda v: v[:, :-1].copy()), "wrong_answer"),
        (changed("sentence_embedding", lambda v: v[:1].copy()), "wrong_answer"),
        (changed("sentence_embedding", lambda v: v.astype(np.float64)), "wrong_answer"),
        (changed("model_fingerprint", lambda v: v[:1].copy()), "wrong_answer"),
        (without("sentence_embedding"), "wrong_answer"),
        (without("model_fingerprint"), "wrong_answer"),
        (changed("model_fingerprint", lambda v: v + 1), "replaced"),
        (changed("model_fingerprint", lambda v: np.where(np.arange(len(v))[:, None], v, 0)), "replaced"),
    ],
)
async def test_an_answer_that_is_not_the_models_is_never_used(
    engine: Backends,
    fake: FakeTriton,
    registry: CollectorRegistry,
    change: Callable[[Tensors], Tensors],
    kind: str,
) -> None:
    fake.change = change
    failures = await ask(engine, "one text", "two texts")
    assert len(failures) == 2
    status = Status.UNAVAILABLE if kind == "replaced" else Status.INTERNAL
    assert {failure.status for failure in failures.values()} == {status}
    labels = {"model": MODEL, "kind": kind}
    assert registry.get_sample_value("gradewire_engine_triton_inference_errors_total", labels)
    fake.change = lambda outputs: outputs
    async with asyncio.timeout(20):
        while failures := await ask(engine, "one text"):
            assert {failure.status for failure in failures.values()} <= {status, Status.UNAVAILABLE}
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
async def test_a_row_that_is_no_vector_fails_alone_and_is_not_kept(
    engine: Backends, fake: FakeTriton, bad: float
) -> None:
    def spoil(vectors: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        spoilt = vectors.copy()
        spoilt[0] = bad
        return spoilt

    fake.change = changed("sentence_embedding", spoil)
    failures = await ask(engine, "the text", "the teks")
    assert [failure.status for failure in failures.values()] == [Status.INTERNAL]
    fake.change = lambda outputs: outputs
    assert not await ask(engine, "the text", "the teks")


async def test_only_what_is_asked_for_is_requested(engine: Backends, fake: FakeTriton) -> None:
    assert not await ask(engine, "a sentence")
    await engine.ports.embeddings.embed_tokens("", ["with tokens"], [Tier.WINDOW])
    await asyncio.gather(
        *(engine.ports.embeddings.embed_tokens("", ["of two layers"], [Tier.WINDOW], layer=layer) for layer in (4, 6))
    )
    assert all(request["input_ids"].shape[1] % 8 == 0 for request in fake.requests)
    always = ["sentence_embedding", "model_fingerprint"]
    assert fake.asked == [
        always,
        [*always, "token_embeddings"],
        [*always, "token_embeddings_layer_4", "token_embeddings"],
    ]


async def test_token_vectors_of_another_shape_are_never_used(engine: Backends, fake: FakeTriton) -> None:
    fake.change = changed("token_embeddings_layer_4", lambda v: v[:, :-1].copy())
    (item,) = (await engine.ports.embeddings.embed_tokens("", ["cut short"], [Tier.WINDOW], layer=4)).items
    assert isinstance(item, Failure)


async def test_deadlines_reach_triton_and_its_queue(engine: Backends, fake: FakeTriton) -> None:
    assert not await ask(engine, "soon", deadline_s=time.monotonic() + 2)
    assert not await ask(engine, "whenever")
    assert 0 < fake.deadlines_s[0] < 3 < fake.deadlines_s[1] < 6
    assert 0 < fake.queue_timeouts_us[0] <= 2_000_000 < fake.queue_timeouts_us[1] <= 5_000_000


async def test_a_passed_deadline_is_a_timeout_and_cancels_the_inference(engine: Backends, fake: FakeTriton) -> None:
    fake.gate.clear()
    failures = await ask(engine, "too slow", deadline_s=time.monotonic() + 0.5)  # long enough to be sent
    assert [failure.status for failure in failures.values()] == [Status.TIMEOUT]
    async with asyncio.timeout(10):
        while not fake.cancelled:  # noqa: ASYNC110 - the other side's count has no event
            await asyncio.sleep(0.01)
    assert engine.health().models == {MODEL: True}, "the caller's haste is not Triton's fault"


async def test_an_inference_is_cancelled_once_nobody_waits_for_any_of_its_texts(
    engine: Backends, fake: FakeTriton
) -> None:
    fake.gate.clear()
    first = asyncio.create_task(ask(engine, "mine", "ours"))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(ask(engine, "ours"))
    await asyncio.sleep(0.05)
    assert len(fake.requests) == 1
    first.cancel()
    await asyncio.sleep(0.2)
    assert fake.cancelled == 0
    fake.gate.set()
    assert not await second
    fake.gate.clear()
    third = asyncio.create_task(ask(engine, "mine alone"))
    await asyncio.sleep(0.05)
    third.cancel()
    async with asyncio.timeout(10):
        while not fake.cancelled:  # noqa: ASYNC110 - the other side's count has no event
            await asyncio.sleep(0.01)


async def test_what_is_in_memory_is_answered_while_triton_fails(engine: Backends, fake: FakeTriton) -> None:
    assert not await ask(engine, "known")
    fake.error = (grpc.StatusCode.INTERNAL, "gone")
    for number in range(4):
        await ask(engine, f"new {number}")
    reply = await engine.ports.embeddings.embed("", ["known"], [Tier.WINDOW])
    assert not reply.failures
    assert reply.sources[0] == AnswerSource.MEMORY


async def test_a_full_queue_says_so_and_leaves_the_breaker_closed(engine: Backends, fake: FakeTriton) -> None:
    fake.error = (grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size")
    for number in range(5):
        failures = await ask(engine, f"text {number}")
        assert "queue is full; try again later" in failures[0].message
    assert engine.health().models == {MODEL: True}


async def test_a_graph_that_is_not_what_its_description_says_is_named_and_not_used(
    engine: Backends, fake: FakeTriton
) -> None:
    fake.change = changed("model_fingerprint", lambda v: v + 1)
    assert (await ask(engine, "a text"))[0].status is Status.UNAVAILABLE
    async with asyncio.timeout(20):
        while "does not match its description" not in engine.health().troubles.get(MODEL, ""):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    expected = int(fake.config.parameters["gradewire.fingerprint"].string_value)
    trouble = engine.health().troubles[MODEL]
    assert str(expected) in trouble
    assert str(expected + 1) in trouble
    refused = engine.ports.encoders.status("")
    assert isinstance(refused, Failure)
    assert refused.message == trouble


async def test_a_description_that_differs_in_triton_is_refused_with_both_named(fake: FakeTriton, minilm: Path) -> None:
    fake.config.output[0].dims[0] = 768
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(fake.url, poll_s=0.05))
    engine = await Backends.open(config, CollectorRegistry())
    health = engine.health()
    assert health.models == {MODEL: False}
    assert "TYPE_FP32[768] in Triton, but TYPE_FP32[384]" in health.troubles[MODEL]
    assert (await ask(engine, "a text"))[0].status is Status.MODEL_UNAVAILABLE
    fake.config.output[0].dims[0] = 384
    async with asyncio.timeout(20):
        while not engine.health().models[MODEL]:  # noqa: ASYNC110 - only its state says so
            await asyncio.sleep(0.01)
    assert not await ask(engine, "a text")
    await engine.close()


async def test_a_model_that_only_a_caller_asked_for_does_not_make_the_engine_sick(
    fake: FakeTriton, minilm: Path
) -> None:
    fake.config.output[0].dims[0] = 768
    engine = await Backends.open(EngineConfig(minilm, triton=TritonConfig(fake.url)), CollectorRegistry())
    assert (await ask(engine, "a text"))[0].status is Status.MODEL_UNAVAILABLE
    health = engine.health()
    assert health.models == {}
    assert "TYPE_FP32[768] in Triton" in health.degraded[0]
    assert isinstance(await engine.load(""), Failure)
    health = engine.health()
    assert health.models == {MODEL: False}
    assert health.degraded == ()
    await engine.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Key and certificate of 127.0.0.1, which is its own authority."""
    directory = tmp_path_factory.mktemp("certificate")
    key, cert = directory / "key.pem", directory / "cert.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=triton"),
        *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


async def test_encryption_both_ways_and_a_token(certificate: tuple[Path, Path], minilm: Path) -> None:
    key, cert = certificate
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), cert.read_bytes())], cert.read_bytes(), require_client_auth=True
    )
    async with FakeTriton(minilm / MODEL, credentials) as fake:
        known = TritonConfig(f"grpcs://{fake.url}", tls_ca=cert, tls_cert=cert, tls_key=key, token="right")  # noqa: S106 - the test's own
        for triton, well in ((known, True), (replace(known, tls_cert=None, tls_key=None), False)):
            engine = await Backends.open(EngineConfig(minilm, preload=("",), triton=triton), CollectorRegistry())
            assert engine.health().models == {MODEL: well}
            assert ("cannot be reached" in engine.health().troubles.get(MODEL, "")) != well
            await engine.close()
        assert set(fake.tokens) == {"Bearer right"}


async def test_a_certificate_that_is_not_there_is_named(minilm: Path, tmp_path: Path) -> None:
    triton = TritonConfig("grpcs://127.0.0.1:1", tls_ca=tmp_path / "none.pem")
    with pytest.raises(OSError, match=r"none\.pem"):
        await Backends.open(EngineConfig(minilm, triton=triton), CollectorRegistry())
