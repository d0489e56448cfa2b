"""Compute an encoder's minimum run time on a card, from its operations and bytes."""

import re
from dataclasses import dataclass
from typing import Final

_FP16_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Card:
    """A card's two limits; some data sheets print twice the `flops`, for sparsity.

    Attributes:
        flops: Dense float16 operations per second on tensor cores.
        memory_bytes_per_s: Memory bandwidth.
    """

    flops: float
    memory_bytes_per_s: float


CARDS: Final = {
    "H200 NVL": Card(835e12, 4.8e12),
    "H200": Card(989e12, 4.8e12),
    "H100 PCIe": Card(756e12, 2.0e12),
    "H100 NVL": Card(835e12, 3.9e12),
    "H100": Card(989e12, 3.35e12),
    "A100-SXM4-80GB": Card(312e12, 2.039e12),
    "A100 80GB": Card(312e12, 1.935e12),
    "A100": Card(312e12, 1.555e12),
    "L40S": Card(362e12, 864e9),
    "L40": Card(181e12, 864e9),
    "L4": Card(121e12, 300e9),
    "A10": Card(125e12, 600e9),
    "T4": Card(65e12, 320e9),
}
"""Cards by a word in nvidia-smi's name; the first match counts.

The values are from NVIDIA's data sheets (nvidia.com), except for the 40 GB A100 (white paper on Ampere) and the T4's
memory (product brief).
"""


def card_named(name: str) -> Card | None:
    """Return the card with this name, or None; compare whole words because an A10G is not an A10."""
    fits = (card for word, card in CARDS.items() if re.search(rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])", name))
    return next(fits, None)


@dataclass(frozen=True)
class Shape:
    """An encoder's number of layers, vector length, and feed-forward width."""

    layers: int
    dims: int
    feed_forward_dims: int

    @property
    def layer_weights(self) -> int:
        """Weights in a layer: 4 dims x dims (query, key, value, output) and 2 dims x feed-forward."""
        return 4 * self.dims**2 + 2 * self.dims * self.feed_forward_dims


@dataclass(frozen=True, slots=True)
class Least:
    """The minimum time for a run."""

    compute_s: float
    memory_s: float

    @property
    def roofline_s(self) -> float:
        """The longer of the two times; no run can be faster."""
        return max(self.compute_s, self.memory_s)

    @property
    def bound(self) -> str:
        """The limit that takes longer, "compute" or "memory"."""
        return "compute" if self.compute_s >= self.memory_s else "memory"


MINILM = Shape(layers=6, dims=384, feed_forward_dims=1536)


def token_flops(shape: Shape, tokens: int) -> int:
    """Return the operations for one token in a text with `tokens` tokens.

    These are the products with all weights (two operations per weight), and attention's two products over all tokens.
    Softmax, GELU and normalisation add only a few per cent.
    """
    attention = 2 * tokens * shape.dims
    return shape.layers * 2 * (shape.layer_weights + attention)


def least_bytes(shape: Shape, all_tokens: int) -> int:
    """Return the bytes that an fp16 run reads from memory: all weights once, and a row of the word table per token.

    Values between layers are ignored because they may stay in the card's cache.
    """
    return _FP16_BYTES * (shape.layers * shape.layer_weights + all_tokens * shape.dims)


def least(shape: Shape, texts: int, tokens: int, card: Card) -> Least:
    """Return the minimum time for a run of `texts` texts with `tokens` tokens each."""
    flops = texts * tokens * token_flops(shape, tokens)
    return Least(flops / card.flops, least_bytes(shape, texts * tokens) / card.memory_bytes_per_s)
