"""The arithmetic of a judge's graph once more, in plain numpy: every token attends to all before it, in one softmax."""

import math

import numpy as np
from numpy.typing import NDArray

from gradewire_models.judges.build.weights import JudgeWeights

Array = NDArray[np.float32]


def product(values: Array, matrix: Array) -> Array:
    weights = np.abs(matrix).max(axis=1) / np.float32(127)
    rounded_weights = np.rint(matrix / weights[:, None]).astype(np.int64)
    worth = (np.abs(values).max(axis=1, keepdims=True) / np.float32(127)).astype(np.float32)
    rounded = np.rint(values / worth).astype(np.int64)
    return ((rounded @ rounded_weights.T).astype(np.float32) * weights * worth).astype(np.float32)


def last_logits(weights: JudgeWeights, ids: list[int]) -> Array:
    sizes = weights.sizes
    table = weights.tensor("token_embd.weight", sizes.vocabulary, sizes.dims)
    units = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    hidden = (np.rint(table / units) * units).astype(np.float32)[ids]

    def norm(values: Array, scale: Array) -> Array:
        power = (values.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + sizes.norm_epsilon
        return (values / np.sqrt(power) * scale).astype(np.float32)

    def turn(heads: Array) -> Array:
        pairs = sizes.head_dim // 2
        angles = np.arange(len(ids))[:, None] * sizes.rope_base ** (-np.arange(pairs) / pairs)
        rotation = np.exp(1j * angles)[:, None]
        if sizes.architecture == "llama":
            turned = (heads[..., ::2] + 1j * heads[..., 1::2]) * rotation
            return np.stack([turned.real, turned.imag], axis=-1).reshape(heads.shape).astype(np.float32)
        turned = (heads[..., :pairs] + 1j * heads[..., pairs:]) * rotation
        return np.concatenate([turned.real, turned.imag], axis=-1).astype(np.float32)

    visible = np.tri(len(ids), dtype=bool)
    for index in range(sizes.layers):
        layer = weights.layer(index)
        normed = norm(hidden, layer.attention_norm)
        both, values = product(normed, layer.query_key), product(normed, layer.value)
        if layer.query_key_bias is not None and layer.value_bias is not None:
            both, values = both + layer.query_key_bias, values + layer.value_bias
        heads = turn(both.reshape(len(ids), -1, sizes.head_dim))
        values = values.reshape(len(ids), -1, sizes.head_dim)
        mixed = np.empty((len(ids), sizes.heads, sizes.head_dim), np.float32)
        for head in range(sizes.heads):
            group = head // (sizes.heads // sizes.kv_heads)
            scores = heads[:, head] @ heads[:, sizes.heads + group].T / math.sqrt(sizes.head_dim)
            shares = np.exp(np.where(visible, scores, -np.inf))
            mixed[:, head] = shares / shares.sum(axis=1, keepdims=True) @ values[:, group]
        hidden = hidden + product(mixed.reshape(len(ids), -1), layer.attention_out)
        normed = norm(hidden, layer.feed_forward_norm)
        gate = product(normed, layer.gate)
        hidden = hidden + product(gate / (1 + np.exp(-gate)) * product(normed, layer.up), layer.down)
    normed = norm(hidden[-1:], weights.tensor("output_norm.weight", sizes.dims))
    return product(normed, weights.tensor(weights.head_name, sizes.vocabulary, sizes.dims))[0]
