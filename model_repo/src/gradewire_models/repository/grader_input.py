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
    """One sequence for the model.

    Attributes:
        ids: Token ids, special tokens included, 4 to `MAX_TOKENS` of them.
        answer_start: Position of the answer's first token; from there on, the last special token included, the token
            type is 1, before it 0.
    """

    ids: tuple[int, ...]
    answer_start: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """The parts of an answer that are read.

    Attributes:
        pieces: One to `MAX_PIECES`; the highest logit counts.
        truncated: Tokens of the question, the reference or the answer were left out.
    """

    pieces: tuple[Piece, ...]
    truncated: bool


def grader_input(
    question: Sequence[int], reference: Sequence[int], answer: Sequence[int], *, begin: int, separator: int
) -> Pieces:
    """Put three texts together: ``begin question separator reference separator answer separator``.

    An empty text leaves its place empty. An answer that does not fit is read in overlapping pieces, each half of its
    room after the one before, the last of them as far as the answer goes.

    Args:
        question: Token ids of the whole text, without special tokens.
        reference: Token ids of the whole text, without special tokens.
        answer: Token ids of the whole text, without special tokens; those beyond what `MAX_PIECES` pieces reach change
            `Pieces.truncated` only.
        begin: Id of the token that begins a sequence, [CLS].
        separator: Id of the token behind each text, [SEP].
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
