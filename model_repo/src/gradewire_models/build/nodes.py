"""Add nodes to an ONNX graph, and lay out a batch's tokens with or without padding."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.weights import Array, Encoder
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS

# Penalty on the attention score of a position without a real token, in float32; its exponential is exactly 0.
_NO_TOKEN_PENALTY = 1e9

# Penalty on a padding position's attention score. It fits into float16, where its exponential is also 0.
_PADDING_PENALTY = 3e4


@dataclass(slots=True)
class Nodes:
    """A graph's nodes, in the order of computation, and its constants. Floats have the type `float_type`."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    float_type: int = TensorProto.FLOAT

    def op(self, kind: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a standard operator with the single output `name`; return `name`."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def split(self, inputs: str, sizes: str, *names: str, axis: int) -> tuple[str, ...]:
        """Split `inputs` along `axis`; return the parts' names."""
        self.nodes.append(helper.make_node("Split", [inputs, sizes], names, name=f"{names[0]}.split", axis=axis))
        return names

    def constant(self, name: str, value: ArrayLike) -> str:
        """Add a constant; return its name."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def floats(self, name: str, value: ArrayLike) -> str:
        """Add a constant, rounded to the graph's float type; return its name."""
        return self.constant(name, np.asarray(value, helper.tensor_dtype_to_np_dtype(self.float_type)))

    def ints(self, name: str, *values: int) -> str:
        """Add an int64 [len(values)] constant; return its name."""
        return self.constant(name, np.array(values, np.int64))

    def int_scalar(self, name: str, value: int) -> str:
        """Add an int64 constant without dimensions; return its name."""
        self.constants.append(numpy_helper.from_array(np.array(value, np.int64), name))
        return name


@dataclass(frozen=True, slots=True)
class RealRows:
    """A layout without padding: names of tensors that convert between [real tokens, …] and padded shapes.

    Attributes:
        real_rows: int64 [real tokens], each real token's row in [batch * tokens].
        real_places: int64 [real tokens], each real token's position in its text, from 0.
        padded_rows: int64 [batch * tokens], each position's row among the real tokens; 0 for padding.
        head_rows: Names of three int64 [batch, heads, tokens] tensors: each query's, key's and value's row in [real
            tokens * 3 * heads, width].
        token_rows: int64 [real tokens, heads], the row of each token's heads in [batch * heads * tokens, width].
        score_bias: Bias of the attention scores; see `write_score_bias`.
    """

    nodes: Nodes
    real_rows: str
    real_places: str
    padded_rows: str
    padded_shape: str
    head_rows: tuple[str, ...]
    token_rows: str
    score_bias: str

    def embed(self, word_table: str, position_table: str) -> str:
        """Write the sum of word and position vectors, [real tokens, dims]; return its name."""
        nodes = self.nodes
        flat_ids = nodes.op("Reshape", INPUT_IDS, "all", name="flat_ids")
        ids = nodes.op("Gather", flat_ids, self.real_rows, name="ids", axis=0)
        words = nodes.op("Gather", word_table, ids, name="words", axis=0)
        positions = nodes.op("Gather", position_table, self.real_places, name="positions", axis=0)
        return nodes.op("Add", words, positions, name="embedding_sum")

    def rows_of(self, name: str, rows: str) -> str:
        """Take the real tokens' rows, [real tokens, …], of [batch * tokens, …]; return `name`."""
        return self.nodes.op("Gather", rows, self.real_rows, name=name, axis=0)

    def split_heads(self, name: str, qkv: str) -> tuple[str, str, str]:
        """Spread [real tokens, 3 * dims] into queries, keys and values, each [batch, heads, tokens, width]."""
        rows = self.nodes.op("Reshape", qkv, "head_shape", name=f"{name}.rows")
        queries, keys, values = (
            self.nodes.op("Gather", rows, index, name=f"{name}.{part}", axis=0)
            for part, index in zip(("queries", "keys", "values"), self.head_rows, strict=True)
        )
        return queries, keys, values

    def join_heads(self, name: str, attended: str) -> str:
        """Convert [batch, heads, tokens, width] back to [real tokens, dims]."""
        rows = self.nodes.op("Reshape", attended, "head_shape", name=f"{name}.rows")
        real = self.nodes.op("Gather", rows, self.token_rows, name=f"{name}.real", axis=0)
        return self.nodes.op("Reshape", real, "flat_shape", name=name)

    def write_output(self, hidden: str, output: str) -> None:
        """Spread [real tokens, dims] to the output [batch, tokens, dims]; padding repeats the first real token."""
        spread = self.nodes.op("Gather", hidden, self.padded_rows, name=f"{output}.padded", axis=0)
        self.nodes.op("Reshape", spread, self.padded_shape, name=output)


def lay_out_real(nodes: Nodes, encoder: Encoder, model: CatalogModel) -> RealRows:
    """Write the indices of a batch's real tokens, and shared constants."""
    heads = model.heads
    zero, one, all_ = nodes.ints("zero", 0), nodes.ints("one", 1), nodes.ints("all", -1)
    nodes.ints("flat_shape", -1, model.dims)
    nodes.ints("head_shape", -1, model.dims // heads)
    shape = nodes.op("Shape", INPUT_IDS, name="shape")
    batch = nodes.op("Gather", shape, zero, name="batch", axis=0)
    tokens = nodes.op("Gather", shape, one, name="tokens", axis=0)

    flat_mask = nodes.op("Reshape", ATTENTION_MASK, all_, name="flat_mask")
    is_real = nodes.op("Cast", flat_mask, name="is_real", to=TensorProto.BOOL)
    real_rows = nodes.op("Reshape", nodes.op("NonZero", is_real, name="real"), all_, name="real_rows")
    real_places = nodes.op("Mod", real_rows, tokens, name="real_places")
    count = nodes.op("CumSum", flat_mask, nodes.constant("axis_0", np.int64(0)), name="count")
    padded_rows = nodes.op("Mul", nodes.op("Sub", count, one, name="row"), flat_mask, name="padded_rows")

    # Each token has 3 * heads rows in [real tokens * 3 * heads, width]: first queries, then keys, then values.
    by_text = nodes.op("Concat", one, batch, one, tokens, name="by_text_shape", axis=0)
    token_of = nodes.op("Reshape", padded_rows, by_text, name="token_of")
    first = nodes.op("Mul", token_of, nodes.ints("rows_a_token", 3 * heads), name="first_head_row")
    offsets = np.arange(3 * heads).reshape(3, 1, heads, 1)
    every = nodes.op("Add", first, nodes.constant("head_offsets", offsets), name="every_head_row")
    parts = nodes.split(every, nodes.ints("thirds", 1, 1, 1), "query_part", "key_part", "value_part", axis=0)
    head_rows = tuple(nodes.op("Squeeze", part, zero, name=f"{part}_rows") for part in parts)

    # Rows for converting back from [batch * heads * tokens, width].
    text = nodes.op("Div", real_rows, tokens, name="text")
    text_rows = nodes.op("Mul", tokens, nodes.ints("heads", heads), name="rows_a_text")
    start = nodes.op("Add", nodes.op("Mul", text, text_rows, name="text_row"), real_places, name="start_row")
    head_starts = nodes.op("Mul", nodes.constant("head_numbers", np.arange(heads)), tokens, name="head_starts")
    token_rows = nodes.op("Add", nodes.op("Unsqueeze", start, one, name="starts"), head_starts, name="token_rows")
    return RealRows(
        nodes=nodes,
        real_rows=real_rows,
        real_places=real_places,
        padded_rows=padded_rows,
        padded_shape=nodes.op("Concat", batch, tokens, nodes.ints("dims", model.dims), name="padded_shape", axis=0),
        head_rows=head_rows,
        token_rows=token_rows,
        score_bias=write_score_bias(nodes, encoder.relative_bias, tokens, masked=_NO_TOKEN_PENALTY),
    )


def write_score_bias(nodes: Nodes, relative_bias: Array | None, tokens: str, *, masked: float) -> str:
    """Write the bias of the attention scores: -`masked` for a padding key, otherwise 0, plus any `relative_bias`.

    `nodes` must contain the constant ``one``; `tokens` is the name of the padded length. Return the name of a float
    tensor: [batch, heads, tokens, tokens] with a `relative_bias` (a bias by distance), otherwise [batch, 1, 1, tokens].
    """
    mask = nodes.op("Cast", ATTENTION_MASK, name="mask", to=nodes.float_type)
    below = nodes.op("Sub", mask, nodes.floats("float_one", np.float32(1)), name="below")
    lowered = nodes.op("Mul", below, nodes.floats("masked", np.float32(masked)), name="key_bias")
    key_bias = nodes.op("Unsqueeze", lowered, nodes.ints("axes_1_2", 1, 2), name="key_bias_4d")
    if relative_bias is None:
        return key_bias
    middle = (relative_bias.shape[1] - 1) // 2
    limits = (nodes.constant("range_start", np.int64(0)), nodes.op("Squeeze", tokens, name="range_end"))
    places = nodes.op("Range", *limits, nodes.constant("range_step", np.int64(1)), name="places")
    queries = nodes.op("Unsqueeze", places, "one", name="query_places")
    distances = nodes.op("Sub", places, queries, name="distances")
    columns = nodes.op("Add", distances, nodes.ints("middle", middle), name="distance_columns")
    table = nodes.floats("distance_table", relative_bias)
    by_head = nodes.op("Gather", table, columns, name="distance_bias", axis=1)
    return nodes.op("Add", key_bias, by_head, name="score_bias")


@dataclass(frozen=True, slots=True)
class EveryRow:
    """A layout with padding: names of tensors that convert between [batch * tokens, …] and [batch, heads, tokens, …].

    Attributes:
        tokens: Padded length, int64 [1].
        split_shape: (batch, tokens, 3, heads, width).
    """

    nodes: Nodes
    tokens: str
    padded_shape: str
    split_shape: str
    score_bias: str

    def embed(self, word_table: str, position_table: str) -> str:
        """Write the sum of word and position vectors, [batch * tokens, dims]; return its name."""
        nodes = self.nodes
        words = nodes.op("Gather", word_table, INPUT_IDS, name="words", axis=0)
        positions = nodes.op("Slice", position_table, "zero", self.tokens, "zero", name="positions")
        total = nodes.op("Add", words, positions, name="padded_embedding_sum")
        return nodes.op("Reshape", total, "flat_shape", name="embedding_sum")

    def rows_of(self, name: str, rows: str) -> str:
        """Take every row of [batch * tokens, …]; return `name`."""
        return self.nodes.op("Identity", rows, name=name)

    def split_heads(self, name: str, qkv: str) -> tuple[str, str, str]:
        """Spread [batch * tokens, 3 * dims] into queries, keys and values, each [batch, heads, tokens, width]."""
        nodes = self.nodes
        parts = nodes.op("Reshape", qkv, self.split_shape, name=f"{name}.parts")
        turned = nodes.op("Transpose", parts, name=f"{name}.turned", perm=[2, 0, 3, 1, 4])
        names = [f"{name}.{part}" for part in ("queries", "keys", "values")]
        split = nodes.split(turned, "thirds", *(f"{part}_part" for part in names), axis=0)
        queries, keys, values = (
            nodes.op("Squeeze", part, "zero", name=whole) for part, whole in zip(split, names, strict=True)
        )
        return queries, keys, values

    def join_heads(self, name: str, attended: str) -> str:
        """Convert [batch, heads, tokens, width] back to [batch * tokens, dims]."""
        turned = self.nodes.op("Transpose", attended, name=f"{name}.turned", perm=[0, 2, 1, 3])
        return self.nodes.op("Reshape", turned, "flat_shape", name=name)

    def write_output(self, hidden: str, output: str) -> None:
        """Reshape [batch * tokens, dims] to the output, [batch, tokens, dims], as float32."""
        if self.nodes.float_type == TensorProto.FLOAT:
            self.nodes.op("Reshape", hidden, self.padded_shape, name=output)
            return
        shaped = self.nodes.op("Reshape", hidden, self.padded_shape, name=f"{output}.half")
        self.nodes.op("Cast", shaped, name=output, to=TensorProto.FLOAT)


def lay_out_every(nodes: Nodes, encoder: Encoder, model: CatalogModel) -> EveryRow:
    """Write shared constants and the shapes of a padded batch."""
    zero, one = nodes.ints("zero", 0), nodes.ints("one", 1)
    nodes.ints("flat_shape", -1, model.dims)
    nodes.ints("thirds", 1, 1, 1)
    shape = nodes.op("Shape", INPUT_IDS, name="shape")
    batch = nodes.op("Gather", shape, zero, name="batch", axis=0)
    tokens = nodes.op("Gather", shape, one, name="tokens", axis=0)
    heads = nodes.ints("head_shape", 3, model.heads, model.dims // model.heads)
    return EveryRow(
        nodes=nodes,
        tokens=tokens,
        padded_shape=nodes.op("Concat", batch, tokens, nodes.ints("dims", model.dims), name="padded_shape", axis=0),
        split_shape=nodes.op("Concat", batch, tokens, heads, name="split_shape", axis=0),
        score_bias=write_score_bias(nodes, encoder.relative_bias, tokens, masked=_PADDING_PENALTY),
    )
