"""One layer of the judge's graph, and what all layers share."""

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from gradewire_models.judges.build.attention import Heads, write_attention
from gradewire_models.judges.build.external import JudgeNodes
from gradewire_models.judges.build.rounding import MICROSOFT, product, quantize
from gradewire_models.judges.build.weights import LayerWeights, Matrix, Sizes


@dataclass(frozen=True, slots=True)
class Angles:
    """Names of the cosines and sines of every token's rotary angles, float32 [1, tokens, head_dim / 2]."""

    cosines: str
    sines: str


def write_angles(nodes: JudgeNodes, sizes: Sizes) -> Angles:
    """Computes rotary angles from the input ``positions`` (Su et al. 2021, equation 15)."""
    exponents = np.arange(0, sizes.head_dim, 2) / sizes.head_dim
    frequencies = nodes.floats("rope_frequencies", (1 / sizes.rope_base**exponents)[None, None])
    places = nodes.op("Cast", "positions", name="float_positions", to=TensorProto.FLOAT)
    column = nodes.op("Unsqueeze", places, nodes.ints("outer_axes", 0, 2), name="position_column")
    angles = nodes.op("Mul", column, frequencies, name="angles")
    return Angles(nodes.op("Cos", angles, name="cosines"), nodes.op("Sin", angles, name="sines"))


def write_layer_constants(nodes: JudgeNodes, sizes: Sizes) -> None:
    """Adds what all layers share."""
    nodes.ints("rotated_shape", 1, -1, sizes.heads + sizes.kv_heads, sizes.head_dim)
    nodes.ints("value_shape", -1, sizes.kv_heads, sizes.head_dim)
    nodes.ints("head_split", sizes.heads, sizes.kv_heads)


def write_norm(nodes: JudgeNodes, inputs: str, scale: Matrix, name: str, sizes: Sizes) -> str:
    """Root-mean-square normalisation (Zhang and Sennrich 2019, equation 4), in onnxruntime's own operator."""
    weight = nodes.floats(f"{name}.scale", scale)
    return nodes.op("SimplifiedLayerNormalization", inputs, weight, name=name, axis=-1, epsilon=sizes.norm_epsilon)


def write_layer(  # noqa: PLR0913, PLR0917 - what a layer is made of and where it stands
    nodes: JudgeNodes, index: int, weights: LayerWeights, hidden: str, angles: Angles, sizes: Sizes
) -> str:
    """Writes layer `index` behind `hidden`, float32 [tokens, dims]; returns its result's name.

    The last layer goes on with the last token of each sequence only, [sequences, dims]: nothing reads the others.
    """
    name = f"layer_{index}"
    normed = write_norm(nodes, hidden, weights.attention_norm, f"{name}.attention_norm", sizes)
    heads = _write_heads(nodes, name, normed, weights, angles, sizes)
    mixed = write_attention(nodes, name, index, heads)
    if index == sizes.layers - 1:
        mixed = nodes.op("Gather", mixed, "last_tokens", name=f"{name}.last_mixed", axis=0)
        hidden = nodes.op("Gather", hidden, "last_tokens", name=f"{name}.last_hidden", axis=0)
    rounded, scales = quantize(nodes, mixed, f"{name}.mixed_rounding")
    out = product(nodes, rounded, weights.attention_out, f"{name}.attention_out")
    hidden = _add(nodes, hidden, out, scales, f"{name}.attended")
    return _write_feed_forward(nodes, name, hidden, weights, sizes)


def _write_heads(  # noqa: PLR0913, PLR0917 - as write_layer
    nodes: JudgeNodes, name: str, normed: str, weights: LayerWeights, angles: Angles, sizes: Sizes
) -> Heads:
    rounded, scales = quantize(nodes, normed, f"{name}.attention_rounding")
    # The scores' factor, 1 / sqrt(width of a head), goes into the queries: turning them commutes with it.
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    fold = np.repeat(np.array([1 / math.sqrt(sizes.head_dim), 1], np.float32), [queries, keys])
    units = product(nodes, rounded, weights.query_key, f"{name}.query_key", fold=fold)
    both = nodes.op("Mul", units, scales, name=f"{name}.query_key_scaled")
    units = product(nodes, rounded, weights.value, f"{name}.value")
    values = nodes.op("Mul", units, scales, name=f"{name}.value_scaled")
    if weights.query_key_bias is not None and weights.value_bias is not None:
        bias = nodes.floats(f"{name}.query_key_bias", weights.query_key_bias * fold)
        both = nodes.op("Add", both, bias, name=f"{name}.query_key_biased")
        values = nodes.op(
            "Add", values, nodes.floats(f"{name}.value_bias", weights.value_bias), name=f"{name}.value_biased"
        )
    split = nodes.op("Reshape", both, "rotated_shape", name=f"{name}.query_key_heads")
    by_head = nodes.op("Transpose", split, name=f"{name}.query_key_by_head", perm=[0, 2, 1, 3])
    neighbours = int(sizes.architecture == "llama")
    turned = nodes.op(
        "RotaryEmbedding", by_head, angles.cosines, angles.sines, name=f"{name}.turned", interleaved=neighbours
    )
    flat = nodes.op("Squeeze", turned, "first_axis", name=f"{name}.turned_heads")
    of_queries, of_keys = nodes.split(flat, "head_split", f"{name}.queries", f"{name}.keys", axis=0)
    shaped = nodes.op("Reshape", values, "value_shape", name=f"{name}.value_heads")
    return Heads(of_queries, of_keys, nodes.op("Transpose", shaped, name=f"{name}.values", perm=[1, 0, 2]))


def _write_feed_forward(nodes: JudgeNodes, name: str, hidden: str, weights: LayerWeights, sizes: Sizes) -> str:
    normed = write_norm(nodes, hidden, weights.feed_forward_norm, f"{name}.feed_forward_norm", sizes)
    rounded, scales = quantize(nodes, normed, f"{name}.feed_forward_rounding")
    gate = product(nodes, rounded, weights.gate, f"{name}.gate")
    scaled = nodes.op("Mul", gate, scales, name=f"{name}.gate_scaled")
    opened = nodes.op("QuickGelu", scaled, name=f"{name}.gate_open", domain=MICROSOFT, alpha=1.0)  # which is SiLU
    # What passes the gate keeps lacking its scale: rounding does not mind, and a product of scales makes up for it.
    passed = nodes.op("Mul", opened, product(nodes, rounded, weights.up, f"{name}.up"), name=f"{name}.passed")
    rounded, own_scales = quantize(nodes, passed, f"{name}.down_rounding")
    both = nodes.op("Mul", own_scales, scales, name=f"{name}.down_scales")
    return _add(nodes, hidden, product(nodes, rounded, weights.down, f"{name}.down"), both, f"{name}.fed")


def _add(nodes: JudgeNodes, hidden: str, units: str, scales: str, name: str) -> str:
    return nodes.op("Add", hidden, nodes.op("Mul", units, scales, name=f"{name}.scaled"), name=name)
