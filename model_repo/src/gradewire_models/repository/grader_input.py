"""The input of a grader: question, reference and answer as one sequence of token ids, a long answer in pieces.

Training and serving both build it here, so a model is served what it was trained on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_TOKENS: Final = 256
"""Longest sequence, special tokens included."""
QUESTION_TOKENS: Final = 64
"""Read of a question: its beginning."""
REFERENCE_TOKENS: Final = 64
"""Read of a reference: its beginning."""
MAX_PIECES: Final = 8
"""Pieces of an answer that are read."""
_SPECIAL: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """Token ids of one sequence for the model, special tokens included, 4 to `MAX_TOKENS` of them.

    The token type is 1 from the answer's first token, at `answer_start`, to the last special token, and 0 before.
    """

    ids: tuple[int, ...]
    answer_start: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """One to `MAX_PIECES` pieces of an answer, of which the highest logit counts, and whether tokens were left out."""

    pieces: tuple[Piece, ...]
    truncated: bool


def grader_input(
    question: Sequence[int], reference: Sequence[int], answer: Sequence[int], *, begin: int, separator: int
) -> Pieces:
    """Put three texts together: ``begin question separator reference separator answer separator``.

    Each is the token ids of the whole text, without special tokens; an empty one leaves its place empty. An answer that
    does not fit is read in overlapping pieces, each half of its room after the one before, the last of them as far as
    the answer goes. Tokens beyond what `MAX_PIECES` pieces reach change `Pieces.truncated` only.
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
