"""Write an encoder's graph in 8-bit integers, whose approximate vectors choose windows of long answers.

`python -m gradewire_models.build.window_graph REPOSITORY NAME FOLDER` writes the graph of a built model into a folder.
The server runs this program in a process of its own, whose memory is free again when it ends.

Activations have one scale for all texts of a run, so a text's vector depends on the other texts. Scores therefore never
come from this graph (docs/adr/0009-encoder-graphs.md).
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from gradewire_models.bf16 import pad
from gradewire_models.build.calibration_rows import calibration_texts, tokenize
from gradewire_models.build.quantize import CONTRIB_DOMAIN, GraphEditor
from gradewire_models.errors import BuildError
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS, SENTENCE_OUTPUT
from gradewire_models.repository.window_graphs import CHECKED_TEXTS, COSINE_ERROR, UNFINISHED, graph_name
from gradewire_models.runtime import cpu_session_options, onnxruntime

_LEVELS = 127
_LEAST_TABLE_ROWS = 4096
_TEXTS_A_RUN = 32
_TEXTS_APART = 5
_WINDOW_WORDS = (1, 2, 3, 5)


def window_graph(model: onnx.ModelProto) -> None:
    """Rewrite a float32 encoder in place: the sentence output alone, with 8-bit products and an 8-bit word table.

    Raises:
        BuildError: The graph has no product with constant weights.
    """
    _keep_output(model.graph, SENTENCE_OUTPUT)
    editor = GraphEditor(model)
    weights = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    products = 0
    for node in model.graph.node:
        shape = weights.get(node.input[1], ()) if node.op_type in {"Gemm", "MatMul"} else ()
        if len(shape) == len(("inputs", "outputs")) and not node.attribute:
            _write_product(editor, node, set(weights))
            products += 1
        elif node.op_type == "Gather" and _is_table(weights.get(node.input[0], ())):
            _write_table(editor, node)
        else:
            editor.new.nodes.append(node)
    if not products:
        raise BuildError("the graph has no product with constant float32 weights")
    editor.finish()


def _keep_output(graph: onnx.GraphProto, name: str) -> None:
    """Remove all outputs but one, and the nodes that only the others need."""
    needed, kept = {name}, []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input)
    outputs = [output for output in graph.output if output.name == name]
    del graph.node[:], graph.output[:]
    graph.node.extend(reversed(kept))
    graph.output.extend(outputs)


def _is_table(shape: Sequence[int]) -> bool:
    return len(shape) == len(("rows", "dims")) and shape[0] >= _LEAST_TABLE_ROWS


def _write_product(editor: GraphEditor, node: onnx.NodeProto, constants: set[str]) -> None:
    entering, weight_name, *added = node.input
    nodes = editor.new
    codes, steps = _quantize(editor.value(weight_name), axis=0)
    inputs = [
        entering,
        nodes.constant(f"{node.name}.codes", codes),
        nodes.constant(f"{node.name}.steps", steps),
        nodes.constant(f"{node.name}.zeros", np.zeros(len(steps), np.int8)),
    ]
    residual = [name for name in added if name not in constants]
    # The operator adds a bias, a vector, but no residual.
    product = f"{node.output[0]}.product" if residual else node.output[0]
    nodes.op(
        "DynamicQuantizeMatMul",
        *inputs,
        *(name for name in added if name not in residual),
        name=product,
        domain=CONTRIB_DOMAIN,
    )
    for name in residual:
        nodes.op("Add", product, name, name=node.output[0])


def _write_table(editor: GraphEditor, node: onnx.NodeProto) -> None:
    nodes, name, rows = editor.new, node.output[0], node.input[1]
    codes, steps = _quantize(editor.value(node.input[0]), axis=1)
    gathered = nodes.op("Gather", nodes.constant(f"{name}.codes", codes), rows, name=f"{name}.row_codes", axis=0)
    step = nodes.op("Gather", nodes.constant(f"{name}.steps", steps[:, None]), rows, name=f"{name}.row_steps", axis=0)
    whole = nodes.op("Cast", gathered, name=f"{name}.row_floats", to=onnx.TensorProto.FLOAT)
    nodes.op("Mul", whole, step, name=name)


def _quantize(values: NDArray[np.float32], *, axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round values to int8 with one step for each column (axis 0) or row (axis 1)."""
    steps = (np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12) / _LEVELS).astype(np.float32)
    return np.rint(values / steps).astype(np.int8), steps.ravel()


def largest_cosine_error(model: BuiltModel, graph: bytes) -> float:
    """Return the largest error of a cosine between an approximate and an exact vector, over texts like windows."""
    words = [text.lower().split() for text in calibration_texts(model.tokenizer_path)[::_TEXTS_APART]]
    texts = dict.fromkeys(
        " ".join(each[begin : begin + length])
        for each in words
        for length in _WINDOW_WORDS
        for begin in range(0, len(each) - length + 1, length)
    )
    every = [f"{model.prefix}{text}" for text in (*texts, *(" ".join(each) for each in words), *CHECKED_TEXTS)]
    ids = sorted(tokenize(model.tokenizer_path, every, model.max_tokens), key=len)
    exact, rough = (_vectors(source, ids) for source in (str(model.onnx_path), graph))
    return float(np.abs((rough - exact) @ exact.T).max())


def _vectors(source: str | bytes, ids: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(source, cpu_session_options(1), providers=["CPUExecutionProvider"])
    found = []
    for start in range(0, len(ids), _TEXTS_A_RUN):
        padded, mask = pad(ids[start : start + _TEXTS_A_RUN])
        found += session.run([SENTENCE_OUTPUT], {INPUT_IDS: padded, ATTENTION_MASK: mask})
    return np.concatenate(found)


def write_window_graph(model: BuiltModel, folder: Path) -> Path:
    """Write a model's graph with its measured error into a folder, and return the file. Replace files atomically.

    Raises:
        BuildError: The graph cannot be rewritten.
        OSError: The file cannot be written.
    """
    proto = onnx.load(model.onnx_path)
    window_graph(proto)
    error = largest_cosine_error(model, proto.SerializeToString())
    helper.set_model_props(proto, {COSINE_ERROR: repr(error)})
    content = proto.SerializeToString()
    path = folder / graph_name(model, content)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=UNFINISHED, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the graph of a built model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    write_window_graph(load_built(options.repository, options.name), options.folder)


if __name__ == "__main__":
    main()
