"""Write a judge's 8-bit layers: rounding, attention, and weights in a separate file."""

import math
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.nodes import Nodes
from gradewire_models.judges.build.shapes import LayerWeights, Matrix, Sizes

# The size of a memory page, for memory-mapped weights.
_ALIGNMENT = 4096

MICROSOFT = "com.microsoft"
_LARGEST = np.float32(127)

_UNSEEN_SCORE = np.float32(-1e30)


@dataclass(slots=True)
class JudgeNodes(Nodes):
    """A graph's nodes and small constants in memory, and its weights in the open file `data` next to the graph."""

    data: BinaryIO | None = None
    data_name: str = ""

    def weight(self, name: str, value: NDArray[np.generic]) -> str:
        """Write a constant to the weights file; return its name.

        Raises:
            ValueError: No weights file is open.
            OSError: The file cannot be written.
        """
        if self.data is None:
            raise ValueError(f"no file is open for the weight {name}")
        content = np.ascontiguousarray(value)
        self.data.write(b"\0" * (-self.data.tell() % _ALIGNMENT))
        tensor = onnx.TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(content.dtype),
            dims=content.shape,
            data_location=TensorProto.EXTERNAL,
        )
        place = {"location": self.data_name, "offset": self.data.tell(), "length": content.nbytes}
        for key, said in place.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(said)
        self.data.write(content.data)
        self.constants.append(tensor)
        return name

    def scalar(self, name: str, value: np.generic) -> str:
        """Add a constant without dimensions; return its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def inner(self) -> "JudgeNodes":
        """Return empty nodes for a loop's body, whose constants the outer graph stores."""
        return JudgeNodes(constants=self.constants)


def round_rows(matrix: Matrix) -> tuple[NDArray[np.int8], Matrix]:
    """Round every row to 8 bits.

    Args:
        matrix: float32 [rows, columns].

    Returns:
        int8 [rows, columns] in [-127, 127], and each row's scale, float32 [rows]; 1 for a row of zeros.
    """
    scales = np.abs(matrix).max(axis=1) / _LARGEST
    scales[scales == 0] = 1
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def write_rounding_constants(nodes: JudgeNodes) -> None:
    """Add the constants that `quantize` and `product` share."""
    nodes.scalar("activation_zero", np.uint8(128))
    nodes.scalar("weight_zero", np.int8(0))
    nodes.scalar("unit_scale", np.float32(1))
    nodes.scalar("per_unit", 1 / _LARGEST)
    nodes.scalar("least_size", np.float32(1e-30))  # avoids a division by 0 for a token of zeros


def quantize(nodes: JudgeNodes, inputs: str, name: str) -> tuple[str, str]:
    """Round activations, float32 [tokens, width], to uint8, with a scale for each token.

    Returns:
        Names of the rounded activations and of the scales, float32 [tokens, 1].
    """
    sizes = nodes.op("Abs", inputs, name=f"{name}.sizes")
    largest = nodes.op("ReduceMax", sizes, "last_axis", name=f"{name}.largest", keepdims=1)
    floored = nodes.op("Max", largest, "least_size", name=f"{name}.floored")
    scales = nodes.op("Mul", floored, "per_unit", name=f"{name}.scales")
    per_row = nodes.op("Squeeze", scales, "one_axis", name=f"{name}.row_scales")
    zeros = nodes.op("Expand", "activation_zero", nodes.op("Shape", per_row, name=f"{name}.rows"), name=f"{name}.zeros")
    return nodes.op("QuantizeLinear", inputs, per_row, zeros, name=f"{name}.rounded", axis=0), scales


def product(nodes: JudgeNodes, inputs: str, matrix: Matrix, name: str, *, fold: Matrix | None = None) -> str:
    """Multiply rounded activations by `matrix`, without the activations' scales, which the caller must apply.

    Args:
        nodes: The graph under construction.
        inputs: uint8 [tokens, inputs] from `quantize`.
        matrix: float32 [outputs, inputs].
        name: Name of the result, float32 [tokens, outputs].
        fold: Additional factors for the result, [outputs].
    """
    rounded, scales = round_rows(matrix)
    return product_of_rounded(nodes, inputs, rounded, scales if fold is None else scales * fold, name)


def product_of_rounded(nodes: JudgeNodes, inputs: str, rounded: NDArray[np.int8], scales: Matrix, name: str) -> str:
    """Multiply like `product`, with a matrix from `round_rows`."""
    weight = nodes.weight(f"{name}.weight", rounded.T)
    per_output = nodes.constant(f"{name}.scales", scales)
    # This operator multiplies, converts and scales in one kernel instead of three.
    operands = (inputs, weight, "unit_scale", per_output, "activation_zero", "weight_zero")
    return nodes.op("MatMulIntegerToFloat", *operands, name=name, domain=MICROSOFT)


def lookup(nodes: JudgeNodes, rounded: NDArray[np.int8], scales: Matrix, ids: str) -> str:
    """Write a lookup of `ids` in a rounded table; return the name of the output, float32 [tokens, width]."""
    table = nodes.weight("embedding.weight", rounded)
    worth = nodes.weight("embedding.scales", scales[:, None])
    units = nodes.op("Gather", table, ids, name="embedding.rounded", axis=0)
    wide = nodes.op("Cast", units, name="embedding.units", to=TensorProto.FLOAT)
    return nodes.op("Mul", wide, nodes.op("Gather", worth, ids, name="embedding.worth", axis=0), name="embedding")


@dataclass(frozen=True, slots=True)
class Heads:
    """Names of a layer's queries ([heads, tokens, head_dim]), keys and values (both [kv_heads, tokens, head_dim])."""

    queries: str
    keys: str
    values: str


@dataclass(frozen=True, slots=True)
class Part:
    """Names of the attention results for a part of the keys, by head and token.

    Attributes:
        mixed: Weighted sum of the values, [heads, tokens, head_dim].
        score: Largest score, [heads, tokens, 1].
        share: Largest attention weight, [heads, tokens, 1].
    """

    mixed: str
    score: str
    share: str


def write_attention_constants(nodes: JudgeNodes, sizes: Sizes) -> None:
    """Add the attention constants that all layers share."""
    nodes.ints("grouped", sizes.kv_heads, -1, sizes.head_dim)
    nodes.ints("by_head", sizes.heads, -1, sizes.head_dim)
    nodes.ints("one_by_head", sizes.heads, -1, 1)
    nodes.ints("scores_by_head", sizes.heads, -1, 0)
    nodes.ints("scores_grouped", sizes.kv_heads, -1, 0)
    nodes.ints("by_token", -1, sizes.heads * sizes.head_dim)
    nodes.ints("both_axes", 0, 1)
    nodes.ints("span_sizes", 1, 1, 1, 1, 2, 2)
    nodes.scalar("going_on", np.bool_(1))
    nodes.op("SequenceEmpty", name="no_parts", dtype=TensorProto.FLOAT)
    nodes.op("Size", "lengths", name="sequences")
    own = nodes.op("Add", "lengths", "past_lengths", name="own_lengths")
    columns = []
    for lengths, place in (("lengths", "new"), ("past_lengths", "past")):
        end = nodes.op("CumSum", lengths, "zero", name=f"{place}_ends")
        columns += [nodes.op("Sub", end, lengths, name=f"{place}_starts"), end]
    nothing = nodes.op("Sub", own, own, name="nothing")
    columns += ["past_lengths", nothing, own, own]
    rows = [nodes.op("Unsqueeze", column, "one_axis", name=f"span_{place}") for place, column in enumerate(columns)]
    nodes.op("Concat", *rows, name="spans", axis=1)
    longest = nodes.op("ReduceMax", own, name="longest", keepdims=0)
    places = nodes.op("Range", "zero", longest, "one", name="places")
    later = nodes.op("Greater", places, nodes.op("Unsqueeze", places, "one_axis", name="seers"), name="later")
    masked, seen = nodes.scalar("masked", _UNSEEN_SCORE), nodes.scalar("seen", np.float32(0))
    nodes.op("Where", later, masked, seen, name="causal")


def write_attention(nodes: JudgeNodes, name: str, index: int, heads: Heads) -> str:
    """Write a layer's attention; return the name of the mixed values, float32 [tokens, heads * head_dim].

    The layer reads the graph's inputs ``prefix_keys_N``, ``prefix_values_N``, ``own_past_keys_N`` and
    ``own_past_values_N``, and writes the graph's outputs ``own_keys_N`` and ``own_values_N``, where N is `index`.
    """
    prefix = _attend_to_prefix(nodes, f"{name}.prefix", index, heads.queries)
    body = _body(nodes.inner(), f"{name}.each", index, heads, prefix)
    parts = [f"{name}.mixed_parts", f"{name}.key_parts", f"{name}.value_parts"]
    carried = ["sequences", "going_on", "no_parts", "no_parts", "no_parts"]
    nodes.nodes.append(helper.make_node("Loop", carried, parts, name=f"{name}.each", body=body))
    nodes.op("ConcatFromSequence", parts[1], name=f"own_keys_{index}", axis=1)
    nodes.op("ConcatFromSequence", parts[2], name=f"own_values_{index}", axis=1)
    joined = nodes.op("ConcatFromSequence", parts[0], name=f"{name}.joined", axis=0)
    return nodes.op("Reshape", joined, "by_token", name=f"{name}.mixed")


def _attend_to_prefix(nodes: JudgeNodes, name: str, index: int, queries: str) -> Part:
    grouped = nodes.op("Reshape", queries, "grouped", name=f"{name}.queries")
    turned = nodes.op("Transpose", f"prefix_keys_{index}", name=f"{name}.keys_turned", perm=[0, 2, 1])
    scores = nodes.op("MatMul", grouped, turned, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    mixed = nodes.op("MatMul", shares, f"prefix_values_{index}", name=f"{name}.mixed")
    top_score = nodes.op("ReduceMax", scores, "last_axis", name=f"{name}.top_score", keepdims=1)
    top_share = nodes.op("ReduceMax", shares, "last_axis", name=f"{name}.top_share", keepdims=1)
    score = nodes.op("Reshape", top_score, "one_by_head", name=f"{name}.score")
    return Part(
        mixed=nodes.op("Reshape", mixed, "by_head", name=f"{name}.mixed_by_head"),
        # The graph always needs a prefix; this bias removes a placeholder's weight.
        score=nodes.op("Add", score, "prefix_bias", name=f"{name}.biased_score"),
        share=nodes.op("Reshape", top_share, "one_by_head", name=f"{name}.share"),
    )


def _body(nodes: JudgeNodes, name: str, index: int, heads: Heads, prefix: Part) -> onnx.GraphProto:
    # The loop's counter is the sequence's index. The body reads the layer's values from the outer graph.
    number, going_on, going_further = f"{name}.number", f"{name}.going_on", f"{name}.going_further"
    spans = ("start", "end", "past_start", "past_end", "corner", "far_corner")
    span = nodes.op("Gather", "spans", number, name=f"{name}.span", axis=0)
    start, end, past_start, past_end, corner, far_corner = nodes.split(
        span, "span_sizes", *(f"{name}.{part}" for part in spans), axis=0
    )

    def cut(values: str, part: str, *, past: bool = False) -> str:
        bounds = (past_start, past_end) if past else (start, end)
        return nodes.op("Slice", values, *bounds, "one_axis", name=f"{name}.{part}")

    def extend(past: str, new: str, part: str) -> str:
        own = (cut(past, f"past_{part}", past=True), cut(new, f"new_{part}"))
        return nodes.op("Concat", *own, name=f"{name}.{part}", axis=1)

    keys = extend(f"own_past_keys_{index}", heads.keys, "keys")
    values = extend(f"own_past_values_{index}", heads.values, "values")
    seen = nodes.op("Slice", "causal", corner, far_corner, "both_axes", name=f"{name}.seen")
    own = _attend_to_own(nodes, name, Heads(cut(heads.queries, "queries"), keys, values), seen)
    of_prefix = Part(
        mixed=cut(prefix.mixed, "prefix_mixed"),
        score=cut(prefix.score, "prefix_score"),
        share=cut(prefix.share, "prefix_share"),
    )
    mixed = _join(nodes, name, of_prefix, own)
    turned = nodes.op("Transpose", mixed, name=f"{name}.by_token", perm=[1, 0, 2])
    nodes.op("Identity", going_on, name=going_further)
    results = {"mixed_parts": turned, "key_parts": keys, "value_parts": values}
    for part, result in results.items():
        nodes.op("SequenceInsert", f"{name}.{part}_before", result, name=f"{name}.{part}")

    def sequence(part: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_sequence_value_info(part, TensorProto.FLOAT, None)

    return helper.make_graph(
        nodes.nodes,
        name,
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(going_on, TensorProto.BOOL, []),
            *(sequence(f"{name}.{part}_before") for part in results),
        ],
        [
            helper.make_tensor_value_info(going_further, TensorProto.BOOL, []),
            *(sequence(f"{name}.{part}") for part in results),
        ],
    )


def _attend_to_own(nodes: JudgeNodes, name: str, heads: Heads, seen: str) -> Part:
    grouped = nodes.op("Reshape", heads.queries, "grouped", name=f"{name}.grouped")
    turned = nodes.op("Transpose", heads.keys, name=f"{name}.keys_turned", perm=[0, 2, 1])
    products = nodes.op("MatMul", grouped, turned, name=f"{name}.products")
    by_head = nodes.op("Reshape", products, "scores_by_head", name=f"{name}.products_by_head")
    scores = nodes.op("Add", by_head, seen, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    regrouped = nodes.op("Reshape", shares, "scores_grouped", name=f"{name}.shares_grouped")
    mixed = nodes.op("MatMul", regrouped, heads.values, name=f"{name}.own_mixed")
    return Part(
        mixed=nodes.op("Reshape", mixed, "by_head", name=f"{name}.own_mixed_by_head"),
        score=nodes.op("ReduceMax", scores, "last_axis", name=f"{name}.own_score", keepdims=1),
        share=nodes.op("ReduceMax", shares, "last_axis", name=f"{name}.own_share", keepdims=1),
    )


def _join(nodes: JudgeNodes, name: str, prefix: Part, own: Part) -> str:
    # The result is own + (prefix - own) * sigmoid(lse(prefix) - lse(own)), with lse(scores) = log(sum(exp(scores))).
    sums = []
    for part, which in ((prefix, "prefix"), (own, "own")):
        log = nodes.op("Log", part.share, name=f"{name}.{which}_log")
        sums.append(nodes.op("Sub", part.score, log, name=f"{name}.{which}_sum"))
    share = nodes.op("Sigmoid", nodes.op("Sub", *sums, name=f"{name}.sums"), name=f"{name}.share_of_prefix")
    apart = nodes.op("Sub", prefix.mixed, own.mixed, name=f"{name}.apart")
    return nodes.op("Add", nodes.op("Mul", apart, share, name=f"{name}.moved"), own.mixed, name=f"{name}.mixed")


@dataclass(frozen=True, slots=True)
class Angles:
    """Names of the cosines and sines of every token's rotary angles, float32 [1, tokens, head_dim / 2]."""

    cosines: str
    sines: str


def write_angles(nodes: JudgeNodes, sizes: Sizes) -> Angles:
    """Compute the rotary angles from the input ``positions`` (Su et al. 2021, equation 15)."""
    exponents = np.arange(0, sizes.head_dim, 2) / sizes.head_dim
    frequencies = nodes.floats("rope_frequencies", (1 / sizes.rope_base**exponents)[None, None])
    places = nodes.op("Cast", "positions", name="float_positions", to=TensorProto.FLOAT)
    column = nodes.op("Unsqueeze", places, nodes.ints("outer_axes", 0, 2), name="position_column")
    angles = nodes.op("Mul", column, frequencies, name="angles")
    return Angles(nodes.op("Cos", angles, name="cosines"), nodes.op("Sin", angles, name="sines"))


def write_layer_constants(nodes: JudgeNodes, sizes: Sizes) -> None:
    """Add the shapes that all layers share."""
    nodes.ints("rotated_shape", 1, -1, sizes.heads + sizes.kv_heads, sizes.head_dim)
    nodes.ints("value_shape", -1, sizes.kv_heads, sizes.head_dim)
    nodes.ints("head_split", sizes.heads, sizes.kv_heads)


def write_norm(nodes: JudgeNodes, inputs: str, scale: Matrix, name: str, sizes: Sizes) -> str:
    """Write a root-mean-square normalisation (Zhang and Sennrich 2019, equation 4)."""
    weight = nodes.floats(f"{name}.scale", scale)
    return nodes.op("SimplifiedLayerNormalization", inputs, weight, name=name, axis=-1, epsilon=sizes.norm_epsilon)


def write_layer(  # noqa: PLR0913, PLR0917 - parts and position of a layer
    nodes: JudgeNodes, index: int, weights: LayerWeights, hidden: str, angles: Angles, sizes: Sizes
) -> str:
    """Write layer `index` with the input `hidden`, float32 [tokens, dims]; return the name of the result.

    The last layer keeps only each sequence's last token, [sequences, dims].
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
    # Fold the scores' factor, 1 / sqrt(head_dim), into the queries, because this factor commutes with the rotation.
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
    opened = nodes.op("QuickGelu", scaled, name=f"{name}.gate_open", domain=MICROSOFT, alpha=1.0)  # equals SiLU
    # `up` is not multiplied by `scales` here. This does not change the rounded values, so `both` includes `scales`.
    passed = nodes.op("Mul", opened, product(nodes, rounded, weights.up, f"{name}.up"), name=f"{name}.passed")
    rounded, own_scales = quantize(nodes, passed, f"{name}.down_rounding")
    both = nodes.op("Mul", own_scales, scales, name=f"{name}.down_scales")
    return _add(nodes, hidden, product(nodes, rounded, weights.down, f"{name}.down"), both, f"{name}.fed")


def _add(nodes: JudgeNodes, hidden: str, units: str, scales: str, name: str) -> str:
    return nodes.op("Add", hidden, nodes.op("Mul", units, scales, name=f"{name}.scaled"), name=name)
