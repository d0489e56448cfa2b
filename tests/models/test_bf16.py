"""Graphs in bf16: what a machine lacks is said, and a text's vector is the same alone and in any batch."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.models.build.quantized_models import build_beside_base, variant
from tests.support.examples import example_count
from tests.support.models.bf16 import needs_bf16
from tests.support.models.tiny_models import MAX_TOKENS, WORDS, Package

from gradewire_models.bf16 import Bf16Graph, Bf16UnavailableError, arithmetic, bf16_instruction, pad, padded_length
from gradewire_models.build.quality import AnswerRow, AnswerRows, compare_with_base
from gradewire_models.build.verify import open_session, run, verify_built
from gradewire_models.repository.built import load_built

NAME = "tiny-bert-bf16"
ROWS = AnswerRows((AnswerRow("w1", ("w2 w3", "w4"), "w5 w6 w7"), AnswerRow("w1", ("w8",), "w9")), "two rows", "0" * 64)
OUTPUTS = ("sentence_embedding", "token_embeddings")


@pytest.fixture(scope="module")
def repository(bert: Package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny base and its variant in bf16."""
    path = tmp_path_factory.mktemp("bf16")
    build_beside_base(bert, variant(bert, "bf16", {}), path)
    return path


@pytest.fixture(scope="module")
def graph(repository: Path) -> Bf16Graph:
    return Bf16Graph(load_built(repository, NAME).onnx_path, runs_at_once=2)


def ids_of(length: int, seed: int) -> NDArray[np.int64]:
    drawn = np.random.default_rng(seed).integers(4, len(WORDS), length)
    return np.array([2, *drawn, 3], np.int64)


def refuse(message: str) -> Any:
    def unavailable(*_: object) -> str:
        raise Bf16UnavailableError(message)

    return unavailable


@given(tokens=st.integers(1, 512))
def test_a_text_is_padded_to_the_next_multiple_of_8(tokens: int) -> None:
    assert 0 <= padded_length(tokens) - tokens < 8
    assert padded_length(tokens) % 8 == 0


@needs_bf16
@given(lengths=st.lists(st.integers(1, MAX_TOKENS - 2), min_size=2, max_size=9), seed=st.integers(0, 99))
@settings(max_examples=example_count(8), deadline=None)
def test_a_text_has_the_same_vectors_alone_and_in_any_batch(graph: Bf16Graph, lengths: list[int], seed: int) -> None:
    texts = [ids_of(length, seed + place) for place, length in enumerate(lengths)]
    together, tokens = graph.run(OUTPUTS, texts)
    for place, text in enumerate(texts):
        sentence, own = graph.run(OUTPUTS, [text])
        assert np.array_equal(sentence[0], together[place])
        assert np.array_equal(own[0], tokens[place, : len(text)])


@needs_bf16
def test_vectors_are_nearly_those_of_fp32(graph: Bf16Graph, repository: Path) -> None:
    texts = [ids_of(length, length) for length in (1, 6, 7, 40, 148)]
    found = graph.run(OUTPUTS, texts)
    expected = run(open_session(load_built(repository, "tiny-bert").onnx_path), OUTPUTS, *pad(texts))
    for ours, exact in zip(found, expected, strict=True):
        assert ours.shape == exact.shape
        for place, text in enumerate(texts):
            ends = slice(len(text)) if ours.ndim == 3 else slice(None)
            assert np.abs(ours[place][ends] - exact[place][ends]).max() < 0.1
    assert not np.array_equal(found[0], expected[0]), "computed in fp32"


@needs_bf16
def test_a_variant_is_checked_in_bf16(repository: Path) -> None:
    checks = {check.name: check for check in verify_built(repository, NAME, None)}
    assert f"computed in bf16 ({arithmetic()})" in checks["files"].detail
    assert "0.0e+00" in checks["batch invariance"].detail
    assert "lowest cosine 0.99" in checks["sentence vectors"].detail


def test_where_bf16_cannot_be_had_a_check_says_so_and_runs_in_fp32(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("bf16", "build.verify"):
        monkeypatch.setattr(f"gradewire_models.{module}.bf16_instruction", refuse("no such instruction"))
    checks = verify_built(repository, NAME, None)
    assert all(check.passed for check in checks[:4])
    assert "computed in fp32, which says nothing about bf16: no such instruction" in checks[0].detail
    (*_, last) = compare_with_base(repository, NAME, "tiny-bert", ROWS)
    assert "largest change 0.0000" in last.detail
    assert "computed in fp32" in last.detail


def test_a_processor_without_the_instruction_is_told(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags\t\t: fpu avx2 avx512f avx512_vnni\n")
    with pytest.raises(Bf16UnavailableError, match="none of amx_bf16, avx512_bf16"):
        bf16_instruction(info)
    info.write_text("processor : 0\nflags\t\t: fpu avx512f avx512_bf16\n")
    assert bf16_instruction(info) == "avx512_bf16"
    info.write_text("processor : 0\nflags\t\t: fpu avx512f avx512_bf16 amx_bf16\n")
    assert bf16_instruction(info) == "amx_bf16"
    with pytest.raises(Bf16UnavailableError, match="cannot read"):
        bf16_instruction(tmp_path / "missing")


def test_without_openvino_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import_ = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "openvino":
            raise ImportError(name)
        return import_(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Bf16UnavailableError, match=r"pip install 'gradewire\[openvino\]'"):
        bf16_instruction()


@needs_bf16
def test_a_graph_that_cannot_be_compiled_is_told_without_paths(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no graph")
    with pytest.raises(Bf16UnavailableError, match=r"cannot compile the graph$") as caught:
        Bf16Graph(path)
    assert isinstance(caught.value.__cause__, RuntimeError)
