"""Operations that an encoder needs, counted from its shape."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Of an encoder: layers, length of a vector, and width of the feed-forward part."""

    layers: int
    dims: int
    feed_forward_dims: int


MINILM = Shape(layers=6, dims=384, feed_forward_dims=1536)


def token_flops(shape: Shape, tokens: int) -> int:
    """Multiplications and additions for one token of a text of `tokens` tokens.

    Four products of dims x dims (queries, keys, values, output), two of dims x feed-forward, and attention's two
    products over all tokens; two operations for each weight. Softmax, GELU and normalisation are left out, some per
    cent of it.
    """
    products = 4 * shape.dims**2 + 2 * shape.dims * shape.feed_forward_dims
    attention = 2 * tokens * shape.dims
    return shape.layers * 2 * (products + attention)
