"""Golden vectors: token ids of many lengths and what the reference makes of them, kept beside a model for `verify`."""

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from gradewire_models.build.reference.encoder import reference_vectors
from gradewire_models.build.reference.grader import draw_pieces, reference_logits
from gradewire_models.catalog.loading import CatalogModel

GOLDEN_FILE = "golden.npz"

_SHORT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 17, 24, 33, 48, 90)
_SEED = 20240613


@dataclass(frozen=True, slots=True)
class Golden:
    """Texts and their vectors.

    Attributes:
        ids: One int64 [tokens] a text; lengths from 1 to the model's limit, in mixed order.
        sentences: float32 [texts, dims], of unit length; of a grader its logits, float32 [texts, 1].
        tokens_by_layer: For the last and every chosen earlier layer, one float32 [tokens, dims] a text, joined along
            the tokens in the order of `ids`; empty for a grader.
    """

    ids: tuple[NDArray[np.int64], ...]
    sentences: NDArray[np.float32]
    tokens_by_layer: dict[int, NDArray[np.float32]]


def make_golden(weights: Path, model: CatalogModel, vocabulary: int) -> Golden:
    """Draws texts of unequal length and computes their vectors independently of the graph.

    Args:
        weights: The published safetensors file.
        model: What it is.
        vocabulary: Number of word vectors; ids are drawn below it.

    Raises:
        KeyError: The file lacks a tensor.
    """
    if model.kind == "grader":
        return make_grader_golden(weights, model, vocabulary)
    rng = np.random.default_rng(_SEED)
    lengths = [length for length in _SHORT_LENGTHS if length < model.max_tokens] + [model.max_tokens]
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
    """Draws pieces of unequal length, as a grader reads them; otherwise as `make_golden`.

    Args:
        weights: The published safetensors file; adapter, head and tokenizer.json lie beside it.
        model: What it is.
        vocabulary: As there.
    """
    pieces = draw_pieces(weights.with_name("tokenizer.json"), vocabulary, np.random.default_rng(_SEED))
    logits = reference_logits(weights, model, [piece.ids for piece in pieces], [piece.start for piece in pieces])
    return Golden(tuple(piece.ids for piece in pieces), logits.astype(np.float32)[:, None], {})


def save_golden(golden: Golden, path: Path) -> None:
    """Writes golden vectors as an npz file.

    Raises:
        OSError: The file cannot be written.
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
    """Reads what `save_golden` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or a part of it is missing.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            ends = np.cumsum(file["lengths"])
            return Golden(
                ids=tuple(np.split(file["ids"], ends[:-1])),
                sentences=file["sentences"],
                tokens_by_layer={int(layer): rows for layer, rows in zip(file["layers"], file["tokens"], strict=True)},
            )
    except (KeyError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is not a file of golden vectors: {error}") from error
