"""A found answer, and the last steps to it: tidy the span, take the letter of a choice, join the items of a list."""

import re
from dataclasses import dataclass
from typing import Final

from gradewire_proto.final_answer.assertions import asserted_answer, calculated, quantity
from gradewire_proto.final_answer.clauses import choice, tidied, trimmed, without_end
from gradewire_proto.final_answer.types import Position, Span

_BRACKETS: Final = {")": "(", "]": "[", "}": "{", "）": "（"}
_INTERVAL: Final = re.compile(r"[(\[\]][^()\[\]\n]{1,60}[,;][^()\[\]\n]{1,60}[)\]]\$?\Z")
"""An interval at the end of a text; its brackets may differ, as in "[0, 1)"."""
_LONGEST_INTERVAL: Final = 125
_EXCLAIMED: Final = re.compile(r"[^\W\d]!$|[^\x00-\x7f]！$")
_BOLD: Final = re.compile(r"(?:\*\*|__)(?=\S)([^*_\n]{1,120}?)(?<=\S)(?:\*\*|__)")
_QUOTED: Final = re.compile(r"[“„«「\"]\s?([^\"“”„«»「」\n]{1,120}?)\s?[”“»」\"]\s?[.!]?\s*")
_LAST_LETTER: Final = re.compile(r"(?:^|\s)\(?([A-H])\)?\s?[.!]?$")
_LETTER: Final = re.compile(r"(?<![\w.])\(?[A-H]\)?(?![\w'’])")


@dataclass(frozen=True, slots=True)
class Found:
    """A span of a text with the place where it was found, and its text if this is joined or decoded."""

    left: int
    right: int
    position: Position
    text: str | None = None


def moved(found: Found, offset: int) -> Found:
    """Return a found answer at other offsets."""
    return Found(found.left + offset, found.right + offset, found.position, found.text)


def finish(original: str, left: int, right: int, position: Position) -> Found:
    """Return the answer in a span, without courtesies, emphasis and open brackets, or its letter if it is a choice."""
    left, right = without_end(original, *trimmed(original, left, right))
    left, right = tidied(original, left, right)
    for mark in ("***", "**", "__"):  # the other end of the emphasis is outside the span
        if original.count(mark, left, right) == 1:
            left += len(mark) if original.startswith(mark, left) else 0
            right -= len(mark) if original.endswith(mark, left, right) else 0
    if (letter := choice(original, left, right)) is not None:
        left, right = letter
    if position != "whole" and _EXCLAIMED.search(original, max(left, right - 3), right) is not None:
        right -= 1
    closing = original[right - 1 : right]
    if _INTERVAL.search(original[max(left, right - _LONGEST_INTERVAL) : right]) is not None:
        closing = ""
    if closing in _BRACKETS and original.count(closing, left, right) > original.count(_BRACKETS[closing], left, right):
        right -= 1
    return Found(*without_end(original, left, right), position)


def joined(original: str, items: list[Span], position: Position) -> Found:
    """Return the items of a list, joined by commas."""
    parts = []
    for left, right in items:
        a, b = tidied(original, left, right)
        parts.append(original[a:b])
    return Found(items[0][0], items[-1][1], position, ", ".join(parts))


def asserted(original: str, text: str, left: int, right: int, position: Position = "correction") -> Found | None:
    """Return the answer that a sentence asserts; None if it asserts nothing."""
    begin = left
    if (quoted := _QUOTED.fullmatch(original, left, right)) is not None:
        return finish(original, *quoted.span(1), position)
    left, right = asserted_answer(text, left, right)
    if (letter := _LAST_LETTER.search(text, left, right)) is not None and _LETTER.search(text, 0, begin) is not None:
        left, right = letter.span(1)
    if left >= right:
        return None
    if (result := calculated(text, left, right)) is not None and re.search(
        r"\d\s?[=≈]|[=≈][^=≈]*[=≈]", text[left:right]
    ):
        left, right = result
    if (measured := quantity(text, left, right)) is not None and len(text[left : measured[0]].split()) > 2:
        left, right = measured
    return finish(original, left, right, position)


def bold_in(original: str, left: int, right: int) -> Span | None:
    """Return the span of the only bold text in a span, if the span ends with it or it is a number; otherwise None."""
    right += len(original[right : right + 3]) - len(original[right : right + 3].lstrip("*_"))
    found = list(_BOLD.finditer(original, left, right))
    if len(found) != 1:
        return None
    rest = original[found[0].end() : right].strip()
    number = re.fullmatch(r"[-−$€£]?\d[\d.,/]*\s?[\w%°]{0,4}", found[0][1].strip())
    if (rest.strip(" .!。") and not number) or found[0][1].rstrip().endswith((":", "：")):
        return None
    return found[0].span(1)
