"""The files that make a built judge a Triton model."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.judges.build.conftest import judge_repository, qwen2, tiny_judges
from tests.models.judges.build.tiny_judges import TinyJudge

from gradewire_models.errors import VerificationError
from gradewire_models.judges.build import padded_graph
from gradewire_models.judges.build.install import build_judge
from gradewire_models.judges.build.padded_layers import PaddedNodes
from gradewire_models.judges.build.shapes import LayerWeights, Sizes
from gradewire_models.judges.description import read_description
from gradewire_models.judges.repository import load_judge
from gradewire_models.judges.triton_files import write_triton_files
from gradewire_models.repository.config import read_config
from gradewire_models.repository.serving import Copies

__all__ = ["judge_repository", "qwen2", "tiny_judges"]  # fixtures


@pytest.fixture
def judge(judge_repository: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judge_repository / "tiny-qwen2", tmp_path / "tiny-qwen2"))


def renew(judge: Path, copies: Copies | None = None) -> bool:
    return write_triton_files(judge, read_description(judge), None, copies)


def test_a_build_writes_what_triton_needs_and_nothing_twice(judge: Path) -> None:
    config, own = read_config(judge / "config.pbtxt")
    assert (config.backend, config.name, config.max_batch_size) == ("python", "tiny-qwen2", 8)
    assert (own["kind"], own["form"], own["vocabulary"]) == ("judge", "int8", "263")
    assert own["digest"] == load_judge(judge.parent, "tiny-qwen2").digests["int8"]
    assert (judge / "1/model.py").is_file()
    assert (judge / "1/gradewire_models/judges/cores/int8.py").is_file()
    assert not renew(judge)


@pytest.mark.parametrize("path", ["1/model.py", "1/gradewire_models/runtime.py", "config.pbtxt"])
def test_a_file_of_an_older_gradewire_is_replaced(judge: Path, path: str) -> None:
    content = (judge / path).read_bytes()
    (judge / path).unlink()
    assert renew(judge)
    assert (judge / path).read_bytes() == content


def test_the_operators_copies_and_threads_stay(judge: Path) -> None:
    assert renew(judge, Copies(instances=2, threads=3))
    assert not renew(judge)
    config, own = read_config(judge / "config.pbtxt")
    assert (config.instance_group[0].count, own["threads"]) == (2, "3")


def test_a_second_build_only_renews_them(qwen2: TinyJudge, judge: Path) -> None:
    (judge / "1/model.py").write_text("old")
    result = build_judge(qwen2.judge, judge.parent, forms=("int8",), wheels=judge / "no wheels")
    assert (result.built, result.renewed) == (False, True)
    assert not build_judge(qwen2.judge, judge.parent, wheels=judge / "no wheels").renewed


def test_a_judge_for_llama_cpp_alone_gets_no_files(judge: Path) -> None:
    described = read_description(judge)
    only_gguf = replace(described, forms={"gguf": described.forms["int8"]}, numeric_classes={"gguf": "x"})
    (judge / "config.pbtxt").unlink()
    assert not write_triton_files(judge, only_gguf)
    assert not (judge / "config.pbtxt").exists()


def test_forms_for_gpus_are_built_checked_and_served(qwen2: TinyJudge, tmp_path: Path) -> None:
    result = build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    graph = (result.judge.directory / "int8/model.onnx").stat().st_ino
    result = build_judge(qwen2.judge, tmp_path, forms=("fp16",), wheels=qwen2.wheels)
    assert result.judge.forms == ("int8", "fp16")
    assert (result.judge.directory / "int8/model.onnx").stat().st_ino == graph  # taken over, not built again
    assert {"logits of fp16", "batches of fp16"} <= {check.name for check in result.checks}
    config, own = read_config(result.judge.directory / "config.pbtxt")
    assert (own["form"], own["numeric_class"], own["graph"]) == ("fp16", "fp16-cuda", "fp16/model.onnx")
    assert (config.instance_group[0].kind, config.max_batch_size) == (1, 64)
    assert own["digest"] == result.judge.digests["fp16"]
    assert own["digest"] != result.judge.digests["int8"]
    back = build_judge(qwen2.judge, tmp_path, forms=("int8",), wheels=qwen2.wheels)
    assert (back.built, back.renewed) == (False, True)
    assert read_config(result.judge.directory / "config.pbtxt")[1]["form"] == "int8"


def test_a_graph_for_gpus_that_computes_something_else_is_not_put_in_place(
    qwen2: TinyJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotary pairs the wrong way round: everything runs, and the judge rambles."""
    right = padded_graph.write_layer

    def wrong(nodes: PaddedNodes, index: int, weights: LayerWeights, hidden: str, sizes: Sizes) -> str:
        return right(nodes, index, weights, hidden, replace(sizes, architecture="llama"))

    monkeypatch.setattr(padded_graph, "write_layer", wrong)
    with pytest.raises(VerificationError, match=r"logits of fp16: lowest correlation with float32 0\.[0-8]"):
        build_judge(qwen2.judge, tmp_path, forms=("fp16",), wheels=qwen2.wheels)
    assert [path.name for path in tmp_path.iterdir()] == [".tiny-qwen2.lock"]
