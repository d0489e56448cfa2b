"""Make calibration texts, and compute the inputs of each matrix product in float64."""

import hashlib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gradewire_models.build.weights import Dense, Encoder, Norm
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.errors import BuildError

_TEXTS = 720
_WORD = re.compile(r"[a-z]{3,}")
Array64 = NDArray[np.float64]


def calibration_texts(tokenizer: Path) -> list[str]:
    """Return calibration texts for a model with this tokenizer.json. The texts are the same on every machine.

    Raises:
        BuildError: The vocabulary has no words for the text templates.
    """
    vocabulary = Tokenizer.from_file(str(tokenizer)).get_vocab(with_added_tokens=False)
    words = sorted(word for word in vocabulary if _WORD.fullmatch(word)) or sorted(vocabulary)
    if not words:
        raise BuildError(f"{tokenizer} has no words to calibrate with")
    made_of = tomllib.loads(resources.files(__package__).joinpath("calibration.toml").read_text(encoding="utf-8"))
    frames = made_of["frames"]
    texts = []
    for number in range(_TEXTS):
        pieces = frames[number % len(frames)].split("_")
        filled = [f"{piece}{words[_draw(number, place) % len(words)]}" for place, piece in enumerate(pieces[:-1])]
        texts.append("".join(filled) + pieces[-1])
    return texts


def texts_sha256(texts: list[str]) -> str:
    """Return the texts' digest, 64 hex characters, which a recipe pins."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _draw(text: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{text}.{place}".encode()).digest()[:8])


def tokenize(tokenizer: Path, texts: Sequence[str], max_tokens: int) -> list[NDArray[np.int64]]:
    """Return each text's token ids, int64 [tokens]: at most `max_tokens` ids, including special tokens."""
    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    reader.enable_truncation(max_tokens)
    return [np.array(encoding.ids, np.int64) for encoding in reader.encode_batch(list(texts))]


def entering_rows(
    encoder: Encoder, model: CatalogModel, texts: Sequence[NDArray[np.int64]]
) -> Iterator[Mapping[str, Array64]]:
    """Run the encoder on `texts` and yield the input rows of each layer's products.

    Yields:
        For each layer, the products' inputs, float64 [tokens of all texts, inputs], by the last part of the product's
        name (``qkv``, ``attention_out``, ``up`` or ``down``). The inputs include the next residual's bias if the graph
        adds this bias to them.
    """
    ids = np.concatenate(texts)
    places = np.concatenate([np.arange(len(text)) for text in texts])
    hidden = _norm(encoder.word_table[ids] + encoder.position_table[places], encoder.embedding_norm, model)
    for layer in encoder.layers:
        parts = [_dense(hidden, part) for part in (layer.query, layer.key, layer.value)]
        attended = _attend(parts, [len(text) for text in texts], encoder, model)
        middle = _norm(hidden + _dense(attended, layer.attention_out), layer.attention_norm, model)
        wide = _gelu(_dense(middle, layer.up))
        yield {
            "qkv": hidden + layer.attention_out.bias,
            "attention_out": attended,
            "up": middle + layer.down.bias,
            "down": wide,
        }
        hidden = _norm(middle + _dense(wide, layer.down), layer.out_norm, model)


def _dense(rows: Array64, dense: Dense) -> Array64:
    found: Array64 = rows @ dense.weight.astype(np.float64) + dense.bias
    return found


def _norm(rows: NDArray[np.floating], norm: Norm, model: CatalogModel) -> Array64:
    centred = rows - rows.mean(axis=1, keepdims=True, dtype=np.float64)
    variance = (centred**2).mean(axis=1, keepdims=True)
    normal: Array64 = centred / np.sqrt(variance + model.layer_norm_epsilon) * norm.scale + norm.shift
    return normal


def _attend(parts: list[Array64], lengths: Sequence[int], encoder: Encoder, model: CatalogModel) -> Array64:
    found = []
    ends = np.cumsum(lengths)
    width = model.dims // model.heads
    for length, end in zip(lengths, ends, strict=True):
        queries, keys, values = (np.stack(np.split(part[end - length : end], model.heads, axis=1)) for part in parts)
        scores = queries @ keys.transpose(0, 2, 1) / math.sqrt(width)
        if encoder.relative_bias is not None:
            distances = np.arange(length) - np.arange(length)[:, None]
            scores += encoder.relative_bias[:, distances + model.max_tokens - 1]
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        found.append(np.concatenate(list(shares @ values), axis=1))
    return np.concatenate(found)


def _gelu(rows: Array64) -> Array64:
    return 0.5 * rows * (1 + _erf(rows / math.sqrt(2)))


def _erf(values: Array64) -> Array64:
    # Abramowitz and Stegun 1964, 7.1.26: an error of at most 1.5e-7.
    size = np.abs(values)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    found: Array64 = np.copysign(1 - series * np.exp(-size * size), values)
    return found
