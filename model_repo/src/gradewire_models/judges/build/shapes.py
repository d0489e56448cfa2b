"""Describe a language model's sizes and weights, without the file that they come from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers that determine the graph's shapes.

    Attributes:
        architecture: ``"qwen2"`` or ``"llama"``. In qwen2, a rotary pair has one value from each half of a head. In
            llama, it has two neighbouring values, because GGUF reorders the rows of llama's queries and keys.
        kv_heads: Number of heads for keys and values in a layer.
        norm_epsilon: Constant that every normalisation adds to the mean square.
        rope_base: Base of the rotary frequencies.
        context_tokens: Maximum sequence length in training, in tokens.
    """

    architecture: str
    layers: int
    dims: int
    heads: int
    kv_heads: int
    feed_forward_dims: int
    norm_epsilon: float
    rope_base: float
    context_tokens: int
    vocabulary: int

    @property
    def head_dim(self) -> int:
        """The width of a head."""
        return self.dims // self.heads


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """A layer's weights in float32; matrices are [outputs, inputs].

    Attributes:
        attention_norm: Scale [dims] before attention.
        query_key: [(heads + kv_heads) * head_dim, dims].
        value: [kv_heads * head_dim, dims].
        attention_out: [dims, heads * head_dim].
        feed_forward_norm: Scale [dims] before the feed-forward part.
        gate: [feed_forward_dims, dims], the input of SiLU.
        up: [feed_forward_dims, dims].
        down: [dims, feed_forward_dims].
    """

    attention_norm: Matrix
    query_key: Matrix
    query_key_bias: Matrix | None
    value: Matrix
    value_bias: Matrix | None
    attention_out: Matrix
    feed_forward_norm: Matrix
    gate: Matrix
    up: Matrix
    down: Matrix


class WeightSource(Protocol):
    """A model's weights in float32, read or made one part at a time."""

    sizes: Sizes

    @property
    def head_name(self) -> str:
        """The name of the tensor for logits: the head or, without a head, the embedding."""

    def tensor(self, name: str, *shape: int) -> Matrix:
        """Return a whole tensor."""

    def row_blocks(self, name: str) -> Iterator[Matrix]:
        """Yield a table [vocabulary, dims] in blocks of rows."""

    def layer(self, index: int) -> LayerWeights:
        """Return the weights of a layer."""
