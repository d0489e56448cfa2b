import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.judges.build.tiny_judges import TinyJudge

from gradewire_models.errors import ModelNotBuiltError, VerificationError
from gradewire_models.judges.build import graph
from gradewire_models.judges.build.install import build_judge
from gradewire_models.judges.build.shapes import Sizes
from gradewire_models.judges.build.verify import check_processor, verify_judge
from gradewire_models.judges.build.weights import JudgeWeights
from gradewire_models.processor import computes_int8


@pytest.fixture
def copy(judge_repository: Path, tmp_path: Path) -> Path:
    shutil.copytree(judge_repository / "tiny-qwen2", tmp_path / "tiny-qwen2")
    return tmp_path


def failed(repository: Path) -> list[str]:
    return [check.name for check in verify_judge(repository, "tiny-qwen2", None) if not check.passed]


@pytest.mark.parametrize("path", ["int8/model.onnx", "int8/model.onnx.data", "tokenizer.json"])
def test_a_flipped_bit_is_found(copy: Path, path: str) -> None:
    file = copy / "tiny-qwen2" / path
    content = bytearray(file.read_bytes())
    content[-10] ^= 4
    file.write_bytes(content)
    (check,) = verify_judge(copy, "tiny-qwen2", None)
    assert not check.passed
    assert f"{path} has SHA-256" in check.detail


def test_golden_logits_that_are_gone_are_missed(copy: Path) -> None:
    (copy / "tiny-qwen2/int8/golden.npz").write_bytes(b"x")
    assert failed(copy) == ["files"]


def test_a_judge_of_another_digest_than_the_catalogs_is_told(copy: Path, qwen2: TinyJudge) -> None:
    checks = verify_judge(copy, "tiny-qwen2", replace(qwen2.judge, digests={"int8": "0" * 64}))
    assert [check.name for check in checks if not check.passed] == ["catalog"]


def test_a_graph_that_computes_something_else_is_not_put_in_place(
    qwen2: TinyJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotary pairs the wrong way round: everything runs, and the judge rambles."""
    right = graph.write_layer

    def wrong(nodes, index, weights, hidden, angles, sizes: Sizes) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - as write_layer
        return right(nodes, index, weights, hidden, angles, replace(sizes, architecture="llama"))

    monkeypatch.setattr(graph, "write_layer", wrong)
    with pytest.raises(VerificationError, match=r"logits: lowest correlation with float32 0\.[0-8]"):
        build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    assert [path.name for path in tmp_path.iterdir()] == [".tiny-qwen2.lock"]


def test_the_gguf_form_is_checked_by_its_bytes(qwen2: TinyJudge, tmp_path: Path) -> None:
    build_judge(qwen2.judge, tmp_path, forms=("gguf",), wheels=qwen2.wheels)
    assert [check.name for check in verify_judge(tmp_path, "tiny-qwen2", qwen2.judge)] == ["files", "catalog"]
    path = tmp_path / "tiny-qwen2/model.gguf"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert failed(tmp_path) == ["files"]


def test_nothing_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelNotBuiltError, match="The catalog of judges has qwen2"):
        verify_judge(tmp_path, "tiny-qwen2", None)


def test_8_bit_products_are_exact_on_x86_with_and_without_vnni() -> None:
    if computes_int8():
        assert check_processor().passed


def test_sizes_are_read_from_the_file(qwen2: TinyJudge) -> None:
    sizes = JudgeWeights(qwen2.gguf).sizes
    assert (sizes.norm_epsilon, sizes.rope_base, sizes.head_dim) == (pytest.approx(1e-6), 10_000, 16)
