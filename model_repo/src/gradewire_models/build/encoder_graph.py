"""Write encoders and graders as ONNX graphs of standard operators."""

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from gradewire_models.build.nodes import EveryRow, Nodes, RealRows, lay_out_every, lay_out_real
from gradewire_models.build.weights import Dense, Encoder, Head, Layer, Norm
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.repository.config import (
    ATTENTION_MASK,
    INPUT_IDS,
    LOGIT_OUTPUT,
    SENTENCE_OUTPUT,
    TOKENS_OUTPUT,
    layer_output,
)
from gradewire_models.repository.serving import Precision

# Opset 20 is the first with a GELU operator. Older runtimes still load this file format version.
_OPSET = 20
_IR_VERSION = 9

Vector = NDArray[np.float32]
Layout: TypeAlias = RealRows | EveryRow

_TEXTS_BEFORE_ANSWER = 2


def encoder_graph(encoder: Encoder, model: CatalogModel) -> onnx.ModelProto:
    """Return `encoder` as a float32 ONNX graph for a CPU. The same weights give the same graph.

    Inputs: ``input_ids`` and ``attention_mask``, int64 [batch, tokens], with at most `model.max_tokens` tokens, of
    which at least one is real. The mask is 1 for a text's tokens and 0 for padding at the end of a row. Outputs:
    ``sentence_embedding``, float32 [batch, dims], the mean over a text's tokens, scaled to unit length;
    ``token_embeddings`` and ``token_embeddings_layer_N``, float32 [batch, tokens, dims], the last and the chosen
    earlier layers (rows for padding are unspecified).
    """
    nodes = Nodes()
    return _write(nodes, lay_out_real(nodes, encoder, model), encoder, model)


def gpu_graph(encoder: Encoder, model: CatalogModel, precision: Precision) -> onnx.ModelProto:
    """Return `encoder` as an ONNX graph for a GPU. The graph keeps padding, so its shapes do not depend on the data.

    Inputs and outputs are those of `encoder_graph`. With ``"fp16"``, weights and computation are in float16, except for
    the sum over a text's tokens and the sum's length, which are in float32.
    """
    nodes = Nodes(float_type=_float_type(precision))
    return _write(nodes, lay_out_every(nodes, encoder, model), encoder, model)


def _write(nodes: Nodes, layout: Layout, encoder: Encoder, model: CatalogModel) -> onnx.ModelProto:
    words = nodes.floats("word_table", encoder.word_table)
    total = layout.embed(words, nodes.floats("position_table", encoder.position_table))
    layout.write_output(write_layers(nodes, layout, encoder, model, total), TOKENS_OUTPUT)
    _pool(nodes)
    layers = [TOKENS_OUTPUT, *(layer_output(layer) for layer in model.token_layers)]
    tokens = dict.fromkeys(layers, ("tokens", model.dims))
    return assemble(nodes, model, {SENTENCE_OUTPUT: (model.dims,), **tokens})


def write_layers(nodes: Nodes, layout: Layout, encoder: Encoder, model: CatalogModel, embedded: str) -> str:
    """Write all layers, starting from the tensor `embedded`; return the name of the last layer's output.

    `layout` determines whether tensors contain rows for padding. The model's `token_layers` become outputs.
    """
    # The last layer has no next residual, so its bias is zero.
    biases = [part.bias for layer in encoder.layers for part in (layer.attention_out, layer.down)]
    biases.append(np.zeros(model.dims, np.float32))
    hidden = _write_norm(nodes, "embedding", embedded, encoder.embedding_norm, biases[0], model)
    for number, layer in enumerate(encoder.layers, start=1):
        carried = biases[2 * number - 2 : 2 * number + 1]
        hidden = _write_layer(nodes, f"layer_{number}", layer, hidden, model, layout, carried)
        if number in model.token_layers:
            bias = nodes.floats(f"layer_{number}.carried", carried[-1])
            bare = nodes.op("Sub", hidden, bias, name=f"layer_{number}.bare")
            layout.write_output(bare, layer_output(number))
    return hidden


def _write_layer(  # noqa: PLR0913, PLR0917 - parts and position of a layer
    nodes: Nodes,
    name: str,
    layer: Layer,
    hidden: str,
    model: CatalogModel,
    layout: Layout,
    carried: list[Vector],
) -> str:
    entering, between, leaving = carried
    qkv = _write_dense(nodes, f"{name}.qkv", hidden, _pack(layer, model), entering)
    queries, keys, values = layout.split_heads(f"{name}.heads", qkv)
    turned = nodes.op("Transpose", keys, name=f"{name}.keys_turned", perm=[0, 1, 3, 2])
    products = nodes.op("MatMul", queries, turned, name=f"{name}.products")
    scores = nodes.op("Add", products, layout.score_bias, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    attended = layout.join_heads(f"{name}.attended", nodes.op("MatMul", shares, values, name=f"{name}.mixed"))
    hidden = _write_residual(nodes, f"{name}.attention_out", attended, layer.attention_out, hidden)
    hidden = _write_norm(nodes, f"{name}.attention_norm", hidden, layer.attention_norm, between, model)
    wide = nodes.op("Gelu", _write_dense(nodes, f"{name}.up", hidden, layer.up, between), name=f"{name}.gelu")
    hidden = _write_residual(nodes, f"{name}.down", wide, layer.down, hidden)
    return _write_norm(nodes, f"{name}.out_norm", hidden, layer.out_norm, leaving, model)


def _pack(layer: Layer, model: CatalogModel) -> Dense:
    # Fold the scale of the scores, 1 / sqrt(width of a head), into the queries.
    scale = np.float32(1 / math.sqrt(model.dims // model.heads))
    return Dense(
        np.concatenate([layer.query.weight * scale, layer.key.weight, layer.value.weight], axis=1),
        np.concatenate([layer.query.bias * scale, layer.key.bias, layer.value.bias]),
    )


def _write_dense(nodes: Nodes, name: str, inputs: str, dense: Dense, carried: Vector) -> str:
    # The inputs include the next residual's bias c, so correct the bias: (h + c) W + (b - c W) = h W + b. Sum row by
    # row, because a BLAS sums in a machine-dependent order, and the bytes must not depend on the machine.
    excess = np.zeros(dense.bias.shape, np.float64)
    for value, row in zip(carried.astype(np.float64), dense.weight.astype(np.float64), strict=True):
        excess += value * row
    bias = nodes.floats(f"{name}.bias", (dense.bias - excess).astype(np.float32))
    return nodes.op("Gemm", inputs, nodes.floats(f"{name}.weight", dense.weight), bias, name=name)


def _write_residual(nodes: Nodes, name: str, inputs: str, dense: Dense, residual: str) -> str:
    # `residual` already includes the bias of `dense`.
    return nodes.op("Gemm", inputs, nodes.floats(f"{name}.weight", dense.weight), residual, name=name)


def _write_norm(nodes: Nodes, name: str, inputs: str, norm: Norm, carried: Vector, model: CatalogModel) -> str:  # noqa: PLR0913, PLR0917 - as _write_layer
    scale = nodes.floats(f"{name}.scale", norm.scale)
    shift = nodes.floats(f"{name}.shift", norm.shift + carried)
    return nodes.op("LayerNormalization", inputs, scale, shift, name=name, axis=-1, epsilon=model.layer_norm_epsilon)


def _write_sum(nodes: Nodes, rows: str) -> tuple[str, str]:
    mask = nodes.op("Cast", ATTENTION_MASK, name="pool_mask", to=TensorProto.FLOAT)
    row_mask = nodes.op("Unsqueeze", mask, "one", name="pool_rows")
    sums = nodes.op("MatMul", row_mask, rows, name="pool_sums")
    return nodes.op("Squeeze", sums, "one", name="pool_total"), mask


def _pool(nodes: Nodes) -> None:
    # After normalisation, a sum equals a mean.
    total, _ = _write_sum(nodes, TOKENS_OUTPUT)
    length = nodes.op("ReduceL2", total, "one", name="pool_length", keepdims=1)
    floor = nodes.op("Max", length, nodes.constant("tiny", np.float32(1e-12)), name="pool_floor")
    nodes.op("Div", total, floor, name=SENTENCE_OUTPUT)


def assemble(nodes: Nodes, model: CatalogModel, outputs: Mapping[str, tuple[str | int, ...]]) -> onnx.ModelProto:
    """Return the complete graph with token ids and mask as inputs.

    `outputs` maps the name of each float32 output to its shape, without the batch dimension.
    """

    def tensor(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes.nodes,
        model.name,
        [tensor(name, TensorProto.INT64, "batch", "tokens") for name in (INPUT_IDS, ATTENTION_MASK)],
        [tensor(name, TensorProto.FLOAT, "batch", *shape) for name, shape in outputs.items()],
        nodes.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="gradewire")


def grader_graph(encoder: Encoder, head: Head, model: CatalogModel, separator: int) -> onnx.ModelProto:
    """Return a grader as a float32 ONNX graph for a CPU. The same weights give the same graph.

    The inputs are those of `encoder_graph`; each row is a piece from `gradewire_models.repository.grader_input`. Tokens
    after the second `separator` get token type 1, if the encoder has token types. The output ``logit``, float32
    [batch, 1], is the head's value for the mean of the last layer's token vectors.
    """
    nodes = Nodes()
    return _write_grader(nodes, lay_out_real(nodes, encoder, model), encoder, head, model, separator)


def gpu_grader_graph(
    encoder: Encoder, head: Head, model: CatalogModel, separator: int, precision: Precision
) -> onnx.ModelProto:
    """Return a grader as an ONNX graph for a GPU, with padding as in `gpu_graph`.

    Inputs and output are those of `grader_graph`. With ``"fp16"``, the encoder is in float16, but the mean and the head
    are in float32.
    """
    nodes = Nodes(float_type=_float_type(precision))
    return _write_grader(nodes, lay_out_every(nodes, encoder, model), encoder, head, model, separator)


def _float_type(precision: Precision) -> int:
    return TensorProto.FLOAT16 if precision == "fp16" else TensorProto.FLOAT


def _write_grader(  # noqa: PLR0913, PLR0917 - parts of a grader
    nodes: Nodes, layout: Layout, encoder: Encoder, head: Head, model: CatalogModel, separator: int
) -> onnx.ModelProto:
    words = nodes.floats("word_table", encoder.word_table)
    total = layout.embed(words, nodes.floats("position_table", encoder.position_table))
    if encoder.type_step is not None:
        types = layout.rows_of("types", _answer_tokens(nodes, separator))
        steps = nodes.op("Mul", types, nodes.floats("type_step", encoder.type_step), name="type_steps")
        total = nodes.op("Add", total, steps, name="typed_embedding_sum")
    layout.write_output(write_layers(nodes, layout, encoder, model, total), "last_layer")
    _write_head(nodes, head)
    return assemble(nodes, model, {LOGIT_OUTPUT: (1,)})


def _answer_tokens(nodes: Nodes, separator: int) -> str:
    """Write the token types, float [batch * tokens, 1]: 0 before the answer, then 1; return the tensor's name."""
    is_separator = nodes.op("Equal", INPUT_IDS, nodes.ints("separator", separator), name="is_separator")
    separators = nodes.op("Cast", is_separator, name="separators", to=TensorProto.INT64)
    before = nodes.op("CumSum", separators, nodes.constant("axis_1", np.int64(1)), name="texts_before", exclusive=1)
    enough = nodes.ints("texts_before_answer", _TEXTS_BEFORE_ANSWER)
    of_answer = nodes.op("GreaterOrEqual", before, enough, name="of_answer")
    values = nodes.op("Cast", of_answer, name="answer_tokens", to=nodes.float_type)
    return nodes.op("Reshape", values, nodes.ints("column", -1, 1), name="answer_column")


def _write_head(nodes: Nodes, head: Head) -> None:
    total, mask = _write_sum(nodes, "last_layer")
    count = nodes.op("ReduceSum", mask, "one", name="pool_count", keepdims=1)
    mean = nodes.op("Div", total, count, name="pool_mean")
    weight, bias = nodes.constant("head.weight", head.weight.T), nodes.constant("head.bias", head.bias)
    nodes.op("Gemm", mean, weight, bias, name=LOGIT_OUTPUT)
