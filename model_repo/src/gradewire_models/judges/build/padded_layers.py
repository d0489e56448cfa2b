"""Write a judge's layers for padded batches on a GPU, with weights in float16 or in 4 bits.

Matrix products and stored keys and values have float16. Sums over layers, normalisation, attention scores and logits
have float32, because a large model's values exceed float16's range there.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto

from gradewire_models.judges.build.layers import MICROSOFT, JudgeNodes
from gradewire_models.judges.build.shapes import LayerWeights, Matrix, Sizes

WeightForm = Literal["fp16", "int4"]

BLOCK = 32
"""Weights that share a scale in the form int4."""
_STEPS = (15, 14, 13, 12)
_EXACT = 0.1
"""Largest error, in steps, of a block whose weights were already rounded to 4 bits."""
_UNSEEN_SCORE = np.float32(-1e30)
# The product of gate and up exceeds float16's range in some models, so `up` is computed smaller by this factor.
_UP_FACTOR = np.float32(1 / 16)


@dataclass(slots=True)
class PaddedNodes(JudgeNodes):
    """A graph's nodes with the form of its weights."""

    form: WeightForm = "fp16"

    def half(self, inputs: str) -> str:
        """Convert to float16; return the result's name."""
        return self.op("Cast", inputs, name=f"{inputs}.half", to=TensorProto.FLOAT16)

    def single(self, inputs: str) -> str:
        """Convert to float32; return the result's name."""
        return self.op("Cast", inputs, name=f"{inputs}.single", to=TensorProto.FLOAT)

    def singles(self, name: str, value: ArrayLike) -> str:
        """Add a float32 constant; return its name."""
        return self.constant(name, np.asarray(value, np.float32))

    def product(self, inputs: str, matrix: Matrix, name: str) -> str:
        """Multiply float16 [..., inputs] by `matrix` [outputs, inputs]; return the name of the float16 result."""
        if self.form == "fp16":
            weight = self.weight(f"{name}.weight", matrix.T.astype(np.float16))
            return self.op("MatMul", inputs, weight, name=name)
        packed, scales, zeros = to_4_bits(matrix)
        outputs, width = matrix.shape
        operands = (
            inputs,
            self.weight(f"{name}.weight", packed),
            self.weight(f"{name}.scales", scales),
            self.weight(f"{name}.zeros", zeros),
        )
        return self.op(
            "MatMulNBits", *operands, name=name, domain=MICROSOFT, K=width, N=outputs, bits=4, block_size=BLOCK
        )


def to_4_bits(matrix: Matrix) -> tuple[NDArray[np.uint8], NDArray[np.float16], NDArray[np.float16]]:
    """Round a matrix [outputs, inputs] to 4 bits, in blocks of 32 inputs.

    The weights of a GGUF file with 4 bits are multiples of a step in each block, so that most of them stay exact.

    Returns:
        Pairs of values, uint8 [outputs, blocks, 16], low half first, and the blocks' scales and zero points, both
        float16 [outputs, blocks]. A value v stands for (v - zero point) x scale.
    """
    outputs, width = matrix.shape
    blocks = np.pad(matrix, ((0, 0), (0, -width % BLOCK))).reshape(-1, BLOCK)
    values, scales, zeros, errors = _rounded(blocks, _STEPS[0])
    for steps in _STEPS[1:]:
        # A block that leaves the largest or smallest values unused has fewer steps.
        (unfit,) = np.nonzero(errors > _EXACT)
        new_values, new_scales, new_zeros, new_errors = _rounded(blocks[unfit], steps)
        better = new_errors < errors[unfit]
        places = unfit[better]
        values[places], scales[places], zeros[places] = new_values[better], new_scales[better], new_zeros[better]
        errors[places] = new_errors[better]
    packed = values[:, 0::2] | np.left_shift(values[:, 1::2], np.uint8(4))
    return packed.reshape(outputs, -1, BLOCK // 2), scales.reshape(outputs, -1), zeros.reshape(outputs, -1)


def _rounded(blocks: Matrix, steps: int) -> tuple[NDArray[np.uint8], NDArray[np.float16], NDArray[np.float16], Matrix]:
    """Return values, scales, zero points, and each block's largest error in steps."""
    low = blocks.min(axis=1)
    span = blocks.max(axis=1) - low
    scales = (span / steps).astype(np.float16)
    scales[scales == 0] = 1
    worth = scales.astype(np.float32)
    zeros = (-low / worth).astype(np.float16)
    exact = blocks / worth[:, None] + zeros.astype(np.float32)[:, None]
    values = np.clip(np.rint(exact), 0, 15)
    return values.astype(np.uint8), scales, zeros, np.abs(values - exact).max(axis=1)


@dataclass(frozen=True, slots=True)
class _Part:
    """Names of the attention results for a part of the keys, float32 and by row, head and token."""

    mixed: str
    score: str
    share: str


def write_shared(nodes: PaddedNodes, sizes: Sizes) -> None:
    """Add the constants and shapes that all layers share."""
    kv, dim = sizes.kv_heads, sizes.head_dim
    nodes.ints("first_axis", 0)
    nodes.ints("one_axis", 1)
    nodes.ints("rotated_shape", 0, 0, sizes.heads + kv, dim)
    nodes.ints("value_shape", 0, 0, kv, dim)
    nodes.ints("head_split", sizes.heads, kv)
    nodes.ints("grouped", 0, kv, -1, dim)
    nodes.ints("scores_grouped", 0, kv, -1, 0)
    nodes.ints("by_kv_head", kv, -1, dim)
    nodes.ints("by_head", 0, sizes.heads, -1, dim)
    nodes.ints("one_by_head", 0, sizes.heads, -1, 1)
    nodes.ints("by_token", 0, 0, sizes.heads * dim)
    nodes.ints("flat_mixed", -1, sizes.heads * dim)
    nodes.ints("flat_hidden", -1, sizes.dims)
    nodes.singles("up_factor_undone", 1 / _UP_FACTOR)
    rows = nodes.op("Shape", "ids", name="rows", start=0, end=1)
    ends = {"mixed": dim, "stats": 1}
    for name, width in ends.items():
        nodes.op(
            "Concat",
            nodes.ints(f"{name}_kv", kv),
            rows,
            nodes.ints(f"{name}_rest", -1, width),
            name=f"{name}_by_row",
            axis=0,
        )
    tokens = nodes.op("Unsqueeze", "seen", "one_axis", name="seen_by_head")
    nothing, masked = nodes.singles("nothing", np.float32(0)), nodes.singles("masked", _UNSEEN_SCORE)
    nodes.op("Where", tokens, nothing, masked, name="own_bias")
    # The scores of all heads have the shape of these scores by token and slot.
    shape = nodes.op("Shape", "seen", name="seen_shape")
    row_sizes = nodes.op("Slice", shape, "first_axis", "one_axis", name="seen_rows")
    token_sizes = nodes.op("Slice", shape, "one_axis", nodes.ints("three", 3), name="seen_sizes")
    nodes.op("Concat", row_sizes, nodes.ints("heads", sizes.heads), token_sizes, name="scores_by_head", axis=0)
    places = np.arange(sizes.context_tokens)[:, None]
    frequencies = 1 / sizes.rope_base ** (np.arange(0, dim, 2) / dim)
    nodes.weight("rotary_cosines", np.cos(places * frequencies).astype(np.float32))
    nodes.weight("rotary_sines", np.sin(places * frequencies).astype(np.float32))


def write_norm(nodes: PaddedNodes, inputs: str, scale: Matrix, name: str, sizes: Sizes) -> str:
    """Write a root-mean-square normalisation in float32; return the name of the float16 result."""
    weight = nodes.singles(f"{name}.scale", scale)
    normed = nodes.op(
        "SimplifiedLayerNormalization", inputs, weight, name=name, axis=-1, epsilon=sizes.norm_epsilon, stash_type=1
    )
    return nodes.half(normed)


def write_layer(nodes: PaddedNodes, index: int, weights: LayerWeights, hidden: str, sizes: Sizes) -> str:
    """Write layer `index` with the input `hidden`, float32 [rows, tokens, dims]; return the name of the result.

    The last layer keeps only each row's last token, [rows, dims].
    """
    name = f"layer_{index}"
    normed = write_norm(nodes, hidden, weights.attention_norm, f"{name}.attention_norm", sizes)
    queries = _write_heads(nodes, index, normed, weights, sizes)
    mixed = _write_attention(nodes, name, index, queries)
    if index == sizes.layers - 1:
        flat = nodes.op("Reshape", mixed, "flat_mixed", name=f"{name}.flat_mixed")
        mixed = nodes.op("Gather", flat, "last", name=f"{name}.last_mixed", axis=0)
        flat = nodes.op("Reshape", hidden, "flat_hidden", name=f"{name}.flat_hidden")
        hidden = nodes.op("Gather", flat, "last", name=f"{name}.last_hidden", axis=0)
    out = nodes.product(nodes.half(mixed), weights.attention_out, f"{name}.attention_out")
    hidden = nodes.op("Add", hidden, nodes.single(out), name=f"{name}.attended")
    return _write_feed_forward(nodes, name, hidden, weights, sizes)


def _write_heads(nodes: PaddedNodes, index: int, normed: str, weights: LayerWeights, sizes: Sizes) -> str:
    """Write the graph's outputs ``own_keys_N`` and ``own_values_N``; return the name of the queries, in float32."""
    name = f"layer_{index}"
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    # Fold the scores' factor, 1 / sqrt(head_dim), into the queries, because this factor commutes with the rotation.
    fold = np.repeat(np.array([1 / math.sqrt(sizes.head_dim), 1], np.float32), [queries, keys])
    both = nodes.single(nodes.product(normed, weights.query_key * fold[:, None], f"{name}.query_key"))
    values = nodes.single(nodes.product(normed, weights.value, f"{name}.value"))
    if weights.query_key_bias is not None and weights.value_bias is not None:
        bias = nodes.singles(f"{name}.query_key_bias", weights.query_key_bias * fold)
        both = nodes.op("Add", both, bias, name=f"{name}.query_key_biased")
        bias = nodes.singles(f"{name}.value_bias", weights.value_bias)
        values = nodes.op("Add", values, bias, name=f"{name}.value_biased")
    split = nodes.op("Reshape", both, "rotated_shape", name=f"{name}.query_key_heads")
    by_head = nodes.op("Transpose", split, name=f"{name}.query_key_by_head", perm=[0, 2, 1, 3])
    turned = nodes.op(
        "RotaryEmbedding",
        by_head,
        "positions",
        "rotary_cosines",
        "rotary_sines",
        name=f"{name}.turned",
        domain=MICROSOFT,
        interleaved=int(sizes.architecture == "llama"),
    )
    of_queries, of_keys = nodes.split(turned, "head_split", f"{name}.queries", f"{name}.keys", axis=1)
    shaped = nodes.op("Reshape", nodes.half(values), "value_shape", name=f"{name}.value_heads")
    new_values = nodes.op("Transpose", shaped, name=f"{name}.values", perm=[0, 2, 1, 3])
    nodes.op("Concat", f"past_keys_{index}", nodes.half(of_keys), name=f"own_keys_{index}", axis=2)
    nodes.op("Concat", f"past_values_{index}", new_values, name=f"own_values_{index}", axis=2)
    return of_queries


def _write_attention(nodes: PaddedNodes, name: str, index: int, queries: str) -> str:
    """Write a layer's attention to the prefix and to the row's own tokens; return the mixed values, in float32."""
    grouped = nodes.op("Reshape", queries, "grouped", name=f"{name}.grouped")
    prefix = _attend_to_prefix(nodes, f"{name}.prefix", index, grouped)
    own = _attend_to_own(nodes, f"{name}.own", index, grouped)
    # The result is own + (prefix - own) * sigmoid(lse(prefix) - lse(own)), with lse(scores) = log(sum(exp(scores))).
    sums = []
    for part, which in ((prefix, "prefix"), (own, "own")):
        log = nodes.op("Log", part.share, name=f"{name}.{which}_log")
        sums.append(nodes.op("Sub", part.score, log, name=f"{name}.{which}_sum"))
    share = nodes.op("Sigmoid", nodes.op("Sub", *sums, name=f"{name}.sums"), name=f"{name}.share_of_prefix")
    apart = nodes.op("Sub", prefix.mixed, own.mixed, name=f"{name}.apart")
    moved = nodes.op("Mul", apart, share, name=f"{name}.moved")
    mixed = nodes.op("Add", moved, own.mixed, name=f"{name}.mixed")
    turned = nodes.op("Transpose", mixed, name=f"{name}.by_token", perm=[0, 2, 1, 3])
    return nodes.op("Reshape", turned, "by_token", name=f"{name}.mixed_tokens")


def _attend_to_prefix(nodes: PaddedNodes, name: str, index: int, grouped: str) -> _Part:
    # All rows share the prefix, so one product per head covers the whole batch.
    turned = nodes.op("Transpose", grouped, name=f"{name}.queries_turned", perm=[1, 0, 2, 3])
    queries = nodes.op("Reshape", turned, "by_kv_head", name=f"{name}.queries")
    keys = nodes.op("Transpose", nodes.single(f"prefix_keys_{index}"), name=f"{name}.keys_turned", perm=[0, 2, 1])
    scores = nodes.op("MatMul", queries, keys, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    mixed = nodes.op("MatMul", nodes.half(shares), f"prefix_values_{index}", name=f"{name}.mixed")

    def by_row(values: str, what: str, shape: str, heads: str) -> str:
        apart = nodes.op("Reshape", values, shape, name=f"{name}.{what}_apart")
        rows = nodes.op("Transpose", apart, name=f"{name}.{what}_rows", perm=[1, 0, 2, 3])
        return nodes.op("Reshape", rows, heads, name=f"{name}.{what}_by_head")

    top_score = nodes.op("ReduceMax", scores, name=f"{name}.top_score", axes=[-1], keepdims=1)
    top_share = nodes.op("ReduceMax", shares, name=f"{name}.top_share", axes=[-1], keepdims=1)
    score = by_row(top_score, "score", "stats_by_row", "one_by_head")
    return _Part(
        mixed=by_row(nodes.single(mixed), "mixed", "mixed_by_row", "by_head"),
        # The graph always needs a prefix; this bias removes a placeholder's weight.
        score=nodes.op("Add", score, "prefix_bias", name=f"{name}.biased_score"),
        share=by_row(top_share, "share", "stats_by_row", "one_by_head"),
    )


def _attend_to_own(nodes: PaddedNodes, name: str, index: int, grouped: str) -> _Part:
    turned = nodes.op("Transpose", nodes.single(f"own_keys_{index}"), name=f"{name}.keys_turned", perm=[0, 1, 3, 2])
    products = nodes.op("MatMul", grouped, turned, name=f"{name}.products")
    by_head = nodes.op("Reshape", products, "scores_by_head", name=f"{name}.products_by_head")
    scores = nodes.op("Add", by_head, "own_bias", name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    regrouped = nodes.op("Reshape", nodes.half(shares), "scores_grouped", name=f"{name}.shares_grouped")
    mixed = nodes.op("MatMul", regrouped, f"own_values_{index}", name=f"{name}.mixed")
    return _Part(
        mixed=nodes.single(nodes.op("Reshape", mixed, "by_head", name=f"{name}.mixed_by_head")),
        score=nodes.op("ReduceMax", scores, name=f"{name}.score", axes=[-1], keepdims=1),
        share=nodes.op("ReduceMax", shares, name=f"{name}.share", axes=[-1], keepdims=1),
    )


def _write_feed_forward(nodes: PaddedNodes, name: str, hidden: str, weights: LayerWeights, sizes: Sizes) -> str:
    normed = write_norm(nodes, hidden, weights.feed_forward_norm, f"{name}.feed_forward_norm", sizes)
    gate = nodes.product(normed, weights.gate, f"{name}.gate")
    opened = nodes.op("QuickGelu", gate, name=f"{name}.gate_open", domain=MICROSOFT, alpha=1.0)  # equals SiLU
    up = nodes.product(normed, weights.up * _UP_FACTOR, f"{name}.up")
    passed = nodes.op("Mul", opened, up, name=f"{name}.passed")
    down = nodes.single(nodes.product(passed, weights.down, f"{name}.down"))
    fed = nodes.op("Mul", down, "up_factor_undone", name=f"{name}.down_scaled")
    return nodes.op("Add", hidden, fed, name=f"{name}.fed")
