"""bf16: windows chosen in it and scored in fp32, models that compute in it, and what is said where it is not there."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.models.build.quantized_models import build_beside_base, variant
from tests.server.conftest import OpenBackends
from tests.support.examples import example_count
from tests.support.models.bf16 import needs_bf16
from tests.support.models.tiny_models import make_package

from gradewire import Scorer
from gradewire_models.bf16 import BF16_CLASS, Bf16UnavailableError
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, DiskConfig, EngineConfig

BF16 = ComputeConfig(workers=1, lone_run_threads=1, window_choice="bf16")
VARIANT = "tiny-bert-bf16"
SAME_SCORE = 2e-4
TEXT = "paris the capital of france 1912 thirteen red sofa kitten harbour not is zoë treaty signed in june"
WORDS = st.sampled_from(TEXT.split())


@pytest.fixture(scope="module")
def scorers(minilm: Path) -> Iterator[dict[str, Scorer]]:
    """One scorer for each way of choosing windows."""
    given_ = {"model_repository": minilm, "disk_directory": "", "workers": 1, "lone_run_threads": 1}
    opened = {choice: Scorer.embedded(window_choice=choice, **given_) for choice in ("fp32", "bf16")}
    yield opened
    for scorer in opened.values():
        scorer.close()


def scores(scorer: Scorer, items: list[dict[str, Any]]) -> list[tuple[float | None, str]]:
    found = []
    for item in scorer.score(items, "smile:v1"):
        (result,) = item.scores.values()
        found.append((result.score, result.status.name))
    return found


# Without bf16 this compares fp32 with fp32; test_local_window_choice.py has vectors with an error on any processor.
@given(
    predictions=st.lists(st.lists(WORDS, min_size=1, max_size=40).map(" ".join), min_size=1, max_size=2),
    references=st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3),
)
@settings(max_examples=example_count(5), deadline=None)
def test_scores_are_those_of_fp32(scorers: dict[str, Scorer], predictions: list[str], references: list[str]) -> None:
    items = [{"id": str(n), "references": references, "prediction": each} for n, each in enumerate(predictions)]
    expected = scores(scorers["fp32"], items)
    for turn in ("cold", "warm"):
        found = scores(scorers["bf16"], items)
        assert [status for _, status in found] == [status for _, status in expected], turn
        assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=SAME_SCORE)


@needs_bf16
async def test_approximate_vectors_have_entries_of_their_own(open_backends: OpenBackends) -> None:
    engine = await open_backends(compute=BF16)
    embeddings = engine.ports.embeddings
    texts = [f"window number {number}" for number in range(9)]
    tiers = [Tier.WINDOW] * len(texts)
    rough = await embeddings.embed_roughly("", texts, tiers)
    exact = await embeddings.embed("", texts, tiers)
    assert set(rough.sources) == set(exact.sources) == {AnswerSource.COMPUTED}
    again = await embeddings.embed_roughly("", texts, tiers)
    assert set(again.sources) == {AnswerSource.MEMORY}
    assert np.array_equal(rough.values, again.values)
    plain = await open_backends()
    reply = await plain.ports.embeddings.embed("", texts, tiers)
    assert float(np.abs(exact.values - reply.values).max()) < 1e-5
    status = engine.ports.encoders.statuses()[0]
    bound = status.metadata.rough_cosine_error
    assert bound is not None
    error = float(np.abs((rough.values - exact.values) @ exact.values.T).max())
    assert 0 < error < bound < 0.05
    assert any("bf16" in remark for remark in status.remarks)


def refuse(*_: object) -> str:
    raise Bf16UnavailableError("this processor has no bf16 (none of amx_bf16, avx512_bf16)")


def fail(*_: object, **__: object) -> float:
    raise RuntimeError("Check 'false' failed at src/inference/src/cpp/core.cpp: /secret/model.onnx")


@pytest.mark.parametrize(
    ("patched", "by", "told"),
    [
        ("gradewire_models.bf16.bf16_instruction", refuse, "none of amx_bf16, avx512_bf16"),
        ("openvino.Core.compile_model", fail, "cannot compile the graph"),
        ("gradewire_server.encoders.local.Bf16Session", fail, "the first run failed"),
    ],
)
async def test_where_bf16_cannot_be_had_fp32_stays_and_health_says_so(
    open_backends: OpenBackends,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    patched: str,
    by: Callable[..., Any],
    told: str,
) -> None:
    if by is fail:
        monkeypatch.setattr("gradewire_models.bf16.bf16_instruction", lambda: "avx512_bf16")
    monkeypatch.setattr(patched, by)
    with caplog.at_level(logging.WARNING):
        engine = await open_backends(compute=BF16)
    status = engine.ports.encoders.statuses()[0]
    (degraded,) = engine.health().degraded
    assert degraded.startswith("windows of all-MiniLM-L6-v2 are chosen in fp32, not in bf16: ")
    assert told in degraded
    assert "/secret" not in degraded, "it goes to remote callers"
    assert degraded in status.remarks
    assert degraded in [each.getMessage() for each in caplog.records]
    assert engine.health().models == {"all-MiniLM-L6-v2": True, "grader-mini": True}
    assert status.metadata.rough_cosine_error is None
    texts, tiers = ["a text", "windows of it"], [Tier.WINDOW] * 2
    roughly = await engine.ports.embeddings.embed_roughly("", texts, tiers)
    exactly = await engine.ports.embeddings.embed("", texts, tiers)
    assert not roughly.failures
    assert np.array_equal(roughly.values, exactly.values)


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, and its variant in bf16."""
    path = tmp_path_factory.mktemp("variants")
    package = make_package(path / "package", "bert")
    build_beside_base(package, variant(package, "bf16", {}), path / "repository")
    return path / "repository"


async def open_variant(variants: Path, cache: CacheConfig | None = None) -> Backends:
    config = EngineConfig(variants, default_model=VARIANT, preload=("",), cache=cache or CacheConfig(), compute=BF16)
    return await Backends.open(config, CollectorRegistry())


@needs_bf16
async def test_a_variant_gives_a_text_one_vector_alone_and_beside_others(variants: Path, tmp_path: Path) -> None:
    texts = [" ".join(f"w{(number * 7 + place) % 60}" for place in range(number)) for number in range(1, 40)]
    tiers = [Tier.PREDICTION] * len(texts)
    together = await open_variant(variants, CacheConfig(disk=DiskConfig(tmp_path / "cache", 1 << 22, 1 << 22, 1 << 22)))
    cold = await together.ports.embeddings.embed("", texts, tiers)
    warm = await together.ports.embeddings.embed("", texts, tiers)
    status = together.ports.encoders.status("")
    assert not isinstance(status, Failure)
    assert (status.precision, status.metadata.rough_cosine_error) == (BF16_CLASS, None)
    await together.close()
    again = await open_variant(variants, CacheConfig(disk=DiskConfig(tmp_path / "cache", 1 << 22, 1 << 22, 1 << 22)))
    kept = await again.ports.embeddings.embed("", texts, tiers)
    await again.close()
    alone = await open_variant(variants)
    each = [await alone.ports.embeddings.embed("", [text], tiers[:1]) for text in reversed(texts)]
    exact = await alone.ports.embeddings.embed("tiny-bert", texts, tiers)
    await alone.close()
    assert set(kept.sources) == {AnswerSource.DISK}
    for values in (warm.values, kept.values, np.concatenate([reply.values for reply in each])[::-1]):
        assert np.array_equal(values, cold.values)
    assert 0 < float(np.abs(exact.values - cold.values).max()) < 0.1


@needs_bf16
async def test_another_processor_or_openvino_finds_no_vector_of_this_one(
    variants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CacheConfig(disk=DiskConfig(tmp_path / "cache", 1 << 22, 1 << 22, 1 << 22))
    for arithmetic, source in (("avx512_bf16, A", "COMPUTED"), ("avx512_bf16, A", "DISK"), ("amx_bf16, A", "COMPUTED")):
        monkeypatch.setattr("gradewire_server.encoders.local.arithmetic", lambda said=arithmetic: said)
        engine = await open_variant(variants, cache)
        reply = await engine.ports.embeddings.embed("", ["w1 w2"], [Tier.PREDICTION])
        await engine.close()
        assert reply.sources[0] == AnswerSource[source]


async def test_a_variant_is_refused_where_bf16_cannot_be_had(variants: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_models.bf16.bf16_instruction", refuse)
    engine = await open_variant(variants)
    assert engine.health().models == {VARIANT: False}
    reply = await engine.ports.embeddings.embed("", ["w1"], [Tier.PREDICTION])
    assert reply.failures[0].status is Status.MODEL_UNAVAILABLE
    assert (
        "this processor has no bf16 (none of amx_bf16, avx512_bf16). Use tiny-bert instead" in reply.failures[0].message
    )
    await engine.close()
