"""8-bit graphs that choose windows: close to fp32, the same bytes each time, and never half written."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from gradewire_models.bf16 import pad
from gradewire_models.build.verify import open_session
from gradewire_models.build.window_graph import main, window_graph, write_window_graph
from gradewire_models.errors import BuildError
from gradewire_models.processor import has_vnni
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS, SENTENCE_OUTPUT
from gradewire_models.repository.window_graphs import COSINE_ERROR, UNFINISHED, find_graph, remove_leftovers

needs_vnni = pytest.mark.skipif(not has_vnni(), reason="without VNNI, 8-bit sums may saturate")


@needs_vnni
@pytest.mark.parametrize(("name", "most"), [("tiny-bert", 0.1), ("tiny-mpnet", 1)])  # drawn weights, one of them unruly
def test_vectors_are_off_by_what_was_measured(tiny_repository: Path, tmp_path: Path, name: str, most: float) -> None:
    model = load_built(tiny_repository, name)
    path = write_window_graph(model, tmp_path)
    session, exact = open_session(path), open_session(model.onnx_path)
    rng = np.random.default_rng(3)
    ids, mask = pad([np.array([2, *rng.integers(4, 60, length), 3]) for length in (1, 2, 3, 5, 8, 13, 40)])
    found, expected = (
        each.run([SENTENCE_OUTPUT], {INPUT_IDS: ids, ATTENTION_MASK: mask})[0] for each in (session, exact)
    )
    measured = float(session.get_modelmeta().custom_metadata_map[COSINE_ERROR])
    assert 0 < np.abs((found - expected) @ expected.T).max() < 2 * measured
    assert measured < most
    assert [output.name for output in session.get_outputs()] == [SENTENCE_OUTPUT]


def test_the_graph_is_smaller_and_has_no_product_in_fp32(tiny_repository: Path) -> None:
    model = load_built(tiny_repository, "tiny-bert")
    proto = onnx.load(model.onnx_path)
    before = len([node for node in proto.graph.node if node.op_type == "Gemm"])
    window_graph(proto)
    kinds = [node.op_type for node in proto.graph.node]
    assert kinds.count("DynamicQuantizeMatMul") == before > 0
    assert "Gemm" not in kinds
    assert proto.ByteSize() < model.onnx_path.stat().st_size


def test_a_model_has_one_file_however_often_it_is_written(tiny_repository: Path, tmp_path: Path) -> None:
    model = load_built(tiny_repository, "tiny-bert")
    assert find_graph(tmp_path, model) is None
    main([str(tiny_repository), "tiny-bert", str(tmp_path)])
    first = find_graph(tmp_path, model)
    assert first is not None
    assert write_window_graph(model, tmp_path) == first
    assert list(tmp_path.iterdir()) == [first]
    assert find_graph(tmp_path, load_built(tiny_repository, "tiny-mpnet")) is None, "of another model"


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
def test_a_damaged_file_is_removed(tiny_repository: Path, tmp_path: Path, damage: str) -> None:
    model = load_built(tiny_repository, "tiny-bert")
    path = write_window_graph(model, tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"flipped": bytes(content), "truncated": content[:-9], "empty": b""}[damage])
    assert find_graph(tmp_path, model) is None
    assert not path.exists()


def test_leftovers_are_files_of_older_versions_and_unfinished_ones(tiny_repository: Path, tmp_path: Path) -> None:
    model, other = (load_built(tiny_repository, name) for name in ("tiny-bert", "tiny-mpnet"))
    kept = [write_window_graph(model, tmp_path), tmp_path / f"{other.digest[:32]}-0-0.onnx"]
    for path in (kept[1], tmp_path / f"{model.digest[:32]}-0-0.onnx", tmp_path / f"{UNFINISHED}x"):
        path.write_bytes(b"")
    remove_leftovers(tmp_path, model)
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_what_cannot_be_moved_into_place_leaves_nothing(
    tiny_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_window_graph(load_built(tiny_repository, "tiny-bert"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_graph_without_products_is_refused() -> None:
    inputs = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    output = helper.make_tensor_value_info(SENTENCE_OUTPUT, TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Abs", ["x"], [SENTENCE_OUTPUT])], "none", [inputs], [output])
    with pytest.raises(BuildError, match="no product"):
        window_graph(helper.make_model(graph))
