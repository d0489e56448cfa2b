"""What an encoder's run needs at least, counted from its shape: operations, bytes of memory, and so time on a card."""

from dataclasses import dataclass
from typing import Final

from benchmarks.gpu.cards import Card

_FP16_BYTES: Final = 2


@dataclass(frozen=True)
class Shape:
    """Of an encoder: layers, length of a vector, and width of the feed-forward part."""

    layers: int
    dims: int
    feed_forward_dims: int

    @property
    def layer_weights(self) -> int:
        """Of one layer: four matrices of dims x dims (queries, keys, values, output), two of dims x feed-forward."""
        return 4 * self.dims**2 + 2 * self.dims * self.feed_forward_dims


@dataclass(frozen=True, slots=True)
class Least:
    """The least time that a card takes for a run.

    Attributes:
        compute_s: For its operations.
        memory_s: For what it has to read.
    """

    compute_s: float
    memory_s: float

    @property
    def roofline_s(self) -> float:
        """The longer of both: a run cannot be done sooner."""
        return max(self.compute_s, self.memory_s)

    @property
    def bound(self) -> str:
        """What it is for."""
        return "compute" if self.compute_s >= self.memory_s else "memory"


MINILM = Shape(layers=6, dims=384, feed_forward_dims=1536)


def token_flops(shape: Shape, tokens: int) -> int:
    """Multiplications and additions for one token of a text of `tokens` tokens.

    The products with all weights, and attention's two products over all tokens; two operations for each weight.
    Softmax, GELU and normalisation are left out, some per cent of it.
    """
    attention = 2 * tokens * shape.dims
    return shape.layers * 2 * (shape.layer_weights + attention)


def least_bytes(shape: Shape, all_tokens: int) -> int:
    """Bytes of fp16 that a run reads from the card's memory: all weights once, and a row of the word table for a token.

    What passes between layers is left out, for it may stay in the card's cache.
    """
    return _FP16_BYTES * (shape.layers * shape.layer_weights + all_tokens * shape.dims)


def least(shape: Shape, texts: int, tokens: int, card: Card) -> Least:
    """The least time for a run of `texts` texts of `tokens` tokens each."""
    flops = texts * tokens * token_flops(shape, tokens)
    return Least(flops / card.flops, least_bytes(shape, texts * tokens) / card.memory_bytes_per_s)
