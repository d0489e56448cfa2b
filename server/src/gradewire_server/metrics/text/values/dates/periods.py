"""Periods among tokens: "the 80s", "5th century BC", "summer of 1969", "Q3 2021"."""

from collections.abc import Sequence
from typing import Final

from gradewire_server.metrics.text.values.dates.date_words import SEASONS
from gradewire_server.metrics.text.values.dates.dates import Date
from gradewire_server.metrics.text.values.signs.ordinals import ordinal_number_at
from gradewire_server.metrics.text.values.writing.number_words import ORDINAL_ENDINGS
from gradewire_server.metrics.text.values.writing.numerals import adjacent, lower_at, tokens_are
from gradewire_server.metrics.text.values.writing.roman_numerals import roman_value
from gradewire_server.metrics.text.values.writing.tokens import Token

_ERAS: Final = frozenset({"bc", "bce", "b", "ad", "ce", "a", "c"})
FIRST_YEAR: Final = 1000
"""First year that four digits are taken for."""
_LAST_YEAR: Final = 2100
_LAST_CENTURY: Final = 2000
_MAX_CENTURY: Final = 30
_MAX_BC: Final = 12_000


def whole_at(tokens: Sequence[Token], at: int) -> int | None:
    """The number of a plain run of at most four digits, None for all else and beyond the ends."""
    return tokens[at].whole if 0 <= at < len(tokens) else None


def full_year_at(tokens: Sequence[Token], at: int) -> int | None:
    """The year of four digits, 1000 to 2099, that stands at a place."""
    year = whole_at(tokens, at)
    if year is not None and lower_at(tokens, at - 1) == "fy" and adjacent(tokens, at) and len(tokens[at].text) == 2:
        return 2000 + year  # "FY22"
    return year if year is not None and FIRST_YEAR <= year < _LAST_YEAR and len(tokens[at].text) == 4 else None


def decade_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """As in "1970s", "the '70s", "the 1800s"."""
    year = whole_at(tokens, at)
    end = at + 1 + (lower_at(tokens, at + 1) == "'" and adjacent(tokens, at + 1))
    if year is None or year % 10 or not adjacent(tokens, end) or lower_at(tokens, end) != "s":
        return None
    if len(tokens[at].text) == 2:
        return Date.years(1900 + year, 1909 + year), end + 1
    if year < 100 or year >= _LAST_YEAR:
        return None
    # "The 2000s" are a decade as long as their century is young.
    date, end = Date.years(year, year + (99 if year % 100 == 0 and year != _LAST_CENTURY else 9)), end + 1
    if (era := _era(tokens, end)) is not None and era[0] < 0:
        return Date.years(-year - (99 if year % 100 == 0 else 9), -year), era[1]
    return date, end


def century_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """As in "19th century", "the fifth century BC", "XIX century"."""
    found = ordinal_number_at(tokens, at)
    if found is None and tokens[at].word and (roman := roman_value(tokens[at].text)) is not None:
        found = roman, at + 1 + (lower_at(tokens, at + 1) in ORDINAL_ENDINGS)
    if found is None:
        return None
    century, end = found
    end += lower_at(tokens, end) == "-"
    if not 1 <= century <= _MAX_CENTURY or lower_at(tokens, end) not in {"century", "centuries", "cent"}:
        return None
    era = _era(tokens, end + 1)
    if era is not None and era[0] < 0:
        return Date.years(-100 * century, -100 * century + 99), era[1]
    return Date.years(100 * century - 99, 100 * century), end + 1 if era is None else era[1]


def _era(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """-1 before Christ, 1 behind, and the place after it."""
    if lower_at(tokens, at) not in _ERAS:
        return None
    for words, sign in (
        (("bc",), -1), (("bce",), -1), (("b", ".", "c", ".", "e", "."), -1), (("b", ".", "c", "."), -1),
        (("b", ".", "c"), -1), (("ad",), 1), (("ce",), 1), (("a", ".", "d", "."), 1), (("c", ".", "e", "."), 1),
    ):  # fmt: skip
        if tokens_are(tokens, at, *words):
            return sign, at + len(words)
    return None


def year_with_era_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """As in "27 BC", "800 AD", "in the year 44"."""
    number = tokens[at].number
    if number is None or number % 1 or not 1 <= number <= _MAX_BC:
        return None
    year = int(number)
    era = _era(tokens, at + 1)
    if era is not None:
        return Date.years(era[0] * year, era[0] * year), era[1]
    named = tokens_are(tokens, at - 2, "the", "year")
    return (Date.years(year, year), at + 1) if named and year < _LAST_YEAR else None


def season_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """As in "Summer 1969", "the fall of 2015"; without a year it is hardly ever a date."""
    place = at + 1 + (lower_at(tokens, at + 1) in {"of", ","})
    year = full_year_at(tokens, place)
    if year is None:
        return None
    first, last = SEASONS[tokens[at].lower]
    return Date.months(year, first, last), place + 1


def quarter_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """As in "the third quarter of 2021", "Q3 2021"."""
    if lower_at(tokens, at) == "q":
        number = whole_at(tokens, at + 1) if adjacent(tokens, at + 1) else None
        found = None if number is None else (number, at + 2)
    else:
        found = ordinal_number_at(tokens, at)
        found = (found[0], found[1] + 1) if found is not None and lower_at(tokens, found[1]) == "quarter" else None
    if found is None:
        return None
    return _quarter_of(tokens, found[0], found[1] + (lower_at(tokens, found[1]) in {"of", "in"}))


def _quarter_of(tokens: Sequence[Token], quarter: int, at: int) -> tuple[Date, int] | None:
    while lower_at(tokens, at) in {"fy", "fiscal", "year"}:
        at += 1
    year = full_year_at(tokens, at)
    if year is None or not 1 <= quarter <= 4:
        return None
    return Date.months(year, 3 * quarter - 2, 3 * quarter), at + 1
