"""Constants of a graph in a file beside it."""

import hashlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.publish import WEIGHTS_SHA256, add_fingerprint
from gradewire_models.errors import BuildError, ExportError
from gradewire_models.export.graph import check_file
from gradewire_models.export.weights_file import is_external, require_space, take_out_weights
from gradewire_models.repository.config import INPUT_IDS, WEIGHTS_FILE
from gradewire_models.runtime import onnxruntime

DIMS = 40


def graph(*tables: Any) -> onnx.ModelProto:
    """A sum of rows of all tables, by id."""
    constants = [numpy_helper.from_array(np.asarray(table, np.float32), f"t{n}") for n, table in enumerate(tables)]
    nodes = [helper.make_node("Gather", [each.name, INPUT_IDS], [f"rows_{each.name}"]) for each in constants]
    nodes.append(helper.make_node("Sum", [node.output[0] for node in nodes], ["sum"]))
    inputs = [helper.make_tensor_value_info(INPUT_IDS, TensorProto.INT64, ["batch", "tokens"])]
    outputs = [helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["batch", "tokens", DIMS])]
    made = helper.make_graph(nodes, "sum", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(path: Path, ids: list[int]) -> Any:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["sum"], {INPUT_IDS: np.array([ids], np.int64)})[0][0]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(0, 9))
def test_a_graph_with_its_file_computes_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    tables = [random.normal(size=(count, DIMS)).astype(np.float32) for count in rows]
    folder = tmp_path_factory.mktemp("made")
    model = graph(*tables)
    record = take_out_weights(model, folder, folder)
    content = (folder / WEIGHTS_FILE).read_bytes()
    assert (record.bytes, record.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert [is_external(tensor) for tensor in model.graph.initializer] == [table.nbytes > 1000 for table in tables]
    for tensor in filter(is_external, model.graph.initializer):
        assert int({entry.key: entry.value for entry in tensor.external_data}["offset"]) % 4096 == 0
    onnx.save(model, folder / "model.onnx")
    check_file(folder / "model.onnx")
    np.testing.assert_allclose(run(folder / "model.onnx", [0]), sum(table[:1] for table in tables), rtol=1e-5)


def test_constants_in_other_files_are_copied(tmp_path: Path) -> None:
    table = np.arange(50 * DIMS, dtype=np.float32).reshape(50, DIMS)
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    onnx.save(
        graph(table, table[::-1]), source / "e.onnx", save_as_external_data=True, location="all", size_threshold=0
    )
    model = onnx.load(source / "e.onnx", load_external_data=False)
    record = take_out_weights(model, source, target)
    shutil.rmtree(source)
    again = graph(table, table[::-1])
    assert take_out_weights(again, tmp_path, tmp_path) == record
    onnx.save(model, target / "model.onnx")
    np.testing.assert_array_equal(run(target / "model.onnx", [3]), (table[3] + table[-4])[None])


def test_constants_of_nodes_return_to_the_graph(tmp_path: Path) -> None:
    model = graph(np.ones((50, DIMS)))
    (gather, total) = model.graph.node
    value = numpy_helper.from_array(np.full(DIMS, 2.0, np.float32))
    total.input.append("two")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["two"], value=value))
    assert gather.op_type == "Gather"
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    onnx.save(
        model,
        source / "e.onnx",
        save_as_external_data=True,
        location="all",
        size_threshold=0,
        convert_attribute=True,
    )
    read = onnx.load(source / "e.onnx", load_external_data=False)
    assert is_external(read.graph.node[0].attribute[0].t)
    take_out_weights(read, source, target)
    shutil.rmtree(source)
    assert not is_external(read.graph.node[0].attribute[0].t)
    onnx.save(read, target / "model.onnx")
    check_file(target / "model.onnx")
    np.testing.assert_array_equal(run(target / "model.onnx", [3]), np.full((1, DIMS), 3.0))


def refer(location: str, length: int) -> onnx.ModelProto:
    model = graph(np.zeros((50, DIMS)))
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return model


def test_files_that_are_elsewhere_or_too_short_are_refused(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/short").write_bytes(bytes(10))
    (tmp_path / "outside").write_bytes(bytes(10))
    with pytest.raises(ExportError, match="weights outside its folder"):
        take_out_weights(refer("../outside", 10), tmp_path / "source", tmp_path)
    with pytest.raises(ExportError, match="the exported weights of t0 end too early"):
        take_out_weights(refer("short", 11), tmp_path / "source", tmp_path)


def test_a_fingerprint_needs_the_digest_of_the_weights(tmp_path: Path) -> None:
    tables = [np.full((50, DIMS), number) for number in (1.0, 2.0)]
    found = []
    for table in tables:
        model = graph(table)
        record = take_out_weights(model, tmp_path, tmp_path)
        with pytest.raises(ValueError, match="which its fingerprint would not cover"):
            add_fingerprint(model)
        helper.set_model_props(model, {WEIGHTS_SHA256: record.sha256})
        found.append(add_fingerprint(model).fingerprint)
    assert found[0] != found[1]


def test_an_invalid_file_is_refused(tmp_path: Path) -> None:
    model = graph(np.zeros((50, DIMS)))
    take_out_weights(model, tmp_path, tmp_path)
    onnx.save(model, tmp_path / "model.onnx")
    (tmp_path / WEIGHTS_FILE).unlink()
    with pytest.raises(ExportError, match="the exported graph is not valid"):
        check_file(tmp_path / "model.onnx")


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_too_little_space_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(10**11, 0, 6_500_000_000))
    require_space(tmp_path, 6_500_000_000, "big")
    with pytest.raises(BuildError, match=r"the export of big needs 6\.6 GB of disk in .*, but only 6\.5 GB are free"):
        require_space(tmp_path, 6_600_000_000, "big")
