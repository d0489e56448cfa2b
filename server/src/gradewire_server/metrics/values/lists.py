"""Compare lists whose order matters."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

MAX_ITEMS: Final = 32
_MAX_ITEM: Final = 60
_ORDER_QUESTION: Final = re.compile(
    r"\bin (?:\w+ )?order\b(?! to)|\border (?:the|these|them|did|do)\b|\b(?:what|which) order\b|\bsequence of\b|"
    r"\b(?:what is|correct|right) (?:the )?order of\b|\brank the\b|\bsort\b|\barrange the\b|"
    r"\bchronological|\bascending\b|\bdescending\b|\bfrom (?:smallest|largest|lowest|highest|first|oldest|youngest)\b|"
    r"\b(?:highest|lowest|largest|smallest) first\b|"
    r"\bder reihe nach\b|\breihenfolge\b|\bdans l'ordre\b|\ben orden\b|\u987a\u5e8f",
    re.IGNORECASE,
)
_ARROWS: Final = re.compile(r"\s*(?:->|=>|-->)\s*")
_CHAIN: Final = re.compile(r"\s*>\s*")
_NUMBERED: Final = re.compile(r"(?:^|[\s;,])(\d{1,2})[.)]\s+")
_THEN: Final = re.compile(r"(?:,\s*(?:and )?|\band )then\b(?! and\b)\s*,?\s*", re.IGNORECASE)
_COMMAS: Final = re.compile(r"\s*(?:[,;]\s*(?:and|then)?\b|\band\b|\n)\s*")
# Runs of blanks are merged, so that patterns that begin with blanks need linear time.
_LINES: Final = re.compile(r"\n\s+")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_ARTICLE: Final = re.compile(r"^(?:the|a|an|first|finally|last|next)\s+(?=\w)", re.IGNORECASE)
_TUPLE: Final = re.compile(r"[(\[]\s*(-?\d[\d./]*(?:\s*,\s*-?\d[\d./]*){1,15})\s*[)\]]")
_MARKS: Final = (",", ";", ">", " and ", "then", "\n", ".", ")")
"""Substrings for a fast first search. Each list contains at least one of these substrings."""
_WORD: Final = re.compile(r"-?\d+(?:\.\d+)?|\w+")


def ordered_list(reference: str, question: str) -> tuple[str, ...] | None:
    """Return the words of each item in a list, or None if the reference is not a list or its order does not matter.

    The order of items between commas matters only if the question contains "in order", "sort", "rank" or the like.
    """
    if not any(mark in reference for mark in _MARKS):
        return None
    reference = _BLANKS.sub(" ", _LINES.sub("\n", reference))
    numbered = [part for part in _NUMBERED.split(reference)[2::2] if part.strip()]
    if len(numbered) > 1 and _NUMBERED.match(reference):
        return _list_of(numbered)
    for mark in (_ARROWS, _THEN):
        if len(parts := mark.split(reference)) > 1:
            return _list_of([piece for part in parts for piece in (_COMMAS.split(part) if mark is _THEN else [part])])
    chain = _CHAIN.split(reference)
    if len(chain) > 2 and "<" not in reference:
        return _list_of(chain)
    asked = _ORDER_QUESTION.search(question) is not None
    bare = _TUPLE.fullmatch(reference.strip())
    if bare:
        return _list_of(bare[1].split(","))
    return _list_of(_COMMAS.split(reference)) if asked and len(_COMMAS.split(reference)) > 1 else None


def _list_of(parts: Sequence[str]) -> tuple[str, ...] | None:
    items = tuple(" ".join(_words(_ARTICLE.sub("", part.strip(" .;,[]()")))) for part in parts if part.strip(" .;,"))
    if not 2 <= len(items) <= MAX_ITEMS or any(not item or len(item) > _MAX_ITEM for item in items):
        return None
    return items if len(set(items)) == len(items) else None


def _words(text: str) -> list[str]:
    """Return words and numbers in lower case; single letters keep their case, because "a" is an article."""
    return [word if len(word) == 1 else word.lower() for word in _WORD.findall(text)]


def in_order(items: Sequence[str], answer: str) -> bool | None:
    """Return True if an answer names all items in order, False if the order differs, None if an item is missing."""
    said = f" {' '.join(_words(answer))} "
    places = [said.find(f" {item} ") for item in items]
    if min(places) < 0:
        return None
    descending = "<" in answer and ">" not in answer and "->" not in answer
    numbers = all(item.lstrip("-").replace(".", "").isdigit() for item in items)
    rising = all(first < second for first, second in pairwise(places))
    return rising and (numbers or not descending)
