"""A grader in plain numpy and float64: the encoder's reference, the mean of its last layer, and the head."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from gradewire_models.build.reference.encoder import Array64, reference_vectors
from gradewire_models.catalog.adapters import HEAD_WEIGHTS
from gradewire_models.catalog.loading import CatalogModel

# Tokens of question, reference and answer: empty ones, short ones as answers are, the longest there are.
_LENGTHS: Final = (
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


class DrawnPiece(NamedTuple):
    """Token ids of one piece, int64 [tokens], and where the tokens of the second type begin."""

    ids: NDArray[np.int64]
    start: int


def draw_pieces(tokenizer: Path, vocabulary: int, rng: np.random.Generator) -> list[DrawnPiece]:
    """Draws pieces of many lengths, in mixed order, of ids below `vocabulary` that are no special tokens.

    Args:
        tokenizer: tokenizer.json, which says what the special tokens are.
        vocabulary: Number of word vectors.
        rng: What is drawn from.
    """
    known = Tokenizer.from_file(str(tokenizer))
    begin, separator = known.token_to_id("[CLS]"), known.token_to_id("[SEP]")
    special = [number for number, token in known.get_added_tokens_decoder().items() if token.special]
    plain = np.setdiff1d(np.arange(vocabulary), [*special, begin, separator])
    pieces = []
    for lengths in rng.permutation(np.array(_LENGTHS)):
        question, reference, answer = (rng.choice(plain, length) for length in lengths)
        front = [[begin], question, [separator], reference, [separator]]
        ids = np.concatenate([*front, answer, [separator]]).astype(np.int64)
        pieces.append(DrawnPiece(ids, sum(map(len, front))))
    return pieces


def reference_logits(
    path: Path, model: CatalogModel, texts: Sequence[NDArray[np.int64]], starts: Sequence[int]
) -> Array64:
    """Logit of each piece, float64 [n], with the weights of a safetensors file; adapter and head lie beside it.

    Args:
        path: The weights.
        model: What they are.
        texts: Token ids of each piece, int64 [tokens].
        starts: Where in each the tokens of the second type begin.

    Raises:
        KeyError: A tensor is missing.
    """
    head = load_file(path.with_name(HEAD_WEIGHTS))
    weight, bias = (head[name].astype(np.float64) for name in ("weight", "bias"))
    vectors = reference_vectors(path, model, texts, starts)
    means = np.stack([text.tokens_by_layer[model.layers].mean(axis=0) for text in vectors])
    logits: Array64 = means @ weight[0] + bias[0]
    return logits
