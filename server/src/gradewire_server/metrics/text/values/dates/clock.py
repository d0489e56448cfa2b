"""Times of day: "5:30 pm", "17:30", "noon"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.writing.number_words import SMALL
from gradewire_server.metrics.text.values.writing.numerals import adjacent, lower_at, number_at, tokens_are
from gradewire_server.metrics.text.values.writing.tokens import Token

_HALF_DAY: Final = 720
_DAY: Final = 1440
_PARTS_OF_DAY: Final = (
    (("in", "the", "morning"), 0),
    (("in", "the", "afternoon"), _HALF_DAY),
    (("in", "the", "evening"), _HALF_DAY),
)
_PAST: Final = {("half", "past"): 30, ("quarter", "past"): 15, ("quarter", "after"): 15, ("quarter", "to"): -15}
_NAMED: Final = {"noon": 720, "midday": 720, "midnight": 0}


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day.

    Attributes:
        minute: Of the day, from 0.
        half_known: Whether it is said, or clear, which half of the day it is in.
    """

    minute: int
    half_known: bool

    def says(self, reference: "Time") -> bool:
        """Whether an answer's time, this one, is the reference's; without "am" and "pm" either will do."""
        apart = (self.minute - reference.minute) % _DAY
        return apart == 0 or (apart == _HALF_DAY and not (self.half_known and reference.half_known))


def time_at(tokens: Sequence[Token], at: int) -> tuple[Time, int] | None:
    """The time of day that begins at a token, and the index behind it."""
    token = tokens[at]
    if token.word:
        return _in_words(tokens, at)
    hour = token.whole
    if hour is None or hour > 23 or len(token.text) > 2:
        return None
    end, minute, written = at + 1, 0, False
    if lower_at(tokens, end) == ":" and adjacent(tokens, end) and adjacent(tokens, end + 1):
        minutes = tokens[end + 1].whole
        if minutes is None or minutes > 59 or len(tokens[end + 1].text) != 2:
            return None
        minute, end, written = minutes, end + 2, True
        if lower_at(tokens, end) == ":" and adjacent(tokens, end):
            return None
    clock = not written and lower_at(tokens, end) == "o'clock"
    end, written = end + clock, written or clock
    half, behind = _half(tokens, end)
    if half is None:
        return (
            (Time(hour * 60 + minute, half_known=hour > 12 or (len(token.text) == 2 and hour < 10)), end)
            if written
            else None
        )
    return (Time(hour % 12 * 60 + minute + half, half_known=True), behind) if 1 <= hour <= 12 else None


def _in_words(tokens: Sequence[Token], at: int) -> tuple[Time, int] | None:
    """As in "noon", "half past seven", "a quarter to 8", "seven o'clock"."""
    if tokens[at].lower in _NAMED:
        return Time(_NAMED[tokens[at].lower], half_known=True), at + 1
    begin = at + (lower_at(tokens, at) == "a")
    minute, end = 0, at
    past = _PAST.get((lower_at(tokens, begin), lower_at(tokens, begin + 1)))
    if past is not None:
        minute, end = past, begin + 2
    whole = number_at(tokens, end)
    hour = SMALL.get(lower_at(tokens, end), 0) if whole is None else whole
    clock = lower_at(tokens, end + 1) == "o'clock"
    if not 1 <= hour <= 12 or hour % 1:
        return None
    half, behind = _half(tokens, end + 1 + clock)
    if past is None and half is None and not clock:
        return None
    minute = int(hour) % 12 * 60 + minute + (half or 0)
    return Time(minute % _DAY, half_known=half is not None), behind


def _half(tokens: Sequence[Token], at: int) -> tuple[int | None, int]:
    """0 for "a.m.", 720 for "pm", None for neither, and the index behind it."""
    lower = lower_at(tokens, at)
    if lower in {"am", "pm"}:
        return _HALF_DAY * (lower == "pm"), at + 1
    if lower in {"a", "p"} and lower_at(tokens, at + 1) == "." and lower_at(tokens, at + 2) == "m":
        return _HALF_DAY * (lower == "p"), at + 3 + (lower_at(tokens, at + 3) == ".")
    for words, half in _PARTS_OF_DAY:
        if tokens_are(tokens, at, *words):
            return half, at + len(words)
    return None, at
