"""Dates among tokens: "4 July 1776", "the early 80s", "5th century BC", "summer of 1969", "1914-18"."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gradewire_server.metrics.text.values.amounts.units import CURRENCY_SIGNS, NAMES, SYMBOLS
from gradewire_server.metrics.text.values.dates.dates import MONTHS, Date
from gradewire_server.metrics.text.values.signs.ordinals import ordinal_number_at
from gradewire_server.metrics.text.values.writing.numerals import adjacent, lower_at, tokens_are
from gradewire_server.metrics.text.values.writing.tokens import Token

_NAMES: Final = "january february march april may june july august september october november december"
MONTH_NAMES: Final = {
    **{name: number for number, name in enumerate(_NAMES.split(), 1)},
    **{name[:3]: number for number, name in enumerate(_NAMES.split(), 1)},
    "sept": 9,
}
"""Months by name and short name."""
WEEKDAYS: Final = {
    name: number // 2
    for number, name in enumerate(
        [
            "monday",
            "mondays",
            "tuesday",
            "tuesdays",
            "wednesday",
            "wednesdays",
            "thursday",
            "thursdays",
            "friday",
            "fridays",
            "saturday",
            "saturdays",
            "sunday",
            "sundays",
        ]
    )
}
"""Days of the week by name."""
SEASONS: Final = {"spring": (3, 6), "summer": (6, 9), "autumn": (9, 12), "fall": (9, 12), "winter": (12, 15)}
"""First and last month of the seasons in the north."""
DECADES: Final = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80,
    "nineties": 90,
}  # fmt: skip
"""Decades by name, of the 20th century."""
_VERBS: Final = frozenset({"may", "march", "mar", "sep", "dec", "jan", "oct", "nov", "apr", "jun", "jul", "feb", "aug"})
_IN: Final = frozenset({
    "in", "of", "on", "since", "until", "till", "by", "before", "after", "during", "from", "to", "year", "early",
    "late", "mid", "circa", "last", "next", "this", "every", "and", "between", "around", "about",
})  # fmt: skip
_PREPOSITIONS: Final = frozenset({
    "in", "since", "until", "till", "by", "year", "from", "circa", "ca", "c", "during", "before", "after", "between",
})  # fmt: skip
_HEDGES: Final = frozenset({"about", "around", "circa", "ca", "c", "roughly", "approximately", "~"})
_ERAS: Final = frozenset({"bc", "bce", "b", "ad", "ce", "a", "c"})
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 2100
_MAX_DAY: Final = 31
_MAX_CENTURY: Final = 30
_MAX_BC: Final = 12_000
_RANGES: Final = frozenset({"-", "to", "until", "till", "through", "/", "and"})


def date_at(tokens: Sequence[Token], at: int) -> tuple[Date, int, int] | None:
    """The date that begins at a token, with indices of its first token and the one behind it."""
    found = _point(tokens, at)
    if found is None:
        return None
    date, end = found
    start = at - (lower_at(tokens, at - 1) == "the")
    date, start = _stage(tokens, date, start)
    date, end = _ranged(tokens, date, start, end)
    hedged = lower_at(tokens, start - 1) in _HEDGES
    return (replace(date, hedged=True) if hedged else date), start, end


def _point(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """A date without what is said around it."""
    token = tokens[at]
    if token.word:
        return _by_word(tokens, at)
    if token.number is None or lower_at(tokens, at - 1) in CURRENCY_SIGNS:
        return None
    return (
        _by_digits(tokens, at) or _day_first(tokens, at) or _decade(tokens, at) or _century(tokens, at)
        or _with_era(tokens, at) or _quarter(tokens, at) or _year(tokens, at)
    )  # fmt: skip


def _by_word(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    lower = tokens[at].lower
    if lower in MONTH_NAMES:
        return _month_first(tokens, at)
    if lower in WEEKDAYS:
        return Date(weekday=WEEKDAYS[lower]), at + 1
    if lower in DECADES:
        return Date.years(1900 + DECADES[lower], 1909 + DECADES[lower]), at + 1
    if lower in SEASONS:
        return _season(tokens, at)
    if lower in {"ad", "ce"} and at + 1 < len(tokens) and (year := tokens[at + 1].whole) is not None:
        return Date.years(year, year), at + 2
    if lower == "q" and adjacent(tokens, at + 1) and (quarter := tokens[at + 1].whole) is not None:
        year_at = at + 2 + (lower_at(tokens, at + 2) == "of")
        return _quarter_of(tokens, quarter, year_at)
    return _day_first(tokens, at) or _century(tokens, at) or _quarter(tokens, at)


def _whole(tokens: Sequence[Token], at: int) -> int | None:
    return tokens[at].whole if 0 <= at < len(tokens) else None


def _full_year(tokens: Sequence[Token], at: int) -> int | None:
    year = _whole(tokens, at)
    return year if year is not None and _FIRST_YEAR <= year < _LAST_YEAR and len(tokens[at].text) == 4 else None


def _by_digits(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "1776-07-04", "12/25/1999", "25.12.1999"."""
    first, second, third = (_whole(tokens, at + step) for step in (0, 2, 4))
    mark = lower_at(tokens, at + 1)
    if first is None or second is None or third is None or mark not in {"-", "/"}:
        return None
    if lower_at(tokens, at + 3) != mark or not all(adjacent(tokens, at + step) for step in range(1, 5)):
        return None
    if first >= _FIRST_YEAR:
        year, month, day = first, second, third
    elif third >= _FIRST_YEAR:
        year, month, day = (third, first, second) if first <= MONTHS else (third, second, first)
    else:
        return None
    return (Date.of(year, month, day), at + 5) if 1 <= month <= MONTHS and 1 <= day <= _MAX_DAY else None


def _day(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """Day of a month and the place behind it."""
    found = ordinal_number_at(tokens, at)
    if found is None and (whole := _whole(tokens, at)) is not None and len(tokens[at].text) <= 2:
        found = whole, at + 1
    return found if found is not None and 1 <= found[0] <= _MAX_DAY else None


def _month_first(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "July 4, 1776", "July 1776", "in July"."""
    month = MONTH_NAMES[tokens[at].lower]
    end = at + 1 + (lower_at(tokens, at + 1) == "." and len(tokens[at].text) <= 4)
    place = end + (lower_at(tokens, end) == "the")
    day = _day(tokens, place) if place < len(tokens) else None
    if day is not None and _clock_or_unit(tokens, day[1]):
        day = None
    behind = end if day is None else day[1]
    year, finish = _year_behind(tokens, behind)
    if day is None and year is None and not _is_month(tokens, at):
        return None
    return Date.of(year, month, None if day is None else day[0]), finish


def _clock_or_unit(tokens: Sequence[Token], at: int) -> bool:
    return lower_at(tokens, at) in {":", "%"} or lower_at(tokens, at) in {"million", "percent", "people"}


def _is_month(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word without day and year is a month: "may" and "march" are verbs, "Sep" and "Dec" names as well."""
    token = tokens[at]
    if token.lower not in _VERBS:
        return True
    before = lower_at(tokens, at - 1)
    return token.text[0].isupper() and (len(tokens) <= 2 or before in _IN)


def _year_behind(tokens: Sequence[Token], at: int) -> tuple[int | None, int]:
    place = at
    while place < at + 2 and lower_at(tokens, place) in {",", "of", "in"}:
        place += 1
    year = _full_year(tokens, place)
    if year is None:
        return None, at
    return year, place + 1


def _day_first(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "4 July 1776", "the fourteenth of July"."""
    found = _day(tokens, at)
    if found is None:
        return None
    day, end = found
    end += lower_at(tokens, end) == "of"
    end += lower_at(tokens, end) == "-" and adjacent(tokens, end)
    month = MONTH_NAMES.get(lower_at(tokens, end))
    if month is None or (tokens[end].text == "may" and not lower_at(tokens, end + 1).isdecimal()):
        return None
    end += 1 + (lower_at(tokens, end + 1) == "." and len(tokens[end].text) <= 4)
    year, finish = _year_behind(tokens, end)
    return Date.of(year, month, day), finish


def _decade(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "1970s", "the '70s", "the 1800s"."""
    year = _whole(tokens, at)
    end = at + 1 + (lower_at(tokens, at + 1) == "'" and adjacent(tokens, at + 1))
    if year is None or year % 10 or not adjacent(tokens, end) or lower_at(tokens, end) != "s":
        return None
    if len(tokens[at].text) == 2:
        return Date.years(1900 + year, 1909 + year), end + 1
    if year < 100 or year >= _LAST_YEAR:
        return None
    date, end = Date.years(year, year + (99 if year % 100 == 0 else 9)), end + 1
    if (era := _era(tokens, end)) is not None and era[0] < 0:
        return Date.years(-year - (99 if year % 100 == 0 else 9), -year), era[1]
    return date, end


def _century(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "19th century", "the fifth century BC"."""
    found = ordinal_number_at(tokens, at)
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


def _with_era(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "27 BC", "800 AD", "in the year 44"."""
    number = tokens[at].number
    if number is None or number % 1 or not 1 <= number <= _MAX_BC:
        return None
    year = int(number)
    era = _era(tokens, at + 1)
    if era is not None:
        return Date.years(era[0] * year, era[0] * year), era[1]
    named = tokens_are(tokens, at - 2, "the", "year")
    return (Date.years(year, year), at + 1) if named and year < _LAST_YEAR else None


def _season(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "Summer 1969", "the fall of 2015"; without a year it is hardly ever a date."""
    place = at + 1 + (lower_at(tokens, at + 1) in {"of", ","})
    year = _full_year(tokens, place)
    if year is None:
        return None
    first, last = SEASONS[tokens[at].lower]
    return Date.months(year, first, last), place + 1


def _quarter(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """ "The third quarter of 2021"."""
    found = ordinal_number_at(tokens, at)
    if found is None or lower_at(tokens, found[1]) != "quarter":
        return None
    return _quarter_of(tokens, found[0], found[1] + 1 + (lower_at(tokens, found[1] + 1) in {"of", "in"}))


def _quarter_of(tokens: Sequence[Token], quarter: int, at: int) -> tuple[Date, int] | None:
    year = _full_year(tokens, at)
    if year is None or not 1 <= quarter <= 4:
        return None
    return Date.months(year, 3 * quarter - 2, 3 * quarter), at + 1


def _year(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """A year in four digits, unless a unit behind it says that it is a number."""
    year = _full_year(tokens, at)
    if year is None or lower_at(tokens, at + 1) in {"%", "^", "*", "+", "\u00b0", "million", "billion", "hundred"}:
        return None
    token = tokens[at]
    before = lower_at(tokens, at - 1)
    dated = before in _PREPOSITIONS
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    counts = behind is not None and behind.word and (behind.lower in NAMES or behind.text in SYMBOLS)
    if not dated and (counts or (before in {"-", "=", "*", "+"} and adjacent(tokens, at))):
        return None
    date = Date.years(year, year)
    return (date if dated else replace(date, number=int(token.number or 0))), at + 1


def _stage(tokens: Sequence[Token], date: Date, start: int) -> tuple[Date, int]:
    """Early, middle or late in a decade, century or year."""
    before = start - 1 - (lower_at(tokens, start - 1) == "-")
    stage = lower_at(tokens, before)
    if stage not in {"early", "mid", "late", "middle"} or date.first is None or date.last is None or date.month:
        return date, start
    length = date.last - date.first + 1
    first, last = {"early": (0.0, 0.4), "late": (0.6, 1.0)}.get(stage, (0.3, 0.8))
    begin = date.first + int(length * first)
    return replace(date, first=begin, last=date.first + int(length * last) - 1, number=None), before


def _ranged(tokens: Sequence[Token], date: Date, start: int, end: int) -> tuple[Date, int]:
    """ "1914-18", "1368 to 1644", "between 1440 and 1450"."""
    link = lower_at(tokens, end)
    between = lower_at(tokens, start - 1) == "between"
    if date.first is None or link not in _RANGES or (link == "and") != between or end + 1 >= len(tokens):
        return date, end
    if link == "/" and not adjacent(tokens, end + 1):
        return date, end
    short = _whole(tokens, end + 1)
    year = date.year
    if (
        short is not None and year is not None and len(tokens[end + 1].text) == 2 and link in {"-", "/"}
        and date.month is None and short > year % 100 and lower_at(tokens, end + 2) not in {"-", "/"}
    ):  # fmt: skip
        upper: tuple[Date, int] | None = (Date.years(year // 100 * 100 + short, year // 100 * 100 + short), end + 2)
    elif (full := _full_year(tokens, end + 1)) is not None and date.month is None:
        upper = (Date.years(full, full), end + 2)
    else:
        upper = _point(tokens, end + 1)
    if upper is None or upper[0].last is None or upper[0].last <= (date.last or 0):
        return date, end
    return Date(date.first, upper[0].last, ranged=not between), upper[1]
