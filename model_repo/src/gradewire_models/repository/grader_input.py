"""Build the input of a grader: question, reference and answer as token ids, a long answer in pieces.

Training and serving share this code, so that they agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_TOKENS: Final = 256
"""Longest sequence, with special tokens."""
QUESTION_TOKENS: Final = 64
"""Tokens of a question that are read, from the beginning."""
REFERENCE_TOKENS: Final = 64
"""Tokens of a reference that are read, from the beginning."""
MAX_PIECES: Final = 8
"""Pieces of an answer that are read."""
_SPECIAL: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """The token ids of a sequence for the model, with special tokens, 4 to `MAX_TOKENS` of them.

    The token type is 1 from the answer's first token, at `answer_start`, to the last special token, and 0 before.
    """

    ids: tuple[int, ...]
    answer_start: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """One to `MAX_PIECES` pieces of an answer; the highest logit counts. `truncated`: tokens were left out."""

    pieces: tuple[Piece, ...]
    truncated: bool


def grader_input(
    question: Sequence[int], reference: Sequence[int], answer: Sequence[int], *, begin: int, separator: int
) -> Pieces:
    """Join three texts: ``begin question separator reference separator answer separator``.

    Each is the token ids of the whole text, without special tokens; it may be empty. A long answer is read in
    overlapping pieces. Each piece starts half its length after the one before, and the last one may be shorter. Tokens
    after
    `MAX_PIECES` pieces are ignored and set `Pieces.truncated`.
    """
    asked, wanted = question[:QUESTION_TOKENS], reference[:REFERENCE_TOKENS]
    front = (begin, *asked, separator, *wanted, separator)
    room = MAX_TOKENS - len(asked) - len(wanted) - _SPECIAL
    starts = [0]
    while starts[-1] + room < len(answer) and len(starts) < MAX_PIECES:
        starts.append(starts[-1] + room // 2)
    pieces = tuple(Piece((*front, *answer[start : start + room], separator), len(front)) for start in starts)
    cut = len(asked) < len(question) or len(wanted) < len(reference) or starts[-1] + room < len(answer)
    return Pieces(pieces, cut)
