"""Build a grader's input from the token ids of a question, a reference and an answer; split long answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TOKENS: Final = 256
"""Maximum length of an input sequence in tokens, including special tokens."""
QUESTION_TOKENS: Final = 64
"""Maximum number of question tokens; further tokens are ignored."""
REFERENCE_TOKENS: Final = 64
"""Maximum number of reference tokens; further tokens are ignored."""
MAX_PIECES: Final = 8
_SPECIAL: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """An input sequence: 4 to `MAX_TOKENS` token ids, including special tokens.

    The token type is 0 before the answer, and 1 from index `answer_start` on, where the answer's first token is.
    """

    ids: tuple[int, ...]
    answer_start: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """An answer's 1 to `MAX_PIECES` pieces; the highest logit counts. `truncated` is True if tokens were ignored."""

    pieces: tuple[Piece, ...]
    truncated: bool


def begin_and_separator(tokenizer: "Tokenizer") -> tuple[int, int]:
    """Return the ids of the tokens that the tokenizer adds before and after a text.

    Raises:
        ValueError: The tokenizer does not add exactly one token before and one after a text.
    """
    # A vocabulary can contain further tokens of this kind: mpnet's has [CLS] and [SEP], but mpnet uses <s> and </s>.
    empty = tokenizer.encode("")
    around = [number for number, is_token in zip(empty.ids, empty.attention_mask, strict=True) if is_token]
    if len(around) != 2:
        raise ValueError("the tokenizer must add one token before and one token after a text")
    begin, separator = around
    return begin, separator


def grader_input(
    question: Sequence[int], reference: Sequence[int], answer: Sequence[int], *, begin: int, separator: int
) -> Pieces:
    """Join the three texts as ``begin question separator reference separator answer separator``.

    Each argument contains the whole text's token ids, without special tokens, and may be empty. A long answer is split
    into pieces; each starts half a piece after the previous piece. Tokens after `MAX_PIECES` pieces are ignored.
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
