"""The confidence in a found answer: one number for the marks of a completion, and for the text around the answer."""

import re
from typing import Final

from gradewire_proto.final_answer.found import Found
from gradewire_proto.final_answer.marks import Statement
from gradewire_proto.final_answer.phrases import with_decimal_point
from gradewire_proto.final_answer.types import Position
from gradewire_proto.final_answer.words import any_of

_BASE: Final[dict[Position, float]] = {
    **dict.fromkeys(("boxed", "tagged", "json", "phrase"), 0.98),
    **dict.fromkeys(("line", "calculation", "correction"), 0.9),
}
IN_NOTHING: Final = 0.9
"""The confidence that a completion has no answer where none was found."""
_BASE_OF_WHOLE: Final = ((60, 0.9), (200, 0.7), (600, 0.5))
"""Confidence in a whole text of at most so many characters; a longer text is hardly an answer."""
_LEAST: Final = 0.3
_CONTESTED: Final = 0.7
_WEAK: Final = 0.85
_HEDGED: Final = 0.85
_CONTINUED: Final = 0.9
_OTHER_LATER: Final = 0.75

_MOST_AFTER: Final = 400
_LONG_AFTER: Final = 160
"""Characters after a marked answer from which on the text goes on, beyond a reason or a courtesy."""
_BESIDE: Final = 60
_HEDGE: Final = re.compile(any_of("hedge"), re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?。！？]\s|[。！？\n]")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_RESTATED: Final = re.compile(rf"(?:{any_of('it_is', 'is')}|=)\s?[$€£]?(?P<said>\d+(?:[.,]\d+)*)", re.IGNORECASE)
_BOX: Final = re.compile(r"\\boxed\s?\{([^{}\n]{1,80})\}")
_TAG: Final = re.compile(r"<answer>\s{0,8}([^<\n]{1,80}?)\s{0,8}</answer>", re.IGNORECASE)
_MOST_SEARCHED: Final = 4_000


def confidence(original: str, found: Found, statement: Statement | None) -> float:
    """Return the confidence in an answer, 0 to 1: its position's, times a factor for each reason to doubt it.

    Args:
        original: The spoken text.
        found: The answer.
        statement: The last marked statement of the text.
    """
    marked = found.position in {"boxed", "tagged", "json", "phrase"}
    value = _BASE.get(found.position) or _of_whole(found.right - found.left)
    if statement is not None and (statement.contested or _has_rival(original)):
        value *= _CONTESTED
    if marked and statement is not None and statement.force == 1:
        value *= _WEAK
    if _is_hedged(original, found):
        value *= _HEDGED
    if marked:
        rest = original[found.right : found.right + _MOST_AFTER]
        if _has_other_number(original[found.left : found.right], rest):
            value *= _OTHER_LATER
        elif len(rest.strip()) > _LONG_AFTER:
            value *= _CONTINUED
    return round(value, 2)


def _of_whole(length: int) -> float:
    return next((value for longest, value in _BASE_OF_WHOLE if length <= longest), _LEAST)


def _has_rival(original: str) -> bool:
    """Return True if simple boxes or tags near the end of a text have different contents."""
    near = max(0, len(original) - _MOST_SEARCHED)
    if original.count("\\boxed", near) > 1 and len(set(_BOX.findall(original, near))) > 1:
        return True
    return original.count("</", near) > 1 and len(set(_TAG.findall(original, near))) > 1


def _is_hedged(original: str, found: Found) -> bool:
    """Return True if a hedge such as "I think" or "probably" stands in the answer's sentence, at most so far away."""
    before = _SENTENCE_END.split(original[max(0, found.left - _BESIDE) : found.left])[-1]
    after = _SENTENCE_END.split(original[found.right : found.right + _BESIDE])[0]
    # Hedges in a whole text belong to it.
    inside = original[found.left : min(found.right, found.left + _BESIDE)]
    return any(_HEDGE.search(part) for part in (before, after, inside))


def _has_other_number(answer: str, rest: str) -> bool:
    """Return True if the text after a number states another number."""
    numbers = set(_NUMBER.findall(with_decimal_point(answer)))
    said = {with_decimal_point(each["said"]) for each in _RESTATED.finditer(rest)}
    return bool(numbers) and bool(said - numbers)
