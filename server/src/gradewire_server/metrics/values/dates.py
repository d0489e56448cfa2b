"""Dates (as ranges of days) and times of day, with comparisons."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from gradewire_server.metrics.values.numerals import SMALL
from gradewire_server.metrics.values.tokens import VOCABULARY, Token, adjacent, lower_at, number_at, phrase_at, phrases

_WORDS: Final = VOCABULARY["dates"]

MONTHS: Final = 12
_DAYS: Final = 31
_YEAR: Final = MONTHS * _DAYS
"""Number of days in a year of 31-day months. It need not be exact, because only the order of days matters."""
_SLACK: Final = _YEAR
"""Tolerance in days at both ends of a century, because 1900 counts as 19th or 20th century."""

_DAY_MINUTES: Final = 1440
_HALF_DAY: Final = 720
_HALVES_OF_DAY: Final = phrases(_WORDS["halves_of_day"])
_MINUTES_PAST: Final = phrases(_WORDS["minutes_past"])


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day: the minutes since midnight, and whether the half of the day (a.m. or p.m.) is known."""

    minute: int
    half_known: bool

    def equals(self, reference: "Time") -> bool:
        """Return True if this time equals the reference's. A time without "am" or "pm" matches either half of a day."""
        apart = (self.minute - reference.minute) % _DAY_MINUTES
        return apart == 0 or (apart == _HALF_DAY and not (self.half_known and reference.half_known))

    def contradicts(self, reference: "Time") -> bool:
        """Return True if the two times differ."""
        return not self.equals(reference)


def time_at(tokens: Sequence[Token], at: int) -> tuple[Time, int] | None:
    """Return the time of day that begins at a token, and the index after that time; return None if there is no time."""
    token = tokens[at]
    if token.word:
        return _time_in_words(tokens, at)
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
    half, behind = _half_of_day(tokens, end)
    if half is None:
        known = hour > 12 or (len(token.text) == 2 and hour < 10)
        return (Time(hour * 60 + minute, half_known=known), end) if written else None
    return (Time(hour % 12 * 60 + minute + half, half_known=True), behind) if 1 <= hour <= 12 else None


def _time_in_words(tokens: Sequence[Token], at: int) -> tuple[Time, int] | None:
    named = _WORDS["named_times"].get(tokens[at].lower)
    if named is not None:
        return Time(named, half_known=True), at + 1
    begin = at + (lower_at(tokens, at) == "a")
    past = phrase_at(tokens, begin, _MINUTES_PAST)
    minute, end = past or (0, at)
    whole = number_at(tokens, end)
    hour = SMALL.get(lower_at(tokens, end), 0) if whole is None else whole
    clock = lower_at(tokens, end + 1) == "o'clock"
    if not 1 <= hour <= 12 or hour % 1:
        return None
    half, behind = _half_of_day(tokens, end + 1 + clock)
    if past is None and half is None and not clock:
        return None
    minute = int(hour) % 12 * 60 + minute + (half or 0)
    return Time(minute % _DAY_MINUTES, half_known=half is not None), behind


def _half_of_day(tokens: Sequence[Token], at: int) -> tuple[int | None, int]:
    """Return 0 for "a.m.", 720 for "p.m." or None for neither, and also the index after the match."""
    lower = lower_at(tokens, at)
    if lower in {"am", "pm"}:
        return _HALF_DAY * (lower == "pm"), at + 1
    if lower in {"a", "p"} and lower_at(tokens, at + 1) == "." and lower_at(tokens, at + 2) == "m":
        return _HALF_DAY * (lower == "p"), at + 3 + (lower_at(tokens, at + 3) == ".")
    return phrase_at(tokens, at, _HALVES_OF_DAY) or (None, at)


class DatePrecision(IntEnum):
    """The precision of the date that a question asks for."""

    ANY = 0
    DAY = 1
    MONTH = 2
    YEAR = 3


@dataclass(frozen=True, slots=True)
class Date:
    """A day, month, year, decade, century or season, with or without a year, or a day of the week.

    Attributes:
        days: The first and last day, counted from the year 0, or None if the date has no year.
        month: The month, 1 to 12, if the date is a month or a day.
        weekday: The day of the week, 0 to 6, or None.
        ranged: True if the text gives both the first and the last date: "1914-1918".
        number: The year if it may also be an ordinary number; otherwise None.
    """

    days: tuple[int, int] | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    ranged: bool = False
    hedged: bool = False
    number: int | None = None

    @classmethod
    def years(cls, first: int, last: int) -> "Date":
        """Return the period from the beginning of year `first` to the end of year `last`; years BC are negative."""
        return cls((first * _YEAR, (last + 1) * _YEAR - 1))

    @classmethod
    def months(cls, year: int, first: int, last: int) -> "Date":
        """Return the months `first` to `last` of a year, counted from 1; months above 12 are in the next year."""
        month = first if first == last else None
        return cls((year * _YEAR + (first - 1) * _DAYS, year * _YEAR + last * _DAYS - 1), month)

    @classmethod
    def of(cls, year: int | None, month: int, day: int | None) -> "Date":
        """Return a month, or a day if `day` is not None; `year` may be None."""
        if year is None:
            return cls(month=month, day=day)
        if day is None:
            return cls.months(year, month, month)
        place = year * _YEAR + (month - 1) * _DAYS + day - 1
        return cls((place, place), month, day)

    @property
    def year(self) -> int | None:
        """The year, or None if there are no years or several years."""
        begin, end = _years_of(self.days) if self.days else (None, None)
        return begin if begin == end else None

    def equals(self, reference: "Date", asked: DatePrecision, asked_years: frozenset[int]) -> bool:
        """Return True if this date, which is from an answer, equals the reference's date or lies within it.

        A reference that is more precise than `asked` counts as its year or month. An answer may omit the year if the
        question contains the reference's year (`asked_years`).
        """
        if reference.weekday is not None or self.weekday is not None:
            return reference.weekday == self.weekday
        reference = _at_precision(reference, asked)
        if reference.days is None:
            return self._in_year(reference)
        if self.days is None:
            return reference.year in asked_years and self._in_year(reference)
        if reference.ranged:
            return _years_of(self.days) == _years_of(reference.days)
        lower, upper = _widened(reference, *reference.days)
        if lower <= self.days[0] and self.days[1] <= upper:
            return True
        years = _years_of(self.days)
        return self.ranged and any(lower <= year * _YEAR and (year + 1) * _YEAR - 1 <= upper for year in years)

    def coarser_than(self, reference: "Date") -> bool:
        """Return True if this date (from an answer) contains the reference's date, as a year contains a day."""
        if self.days is None or self.ranged or reference.days is None or reference.ranged:
            return False
        return self.days[0] <= reference.days[0] and reference.days[1] <= self.days[1]

    def _in_year(self, reference: "Date") -> bool:
        return self.month == reference.month and reference.day in {None, self.day}

    def contradicts(self, reference: "Date") -> bool:
        """Return True if the dates have no common day, or have different months, days or weekdays."""
        if (self.weekday is None) != (reference.weekday is None):
            return False
        if self.days is None or reference.days is None:
            return self.weekday != reference.weekday or self._other_day(reference)
        return self.days[1] < reference.days[0] or reference.days[1] < self.days[0]

    def _other_day(self, reference: "Date") -> bool:
        months = self.month is not None and reference.month is not None and self.month != reference.month
        return months or (self.day is not None and reference.day is not None and self.day != reference.day)


def _years_of(days: tuple[int, int]) -> tuple[int, int]:
    return days[0] // _YEAR, days[1] // _YEAR


def _at_precision(reference: Date, asked: DatePrecision) -> Date:
    if reference.ranged or (year := reference.year) is None:
        return reference
    if asked is DatePrecision.YEAR:
        return replace(Date.years(year, year), hedged=reference.hedged)
    if asked is DatePrecision.MONTH and reference.month is not None:
        return replace(Date.of(year, reference.month, None), hedged=reference.hedged)
    return reference


def _widened(reference: Date, first: int, last: int) -> tuple[int, int]:
    if reference.hedged and (year := reference.year) is not None:
        years = 50 if year % 100 == 0 else 5 if year % 10 == 0 else 2
        return first - years * _YEAR, last + years * _YEAR
    return (first - _SLACK, last + _SLACK) if last - first > 50 * _YEAR else (first, last)
