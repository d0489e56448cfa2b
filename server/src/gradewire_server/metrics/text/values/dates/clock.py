"""Times of day: "5:30 pm", "17:30", "noon"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.writing.numerals import adjacent, lower_at
from gradewire_server.metrics.text.values.writing.tokens import Token

_HALF_DAY: Final = 720
_DAY: Final = 1440
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
        return (Time(_NAMED[token.lower], half_known=True), at + 1) if token.lower in _NAMED else None
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
    half, behind = _half(tokens, end)
    if half is None:
        return (
            (Time(hour * 60 + minute, half_known=hour > 12 or (len(token.text) == 2 and hour < 10)), end)
            if written
            else None
        )
    return (Time(hour % 12 * 60 + minute + half, half_known=True), behind) if 1 <= hour <= 12 else None


def _half(tokens: Sequence[Token], at: int) -> tuple[int | None, int]:
    """0 for "a.m.", 720 for "pm", None for neither, and the index behind it."""
    lower = lower_at(tokens, at)
    if lower in {"am", "pm"}:
        return _HALF_DAY * (lower == "pm"), at + 1
    if lower in {"a", "p"} and lower_at(tokens, at + 1) == "." and lower_at(tokens, at + 2) == "m":
        return _HALF_DAY * (lower == "p"), at + 3 + (lower_at(tokens, at + 3) == ".")
    return None, at
