"""Where the tokens of a batch are: every place of it, padding included, for GPUs.

Nothing here depends on the data, only on the shape of the batch, which is what TensorRT plans for.
"""

from dataclasses import dataclass

from onnx import TensorProto

from gradewire_models.build.graph.nodes import Nodes
from gradewire_models.build.graph.unpadded import write_score_bias
from gradewire_models.build.weights.encoder import Encoder
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.repository.config import INPUT_IDS

# Its exponential is 0 in any arithmetic, and float16, which ends at 65504, still holds it.
_MASKED = 3e4


@dataclass(frozen=True, slots=True)
class EveryRow:
    """Names of the tensors that translate between [batch * tokens, …] and [batch, heads, tokens, …].

    Attributes:
        nodes: Where operators are written.
        tokens: Padded length, int64 [1].
        padded_shape: (batch, tokens, dims).
        split_shape: (batch, tokens, 3, heads, width).
        score_bias: See `write_score_bias`.
    """

    nodes: Nodes
    tokens: str
    padded_shape: str
    split_shape: str
    score_bias: str

    def embed(self, word_table: str, position_table: str) -> str:
        """Sum of word and position vectors, [batch * tokens, dims]."""
        nodes = self.nodes
        words = nodes.op("Gather", word_table, INPUT_IDS, name="words", axis=0)
        positions = nodes.op("Slice", position_table, "zero", self.tokens, "zero", name="positions")
        total = nodes.op("Add", words, positions, name="padded_embedding_sum")
        return nodes.op("Reshape", total, "flat_shape", name="embedding_sum")

    def split_heads(self, name: str, qkv: str) -> tuple[str, str, str]:
        """Spreads [batch * tokens, 3 * dims] into queries, keys and values, each [batch, heads, tokens, width]."""
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
        """Brings [batch, heads, tokens, width] back to [batch * tokens, dims]."""
        turned = self.nodes.op("Transpose", attended, name=f"{name}.turned", perm=[0, 2, 1, 3])
        return self.nodes.op("Reshape", turned, "flat_shape", name=name)

    def write_output(self, hidden: str, output: str) -> None:
        """Gives [batch * tokens, dims] the shape of the output, [batch, tokens, dims], and its type, float32."""
        if self.nodes.float_type == TensorProto.FLOAT:
            self.nodes.op("Reshape", hidden, self.padded_shape, name=output)
            return
        shaped = self.nodes.op("Reshape", hidden, self.padded_shape, name=f"{output}.half")
        self.nodes.op("Cast", shaped, name=output, to=TensorProto.FLOAT)


def lay_out_every(nodes: Nodes, encoder: Encoder, model: CatalogModel) -> EveryRow:
    """Writes the shapes of a batch, and shared constants (``zero``, ``one`` …)."""
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
        score_bias=write_score_bias(nodes, encoder.relative_bias, tokens, masked=_MASKED),
    )
