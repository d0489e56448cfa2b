"""Writes a grader as an ONNX graph: an encoder over question, reference and answer, and one number at its end."""

import numpy as np
import onnx
from onnx import TensorProto

from gradewire_models.build.graph.encoder import assemble, write_layers
from gradewire_models.build.graph.nodes import Nodes
from gradewire_models.build.graph.unpadded import lay_out_real
from gradewire_models.build.weights.encoder import Encoder
from gradewire_models.build.weights.head import Head
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.errors import BuildError
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS, LOGIT_OUTPUT

_TEXTS_BEFORE_ANSWER = 2


def grader_graph(encoder: Encoder, head: Head, model: CatalogModel, separator: int) -> onnx.ModelProto:
    """Writes a grader as ONNX for a CPU, in float32; the same weights give the same graph.

    Inputs: as those of `encoder_graph`, each row one piece of `gradewire_models.repository.grader_input`. The token
    type of a token is 1 behind the second `separator`, which no text can write, so that it needs no input of its own.
    Output: ``logit``, float32 [batch, 1], the head over the mean of the last layer's token vectors.

    Raises:
        BuildError: The weights have no second token type.
    """
    if encoder.type_step is None:
        raise BuildError(f"{model.name}: the weights have no second token type to mark the answer with")
    nodes = Nodes()
    layout = lay_out_real(nodes, encoder, model)
    words = nodes.floats("word_table", encoder.word_table)
    total = layout.embed(words, nodes.floats("position_table", encoder.position_table))
    types = nodes.op("Gather", _answer_tokens(nodes, separator), layout.real_rows, name="types", axis=0)
    steps = nodes.op("Mul", types, nodes.floats("type_step", encoder.type_step), name="type_steps")
    typed = nodes.op("Add", total, steps, name="typed_embedding_sum")
    layout.write_output(write_layers(nodes, layout, encoder, model, typed), "last_layer")
    _write_head(nodes, head)
    return assemble(nodes, model, {LOGIT_OUTPUT: (1,)})


def _answer_tokens(nodes: Nodes, separator: int) -> str:
    """1 on tokens of the answer and behind it, 0 before, float [batch * tokens, 1]."""
    is_separator = nodes.op("Equal", INPUT_IDS, nodes.ints("separator", separator), name="is_separator")
    separators = nodes.op("Cast", is_separator, name="separators", to=TensorProto.INT64)
    before = nodes.op("CumSum", separators, nodes.constant("axis_1", np.int64(1)), name="texts_before", exclusive=1)
    enough = nodes.ints("texts_before_answer", _TEXTS_BEFORE_ANSWER)
    of_answer = nodes.op("GreaterOrEqual", before, enough, name="of_answer")
    values = nodes.op("Cast", of_answer, name="answer_tokens", to=nodes.float_type)
    return nodes.op("Reshape", values, nodes.ints("column", -1, 1), name="answer_column")


def _write_head(nodes: Nodes, head: Head) -> None:
    mask = nodes.op("Cast", ATTENTION_MASK, name="pool_mask", to=TensorProto.FLOAT)
    rows = nodes.op("Unsqueeze", mask, "one", name="pool_rows")
    sums = nodes.op("MatMul", rows, "last_layer", name="pool_sums")
    total = nodes.op("Squeeze", sums, "one", name="pool_total")
    count = nodes.op("ReduceSum", mask, "one", name="pool_count", keepdims=1)
    mean = nodes.op("Div", total, count, name="pool_mean")
    weight, bias = nodes.floats("head.weight", head.weight.T), nodes.floats("head.bias", head.bias)
    nodes.op("Gemm", mean, weight, bias, name=LOGIT_OUTPUT)
