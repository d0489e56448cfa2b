"""Windows chosen in bf16: the scores of fp32, names of their own in caches, and fp32 where bf16 cannot be had."""

import builtins
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.conftest import OpenBackends
from tests.support.examples import example_count

from gradewire import Scorer
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.local.bf16_session import Bf16UnavailableError, check_bf16
from gradewire_server.settings.compute import ComputeConfig

BF16 = ComputeConfig(workers=1, lone_run_threads=1, window_choice="bf16")
SAME_SCORE = 2e-4
TEXT = "paris the capital of france 1912 thirteen red sofa kitten harbour not is zoë treaty signed in june"
WORDS = st.sampled_from(TEXT.split())


def has_bf16() -> bool:
    try:
        check_bf16()
    except Bf16UnavailableError:
        return False
    return True


needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no instruction for bf16")


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


@given(
    predictions=st.lists(st.lists(WORDS, min_size=1, max_size=40).map(" ".join), min_size=1, max_size=3),
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


async def test_without_the_instruction_the_server_goes_on_in_fp32_and_says_so(
    open_backends: OpenBackends, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise Bf16UnavailableError("this processor has none of amx_bf16, avx512_bf16")

    monkeypatch.setattr("gradewire_server.encoders.local.bf16_session.check_bf16", refuse)
    with caplog.at_level(logging.WARNING):
        engine = await open_backends(compute=BF16)
    assert [each.getMessage() for each in caplog.records if "chosen in fp32, not in bf16" in each.getMessage()]
    assert engine.ports.encoders.statuses()[0].metadata.rough_cosine_error is None
    reply = await engine.ports.embeddings.embed_roughly("", ["a text"], [Tier.WINDOW])
    assert reply.values.shape == (1, 384)
    assert not reply.failures


def test_a_processor_without_the_instruction_is_told(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags\t\t: fpu avx2 avx512f avx512_vnni\n")
    with pytest.raises(Bf16UnavailableError, match="none of amx_bf16, avx512_bf16"):
        check_bf16(info)
    info.write_text("processor : 0\nflags\t\t: fpu avx512f avx512_bf16\n")
    check_bf16(info)
    with pytest.raises(Bf16UnavailableError, match="cannot be read"):
        check_bf16(tmp_path / "missing")


def test_without_openvino_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import_ = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "openvino":
            raise ImportError(name)
        return import_(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Bf16UnavailableError, match=r"pip install 'gradewire\[openvino\]'"):
        check_bf16()
