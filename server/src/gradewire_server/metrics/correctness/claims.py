"""Choose the part of an answer that `correctness` reads: the final claim, or the whole text without its wrapping."""

import re
from dataclasses import dataclass
from typing import Final

from gradewire_proto.final_answer import FinalAnswer, Position, find_final_answer
from gradewire_proto.final_answer.words import any_of

_MARKED: Final = frozenset[Position]({"boxed", "tagged", "json"})
_MOST_WORDS: Final[dict[Position, int]] = {"phrase": 15, "calculation": 40, "correction": 20, "line": 15}
"""Maximum number of words in a text whose claim is taken without a mark or an announcement.

In longer prose, half of these claims cut away the answer: of 44 right answers in EVOUNA, the reference was outside the
claim in 22.
"""
_ANNOUNCED: Final = re.compile(any_of("answer"), re.IGNORECASE)
_MOST_BEFORE: Final = 60
_LEAST_KEPT: Final = 0.6
"""Minimum share of a text that is left without its wrapping, unless tags or tokens stand before it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an answer claims.

    Attributes:
        text: The part to read; never blank for an answer that is not blank.
        cut: True if the answer says more than `text`, apart from its wrapping.
    """

    text: str
    cut: bool


def claim_of(prediction: str) -> Claim:
    """Return an answer's claim.

    The claim is the final answer if a box, a tag, a JSON value or "the answer is" marks it, or if the answer is short.
    Otherwise the claim is the whole text without special tokens, thinking, emphasis and courtesies.
    """
    found = find_final_answer(prediction)
    if not found.text.strip():
        return Claim(prediction, cut=False)
    if found.position == "whole":
        before = prediction[: found.start or 0]
        kept = len(found.text) >= _LEAST_KEPT * len(prediction.strip()) or "<" in before
        return Claim(found.text if kept else prediction, cut=False)
    if found.position in _MARKED or _is_announced(prediction, found):
        return Claim(found.text, cut=True)
    short = len(prediction.split(None, _MOST_WORDS[found.position])) <= _MOST_WORDS[found.position]
    return Claim(found.text, cut=True) if short else Claim(prediction, cut=False)


def _is_announced(prediction: str, found: FinalAnswer) -> bool:
    if found.position != "phrase" or found.start is None:
        return False
    return _ANNOUNCED.search(prediction, max(0, found.start - _MOST_BEFORE), found.start) is not None
