"""Run a judge in plain float32, to compute golden logits for `verify`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradewire_models.build.reference import open_golden
from gradewire_models.judges.build.shapes import LayerWeights, Matrix
from gradewire_models.judges.build.weights import JudgeWeights

TEXTS = (
    "<|im_start|>user\nWhich planet is known for its rings? Answer in one word.<|im_end|>\n<|im_start|>assistant\n",
    (
        "<|im_start|>system\nRate the answer: 1 is wrong, 2 is partly right, 3 is right.<|im_end|>\n<|im_start|>user\n"
        "Question: How many sides does a hexagon have?\nReference: six\nAnswer: It has 6 of them.<|im_end|>\n"
        "<|im_start|>assistant\nRating:"
    ),
    "The capital of France is",
    "Ein Satz auf Deutsch, dann ein paar Zahlen: 3, 14, 159,",
)
"""Short texts of different lengths: judge prompts and plain prose."""


class ReferencePass:
    """A judge's computation for some texts, layer by layer and without rounding."""

    def __init__(self, weights: JudgeWeights, texts: Sequence[Sequence[int]]) -> None:
        self._sizes = weights.sizes
        ids = sorted({token for text in texts for token in text})
        places = {token: place for place, token in enumerate(ids)}
        table = weights.rows("token_embd.weight", np.array(ids))
        self._texts = [table[[places[token] for token in text]] for text in texts]
        self._last: Matrix = np.empty((0, self._sizes.dims), np.float32)
        self._logits: list[Matrix] = []

    def advance(self, layer: LayerWeights) -> None:
        """Apply one layer."""
        for place, hidden in enumerate(self._texts):
            attended = hidden + self._attend(self._norm(hidden, layer.attention_norm), layer) @ layer.attention_out.T
            normed = self._norm(attended, layer.feed_forward_norm)
            gate = normed @ layer.gate.T
            opened = gate / (1 + np.exp(-gate))
            self._texts[place] = attended + (opened * (normed @ layer.up.T)) @ layer.down.T

    def finish_hidden(self, norm: Matrix) -> None:
        """Apply the final normalisation to each text's last token."""
        self._last = np.stack([self._norm(hidden[-1:], norm)[0] for hidden in self._texts])

    def add_logits(self, rows: Matrix) -> None:
        """Compute the logits for the next `rows` of the head, float32 [rows, dims]."""
        self._logits.append(self._last @ rows.T)

    def finish(self, weights: JudgeWeights) -> None:
        """Run all layers and the head, for a graph whose writer does not run them."""
        for index in range(self._sizes.layers):
            self.advance(weights.layer(index))
        self.finish_hidden(weights.tensor("output_norm.weight", self._sizes.dims))
        for block in weights.row_blocks(weights.head_name):
            self.add_logits(block)

    @property
    def logits(self) -> NDArray[np.float32]:
        """The logits of each text's last token, float32 [texts, vocabulary]."""
        return np.concatenate(self._logits, axis=1)

    def _norm(self, hidden: Matrix, scale: Matrix) -> Matrix:
        power = np.mean(hidden * hidden, axis=-1, keepdims=True) + np.float32(self._sizes.norm_epsilon)
        normed: Matrix = hidden / np.sqrt(power) * scale
        return normed

    def _attend(self, normed: Matrix, layer: LayerWeights) -> Matrix:
        sizes = self._sizes
        both = normed @ layer.query_key.T
        values = normed @ layer.value.T
        if layer.query_key_bias is not None and layer.value_bias is not None:
            both, values = both + layer.query_key_bias, values + layer.value_bias
        tokens = len(normed)
        turned = self._turn(both.reshape(tokens, sizes.heads + sizes.kv_heads, sizes.head_dim))
        queries, keys = turned[:, : sizes.heads], turned[:, sizes.heads :]
        values = values.reshape(tokens, sizes.kv_heads, sizes.head_dim)
        later = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
        mixed = np.empty_like(queries)
        for head in range(sizes.heads):
            group = head * sizes.kv_heads // sizes.heads
            scores = queries[:, head] @ keys[:, group].T / np.float32(math.sqrt(sizes.head_dim)) + later
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed[:, head] = shares / shares.sum(axis=1, keepdims=True) @ values[:, group]
        return mixed.reshape(tokens, -1)

    def _turn(self, heads: Matrix) -> Matrix:
        sizes = self._sizes
        frequencies = sizes.rope_base ** (-np.arange(0, sizes.head_dim, 2) / sizes.head_dim)
        angles = np.arange(len(heads))[:, None, None] * frequencies
        cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        half = sizes.head_dim // 2
        neighbours = sizes.architecture == "llama"
        first, second = (slice(0, None, 2), slice(1, None, 2)) if neighbours else (slice(half), slice(half, None))
        turned = np.empty_like(heads)
        turned[..., first] = heads[..., first] * cosines - heads[..., second] * sines
        turned[..., second] = heads[..., second] * cosines + heads[..., first] * sines
        return turned


@dataclass(frozen=True, slots=True)
class Golden:
    """The token ids of `TEXTS`, and the logits of each text's last token, float32 [texts, vocabulary]."""

    ids: tuple[NDArray[np.int64], ...]
    logits: NDArray[np.float32]


def save_golden(golden: Golden, path: Path) -> None:
    """Write golden logits to an npz file.

    Raises:
        OSError: The file is not writable.
    """
    lengths = np.array([len(text) for text in golden.ids])
    np.savez_compressed(path, lengths=lengths, ids=np.concatenate(golden.ids), logits=golden.logits)


def load_golden(path: Path) -> Golden:
    """Read a file from `save_golden`; raise the errors of `open_golden`."""
    with open_golden(path) as (ids, file):
        return Golden(ids, file["logits"])
