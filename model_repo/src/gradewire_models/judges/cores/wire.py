"""Convert questions to the tensors of a judge in Triton and back. Both ends use this module."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

PROTOCOL: Final = "1"
"""The version of the tensors' meaning. A server rejects a model with a different version."""

TOKENS: Final = "tokens"
LENGTHS: Final = "lengths"
PROBABILITIES: Final = "probabilities"
MASS: Final = "mass"
NEXT_ID: Final = "next_id"
FINGERPRINT: Final = "model_fingerprint"
TOKENIZER: Final = "tokenizer"

CHOICE_OUTPUTS: Final = (PROBABILITIES, MASS, FINGERPRINT)
TOKEN_OUTPUTS: Final = (NEXT_ID, FINGERPRINT)
TOKENIZER_OUTPUTS: Final = (TOKENIZER, FINGERPRINT)

MAX_LABELS: Final = 256
"""The maximum number of labels in a question. gradewire's metrics use at most 26."""


class Question(NamedTuple):
    """A prompt's token IDs, and the requested answer.

    Attributes:
        prefix: The fixed turns, which many questions share. Possibly empty.
        item: The prompt after the fixed turns, at least one ID.
        labels: IDs of the tokens for which to return next-token probabilities. If empty, return the next token.
        written: The tokens of an answer that was begun.
    """

    prefix: tuple[int, ...]
    item: tuple[int, ...]
    labels: tuple[int, ...] = ()
    written: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """The length of the prompt and the written tokens."""
        return len(self.prefix) + len(self.item) + len(self.written)


def fingerprint_of(digest: str) -> int:
    """Return the number that identifies a judge's digest (64 hex characters) in every answer."""
    return int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)


class QuestionError(ValueError):
    """Raised when tensors contain no valid question."""


def to_tensors(question: Question) -> dict[str, NDArray[np.int64]]:
    """Return a question's tensors, with a batch dimension of 1."""
    parts = (question.prefix, question.item, question.written, question.labels)
    return {
        TOKENS: np.array([[token for part in parts for token in part]], np.int64),
        LENGTHS: np.array([[len(part) for part in parts]], np.int64),
    }


def from_tensors(tensors: Mapping[str, NDArray[Any]], *, vocabulary: int, max_tokens: int) -> Question:
    """Return the question in a request's tensors.

    Raises:
        QuestionError: The tensors' shapes do not match, an ID is not in the vocabulary, the question is empty or longer
            than `max_tokens`, or it has too many labels.
    """
    tokens, lengths = tensors[TOKENS], tensors[LENGTHS]
    if tokens.ndim != 2 or tokens.shape[0] != 1 or lengths.shape != (1, 4):
        raise QuestionError(f"{TOKENS} must be [1, N] and {LENGTHS} [1, 4]: a request has one question")
    counts = lengths[0].tolist()
    if min(counts) < 0 or sum(counts) != tokens.shape[1]:
        raise QuestionError(f"{LENGTHS} {counts} does not match the {tokens.shape[1]} tokens")
    if counts[3] > MAX_LABELS:
        raise QuestionError(f"a question may have {MAX_LABELS} labels, not {counts[3]}")
    ids = tokens[0].tolist()
    if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
        raise QuestionError(f"a token is not in the vocabulary of {vocabulary}")
    ends = np.cumsum(counts).tolist()
    prefix, item, written, labels = (tuple(ids[end - count : end]) for end, count in zip(ends, counts, strict=True))
    question = Question(prefix, item, labels, written)
    if not item or question.tokens > max_tokens:
        raise QuestionError(f"a prompt must have 1 to {max_tokens} tokens, not {question.tokens}")
    return question
