"""Run encoders and graders in plain float64, to compute golden vectors for `verify`."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from gradewire_models.catalog.entries import ADAPTER_CONFIG, ADAPTER_WEIGHTS, HEAD_WEIGHTS, CatalogModel
from gradewire_models.repository.grader_input import begin_and_separator

Array64 = NDArray[np.float64]

_erf = np.vectorize(math.erf, otypes=[np.float64])

# The numbers of tokens in a piece's question, reference and answer: 0, a few, and up to the limit.
_GRADER_LENGTHS: Final = (
    (0, 1, 1),
    (7, 1, 1),
    (9, 2, 0),
    (5, 3, 2),
    (11, 2, 3),
    (0, 6, 9),
    (14, 4, 12),
    (8, 24, 31),
    (64, 2, 1),
    (3, 64, 2),
    (20, 12, 90),
    (64, 64, 124),
    (0, 0, 252),
)

GOLDEN_FILE = "golden.npz"

_TEXT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 17, 24, 33, 48, 90)
_SEED = 20240613


@dataclass(frozen=True, slots=True)
class ReferenceVectors:
    """A text's unit-length sentence vector, float64 [dims], and token vectors by layer, float64 [tokens, dims]."""

    sentence: Array64
    tokens_by_layer: Mapping[int, Array64]


def reference_vectors(
    path: Path, model: CatalogModel, texts: Sequence[NDArray[np.int64]], starts: Sequence[int] | None = None
) -> list[ReferenceVectors]:
    """Encode `texts`, each int64 [tokens] of token ids, with the weights in a safetensors file.

    An adapter's matrices, in the same directory, are multiplied with the activations instead of merged. `starts`
    contains the index of each text's first token with token type 1; None means that no text has this token type.

    Raises:
        KeyError: A tensor is missing.
    """
    adapter = _Adapter.beside(path) if model.adapter else None
    weights = _Weights(load_file(path), model, adapter)
    ends = [len(ids) for ids in texts] if starts is None else starts
    texts_rows = [weights.embed(ids, end) for ids, end in zip(texts, ends, strict=True)]
    by_layer: list[dict[int, Array64]] = [{} for _ in texts]
    # Process all texts layer by layer, to convert each matrix to float64 only once.
    for number in range(model.layers):
        encode = weights.layer(number)
        texts_rows = [encode(rows) for rows in texts_rows]
        for layers, rows in zip(by_layer, texts_rows, strict=True):
            layers[number + 1] = rows
    means = [rows.mean(axis=0) for rows in texts_rows]
    return [ReferenceVectors(mean / np.linalg.norm(mean), layers) for mean, layers in zip(means, by_layer, strict=True)]


@dataclass(frozen=True, slots=True)
class _Adapter:
    tensors: Mapping[str, NDArray[np.floating]]
    scale: float

    @classmethod
    def beside(cls, path: Path) -> "_Adapter":
        settings = json.loads(path.with_name(ADAPTER_CONFIG).read_text(encoding="utf-8"))
        return cls(load_file(path.with_name(ADAPTER_WEIGHTS)), settings["lora_alpha"] / settings["r"])

    def of(self, name: str) -> tuple[Array64, Array64] | None:
        narrow, wide = (self.tensors.get(f"base_model.model.{name}.lora_{side}.weight") for side in "AB")
        if narrow is None or wide is None:
            return None
        return narrow.astype(np.float64).T, self.scale * wide.astype(np.float64).T


@dataclass(frozen=True, slots=True)
class _Weights:
    tensors: Mapping[str, NDArray[np.float32]]
    model: CatalogModel
    adapter: _Adapter | None

    def embed(self, ids: NDArray[np.int64], end_of_first_type: int) -> Array64:
        words = self.tensors["embeddings.word_embeddings.weight"][ids]
        places = np.arange(len(ids)) + self.model.position_offset
        rows = words.astype(np.float64) + self.tensors["embeddings.position_embeddings.weight"][places]
        if self.model.architecture == "bert":
            types = np.arange(len(ids)) >= end_of_first_type
            rows += self.tensors["embeddings.token_type_embeddings.weight"][types.astype(np.int64)]
        return self.norm("embeddings.LayerNorm")(rows)

    def layer(self, number: int) -> Callable[[Array64], Array64]:
        at = f"encoder.layer.{number}"
        attend, attention_norm = self.attention(at)
        up, down = self.linear(f"{at}.intermediate.dense"), self.linear(f"{at}.output.dense")
        out_norm = self.norm(f"{at}.output.LayerNorm")

        def encode(rows: Array64) -> Array64:
            rows = attention_norm(rows + attend(rows))
            wide = up(rows)
            wide = 0.5 * wide * (1 + _erf(wide / math.sqrt(2)))
            return out_norm(rows + down(wide))

        return encode

    def attention(self, at: str) -> tuple[Callable[[Array64], Array64], Callable[[Array64], Array64]]:
        if self.model.architecture == "bert":
            names = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
            out_name, norm_name = f"{at}.attention.output.dense", f"{at}.attention.output.LayerNorm"
            bias_table = None
        else:
            names = [f"{at}.attention.attn.{part}" for part in ("q", "k", "v")]
            out_name, norm_name = f"{at}.attention.attn.o", f"{at}.attention.LayerNorm"
            bias_table = self.tensors["encoder.relative_attention_bias.weight"].astype(np.float64)
        query, key, value, out = (self.linear(name) for name in (*names, out_name))
        heads = self.model.heads
        width = self.model.dims // heads

        def attend(rows: Array64) -> Array64:
            queries, keys, values = (np.stack(np.split(part(rows), heads, axis=1)) for part in (query, key, value))
            scores = queries @ keys.transpose(0, 2, 1) / math.sqrt(width)
            if bias_table is not None:
                scores += _distance_bias(bias_table, len(rows))
            shares = np.exp(scores - scores.max(axis=2, keepdims=True))
            shares /= shares.sum(axis=2, keepdims=True)
            return out(np.concatenate(list(shares @ values), axis=1))

        return attend, self.norm(norm_name)

    def linear(self, name: str) -> Callable[[Array64], Array64]:
        weight, bias = self.tensors[f"{name}.weight"].astype(np.float64), self.tensors[f"{name}.bias"]
        low = self.adapter.of(name) if self.adapter else None
        if low is None:
            return lambda rows: rows @ weight.T + bias
        narrow, wide = low
        return lambda rows: rows @ weight.T + bias + rows @ narrow @ wide

    def norm(self, name: str) -> Callable[[Array64], Array64]:
        scale, shift = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]

        def normalise(rows: Array64) -> Array64:
            centred = rows - rows.mean(axis=1, keepdims=True)
            variance = (centred**2).mean(axis=1, keepdims=True)
            normal: Array64 = centred / np.sqrt(variance + self.model.layer_norm_epsilon) * scale + shift
            return normal

        return normalise


def _distance_bias(table: Array64, tokens: int) -> Array64:
    """Return each position pair's bias, [heads, queries, keys], from the published table, [buckets, heads]."""
    half = len(table) // 2
    exact = half // 2

    def bucket(distance: int) -> int:
        start = half if distance > 0 else 0
        size = abs(distance)
        if size >= exact:
            growth = math.log(size / exact) / math.log(128 / exact)
            # The published model computes in float32. Without this margin, an exact power could fall into the bucket
            # below.
            size = min(exact + int(growth * (half - exact) + 1e-6), half - 1)
        return start + size

    by_distance = {distance: table[bucket(distance)] for distance in range(1 - tokens, tokens)}
    pairs = [[by_distance[key - query] for key in range(tokens)] for query in range(tokens)]
    return np.moveaxis(np.array(pairs), 2, 0)


class DrawnPiece(NamedTuple):
    """A piece's token ids, int64 [tokens], and the index of its first token with token type 1."""

    ids: NDArray[np.int64]
    start: int


def draw_pieces(tokenizer: Path, vocabulary: int, rng: np.random.Generator) -> list[DrawnPiece]:
    """Draw pieces of many lengths, in mixed order. The drawn ids are below `vocabulary` and are no special tokens."""
    known = Tokenizer.from_file(str(tokenizer))
    begin, separator = begin_and_separator(known)
    special = [number for number, token in known.get_added_tokens_decoder().items() if token.special]
    plain = np.setdiff1d(np.arange(vocabulary), [*special, begin, separator])
    pieces = []
    for lengths in rng.permutation(np.array(_GRADER_LENGTHS)):
        question, reference, answer = (rng.choice(plain, length) for length in lengths)
        front = [[begin], question, [separator], reference, [separator]]
        ids = np.concatenate([*front, answer, [separator]]).astype(np.int64)
        pieces.append(DrawnPiece(ids, sum(map(len, front))))
    return pieces


def reference_logits(
    path: Path, model: CatalogModel, texts: Sequence[NDArray[np.int64]], starts: Sequence[int]
) -> Array64:
    """Return each piece's logit, float64 [pieces], computed like the vectors in `reference_vectors`.

    The file with the head must be next to the file `path`.
    """
    head = load_file(path.with_name(HEAD_WEIGHTS))
    weight, bias = (head[name].astype(np.float64) for name in ("weight", "bias"))
    vectors = reference_vectors(path, model, texts, starts)
    means = np.stack([text.tokens_by_layer[model.layers].mean(axis=0) for text in vectors])
    logits: Array64 = means @ weight[0] + bias[0]
    return logits


@dataclass(frozen=True, slots=True)
class Golden:
    """Golden texts and their vectors.

    Attributes:
        ids: Each text's token ids, int64 [tokens]. The lengths, from 1 to the model's limit, are in mixed order.
        sentences: Sentence vectors, float32 [texts, dims], of unit length; for a grader, logits, float32 [texts, 1].
        tokens_by_layer: Token vectors of the last and each chosen earlier layer, float32 [tokens of all texts, dims] in
            the order of `ids`; {} for a grader.
    """

    ids: tuple[NDArray[np.int64], ...]
    sentences: NDArray[np.float32]
    tokens_by_layer: dict[int, NDArray[np.float32]]


def make_golden(weights: Path, model: CatalogModel, vocabulary: int) -> Golden:
    """Draw texts of many lengths from the ids below `vocabulary`, and compute their vectors without the graph.

    Raises:
        KeyError: The published safetensors file lacks a tensor.
    """
    if model.kind == "grader":
        return make_grader_golden(weights, model, vocabulary)
    rng = np.random.default_rng(_SEED)
    lengths = [length for length in _TEXT_LENGTHS if length < model.max_tokens] + [model.max_tokens]
    ids = tuple(rng.integers(0, vocabulary, length) for length in rng.permutation(lengths))
    vectors = reference_vectors(weights, model, ids)
    return Golden(
        ids=ids,
        sentences=np.stack([text.sentence for text in vectors]).astype(np.float32),
        tokens_by_layer={
            layer: np.concatenate([text.tokens_by_layer[layer] for text in vectors]).astype(np.float32)
            for layer in (*model.token_layers, model.layers)
        },
    )


def make_grader_golden(weights: Path, model: CatalogModel, vocabulary: int) -> Golden:
    """Draw pieces of many lengths in a grader's format, and compute their logits without the graph."""
    pieces = draw_pieces(weights.with_name("tokenizer.json"), vocabulary, np.random.default_rng(_SEED))
    logits = reference_logits(weights, model, [piece.ids for piece in pieces], [piece.start for piece in pieces])
    return Golden(tuple(piece.ids for piece in pieces), logits.astype(np.float32)[:, None], {})


def save_golden(golden: Golden, path: Path) -> None:
    """Write golden vectors to an npz file.

    Raises:
        OSError: The file is not writable.
    """
    layers = sorted(golden.tokens_by_layer)
    np.savez(
        path,
        lengths=np.array([len(text) for text in golden.ids]),
        ids=np.concatenate(golden.ids),
        sentences=golden.sentences,
        layers=np.array(layers),
        tokens=np.stack([golden.tokens_by_layer[layer] for layer in layers]) if layers else np.zeros(0, np.float32),
    )


def load_golden(path: Path) -> Golden:
    """Read a file from `save_golden`; raise the errors of `open_golden`."""
    with open_golden(path) as (ids, file):
        layers = {int(layer): rows for layer, rows in zip(file["layers"], file["tokens"], strict=True)}
        return Golden(ids, file["sentences"], layers)


@contextmanager
def open_golden(path: Path) -> Iterator[tuple[tuple[NDArray[np.int64], ...], Mapping[str, Any]]]:
    """Open an npz file of golden texts; yield each text's token ids, and all arrays by name.

    Raises:
        OSError: The file is not readable.
        ValueError: The file has a different format, or lacks an array that the caller reads.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            yield tuple(np.split(file["ids"], np.cumsum(file["lengths"])[:-1])), file
    except (KeyError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is not a file of golden values: {error}") from error
