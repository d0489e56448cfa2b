"""Results of a search for a final answer. This module compiles nothing, so that importing it takes no time."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end of a part of a text, in characters."""

Position: TypeAlias = Literal[
    "boxed", "tagged", "json", "phrase", "line", "calculation", "correction", "whole", "nothing"
]
"""The place at which an answer was found."""

MAX_READ_CHARACTERS: Final = 200_000
"""Characters at the end of a completion that are read, so that a hostile one costs only milliseconds."""

STRIKES: Final = ("~", "<", "cancel{", "out{", "\u0336", "^H")
"""Substrings for a fast first search. Text that is struck out contains at least one of them."""


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The final answer that a completion asserts.

    Attributes:
        text: The answer without marks around it; "" if the completion asserts none.
        position: Where the answer stands: in a box, a tag, a value of JSON, after a phrase, in a last line, at the end
            of a calculation, after a correction; "whole" if it is the whole text, "nothing" if there is no answer.
        start: Start of the answer in the completion, in characters; None if the text is joined or decoded.
        end: End of the answer in the completion; None if the text is joined or decoded.
        confidence: How clearly the completion says that this is its answer, 0 to 1: high for a single marked answer,
            lower for several different ones, for hedges, for text that goes on, and for a long text without a mark. It
            orders answers, and is no probability.
        reason: The reason why no answer was found; "" if there is an answer.
    """

    text: str
    position: Position
    start: int | None
    end: int | None
    confidence: float
    reason: str = ""
