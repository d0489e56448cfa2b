"""Parse dates and periods in tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gradewire_server.metrics.values.dates import MONTHS, Date
from gradewire_server.metrics.values.numerals import ORDINAL_ENDINGS
from gradewire_server.metrics.values.ordinals import ordinal_number_at
from gradewire_server.metrics.values.tokens import (
    VOCABULARY,
    Token,
    adjacent,
    integer_at,
    lower_at,
    phrase_at,
    phrases,
    roman_value,
    tokens_are,
)
from gradewire_server.metrics.values.units import CURRENCY_SIGNS, NAMES, SYMBOLS

_WORDS: Final = VOCABULARY["dates"]
MONTH_NAMES: Final = {
    **{name: number for number, name in enumerate(_WORDS["months"].split(), 1)},
    **{name[:3]: number for number, name in enumerate(_WORDS["months"].split(), 1)},
    "sept": 9,
}
MONTHS_ELSEWHERE: Final = {
    name: number for number, names in enumerate(_WORDS["months_of_other_languages"], 1) for name in names.split()
}
WEEKDAYS: Final = {
    f"{name}{plural}": number for number, name in enumerate(_WORDS["weekdays"].split()) for plural in ("", "s")
}
SEASONS: Final = _WORDS["seasons"]
"""The first and last month of each season in the northern hemisphere."""
DECADES: Final = {name: 10 * number for number, name in enumerate(_WORDS["decades"].split(), 2)}

FIRST_YEAR: Final = 1000
"""The first year that a four-digit number may mean."""
_LAST_YEAR: Final = 2100
_LAST_CENTURY: Final = 2000
_LAST_SHORT_YEAR: Final = 39
"""The last two-digit year that means a year of this century."""
_MAX_CENTURY: Final = 30
_MAX_BC: Final = 12_000
_MAX_DAY: Final = 31
_ERAS: Final = phrases(_WORDS["eras"])
_HEDGES: Final = frozenset(_WORDS["hedges"].split())
_RANGE_LINKS: Final = frozenset(_WORDS["range_links"].split())
_BEFORE_YEARS: Final = frozenset(_WORDS["before_years"].split())
_NO_YEAR: Final = frozenset(_WORDS["no_year"].split())
_NO_DAY: Final = frozenset(_WORDS["no_day"].split())
_WORDS_TOO: Final = frozenset(_WORDS["words_too"].split())
_BEFORE_MONTHS: Final = frozenset(_WORDS["before_months"].split())
_BEFORE_DAYS_ELSEWHERE: Final = frozenset(_WORDS["before_days_of_other_languages"].split())


def full_year_at(tokens: Sequence[Token], at: int) -> int | None:
    """Return the year at an index (a four-digit number from 1000 to 2099, or "FY22"), or None if there is no year."""
    year = integer_at(tokens, at)
    if year is not None and lower_at(tokens, at - 1) == "fy" and adjacent(tokens, at) and len(tokens[at].text) == 2:
        return 2000 + year  # "FY22"
    return year if year is not None and FIRST_YEAR <= year < _LAST_YEAR and len(tokens[at].text) == 4 else None


def decade_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Parse a decade or century in digits: "1970s", "the '70s", "the 1800s"."""
    year = integer_at(tokens, at)
    end = at + 1 + (lower_at(tokens, at + 1) == "'" and adjacent(tokens, at + 1))
    if year is None or year % 10 or not adjacent(tokens, end) or lower_at(tokens, end) != "s":
        return None
    if len(tokens[at].text) == 2:
        return Date.years(1900 + year, 1909 + year), end + 1
    if year < 100 or year >= _LAST_YEAR:
        return None
    # "The 2000s" means a decade, since the century is young.
    date, end = Date.years(year, year + (99 if year % 100 == 0 and year != _LAST_CENTURY else 9)), end + 1
    if (era := phrase_at(tokens, end, _ERAS)) is not None and era[0] < 0:
        return Date.years(-year - (99 if year % 100 == 0 else 9), -year), era[1]
    return date, end


def century_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Parse a century: "19th century", "the fifth century BC", "XIX century"."""
    found = ordinal_number_at(tokens, at)
    if found is None and tokens[at].word and (roman := roman_value(tokens[at].text)) is not None:
        found = roman, at + 1 + (lower_at(tokens, at + 1) in ORDINAL_ENDINGS)
    if found is None:
        return None
    century, end = found
    end += lower_at(tokens, end) == "-"
    if not 1 <= century <= _MAX_CENTURY or lower_at(tokens, end) not in {"century", "centuries", "cent"}:
        return None
    era = phrase_at(tokens, end + 1, _ERAS)
    if era is not None and era[0] < 0:
        return Date.years(-100 * century, -100 * century + 99), era[1]
    return Date.years(100 * century - 99, 100 * century), end + 1 if era is None else era[1]


def year_with_era_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Parse a year with an era or after "the year": "27 BC", "800 AD", "in the year 44"."""
    number = tokens[at].number
    if number is None or number % 1 or not 1 <= number <= _MAX_BC:
        return None
    year = int(number)
    era = phrase_at(tokens, at + 1, _ERAS)
    if era is not None:
        return Date.years(era[0] * year, era[0] * year), era[1]
    named = tokens_are(tokens, at - 2, "the", "year")
    return (Date.years(year, year), at + 1) if named and year < _LAST_YEAR else None


def season_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Parse a season with a year: "Summer 1969", "the fall of 2015"."""
    place = at + 1 + (lower_at(tokens, at + 1) in {"of", ","})
    year = full_year_at(tokens, place)
    if year is None:
        return None
    first, last = SEASONS[tokens[at].lower]
    return Date.months(year, first, last), place + 1


def quarter_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Parse a quarter of a year: "the third quarter of 2021", "Q3 2021"."""
    if lower_at(tokens, at) == "q":
        number = integer_at(tokens, at + 1) if adjacent(tokens, at + 1) else None
        found = None if number is None else (number, at + 2)
    else:
        found = ordinal_number_at(tokens, at)
        found = (found[0], found[1] + 1) if found is not None and lower_at(tokens, found[1]) == "quarter" else None
    if found is None or not 1 <= found[0] <= 4:
        return None
    quarter, place = found
    place += lower_at(tokens, place) in {"of", "in"}
    while lower_at(tokens, place) in {"fy", "fiscal", "year"}:
        place += 1
    year = full_year_at(tokens, place)
    return None if year is None else (Date.months(year, 3 * quarter - 2, 3 * quarter), place + 1)


def date_at(tokens: Sequence[Token], at: int) -> tuple[Date, int, int] | None:
    """Return the date at a token, the date's first index and the index after the date; None if there is no date."""
    found = _point(tokens, at)
    if found is None:
        return None
    date, end = found
    start = at - (lower_at(tokens, at - 1) == "the")
    date, start = _narrowed_to_stage(tokens, date, start)
    date, end = _extended_to_range(tokens, date, start, end)
    hedged = lower_at(tokens, start - 1) in _HEDGES
    return (replace(date, hedged=True) if hedged else date), start, end


def _point(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Return the date at a token, and the index after the date. Ignore "early", "between" and the like around it."""
    token = tokens[at]
    if token.word:
        return _by_word(tokens, at)
    if token.number is None or lower_at(tokens, at - 1) in CURRENCY_SIGNS:
        return None
    return (
        _date_in_digits(tokens, at) or _day_first(tokens, at) or decade_at(tokens, at) or century_at(tokens, at)
        or year_with_era_at(tokens, at) or quarter_at(tokens, at) or _year_at(tokens, at)
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
        return season_at(tokens, at)
    number = integer_at(tokens, at + 1)
    if lower in {"ad", "ce"} and number is not None:
        return Date.years(number, number), at + 2
    return (
        _month_and_year_elsewhere(tokens, at)
        or _day_first(tokens, at)
        or century_at(tokens, at)
        or quarter_at(tokens, at)
    )


def _date_in_digits(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    first, second, third = (integer_at(tokens, at + step) for step in (0, 2, 4))
    mark = lower_at(tokens, at + 1)
    if first is None or second is None or third is None or mark not in {"-", "/"}:
        return None
    if lower_at(tokens, at + 3) != mark or not all(adjacent(tokens, at + step) for step in range(1, 5)):
        return None
    if first >= FIRST_YEAR:
        year, month, day = first, second, third
    elif third >= FIRST_YEAR:
        year, month, day = (third, first, second) if first <= MONTHS else (third, second, first)
    elif mark == "/" and len(tokens[at + 4].text) == 2 and lower_at(tokens, at + 5) != "/":
        year = third + (2000 if third <= _LAST_SHORT_YEAR else 1900)
        month, day = (first, second) if first <= MONTHS else (second, first)
    else:
        return None
    return (Date.of(year, month, day), at + 5) if 1 <= month <= MONTHS and 1 <= day <= _MAX_DAY else None


def _day_at(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    found = ordinal_number_at(tokens, at)
    if found is None and (whole := integer_at(tokens, at)) is not None and len(tokens[at].text) <= 2:
        found = (
            whole,
            at + 1 + (whole == 1 and lower_at(tokens, at + 1) == "er" and adjacent(tokens, at + 1)),
        )  # "1er mai"
    return found if found is not None and 1 <= found[0] <= _MAX_DAY else None


def _month_first(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    month = MONTH_NAMES[tokens[at].lower]
    end = at + 1 + (lower_at(tokens, at + 1) == "." and len(tokens[at].text) <= 4)
    place = end + (lower_at(tokens, end) == "the")
    day = _day_at(tokens, place) if place < len(tokens) else None
    if day is not None and lower_at(tokens, day[1]) in _NO_DAY:
        day = None
    behind = end if day is None else day[1]
    year, finish = _year_after(tokens, behind)
    if day is None and year is None and not _means_month(tokens, at):
        return None
    return Date.of(year, month, None if day is None else day[0]), finish


def _means_month(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    if token.lower not in _WORDS_TOO:
        return True
    before = lower_at(tokens, at - 1)
    return token.text[0].isupper() and (len(tokens) <= 2 or before in _BEFORE_MONTHS)


def _year_after(tokens: Sequence[Token], at: int) -> tuple[int | None, int]:
    place = at
    while place < at + 2 and lower_at(tokens, place) in {",", "of", "in", "de", "del"}:
        place += 1
    year = full_year_at(tokens, place)
    if year is None:
        return None, at
    return year, place + 1


def _day_first(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    found = _day_at(tokens, at)
    if found is None:
        return None
    day, end = found
    end += lower_at(tokens, end) == "of"
    end += lower_at(tokens, end) == "-" and adjacent(tokens, end)
    month = MONTH_NAMES.get(lower_at(tokens, end))
    if month is None:
        linked = lower_at(tokens, end) in {".", "de"}
        # "3 mars bars" is no date, but "le 3 mars", "1er mars" and "3. M\u00e4rz" are.
        marked = linked or lower_at(tokens, end - 1) == "er" or lower_at(tokens, at - 1) in _BEFORE_DAYS_ELSEWHERE
        return _day_first_elsewhere(tokens, end + linked, day) if marked or _ends_date(tokens, end + 1) else None
    if tokens[end].text == "may" and not lower_at(tokens, end + 1).isdecimal():
        return None
    end += 1 + (lower_at(tokens, end + 1) == "." and len(tokens[end].text) <= 4)
    year, finish = _year_after(tokens, end)
    return Date.of(year, month, day), finish


def _ends_date(tokens: Sequence[Token], at: int) -> bool:
    """Return True if a year, the end of a clause or the end of the text is at an index."""
    if at >= len(tokens) or _year_after(tokens, at)[0] is not None:
        return True
    hyphen = tokens[at].text == "-" and adjacent(tokens, at)
    return tokens[at].number is None and not tokens[at].word and not hyphen


def _day_first_elsewhere(tokens: Sequence[Token], at: int, day: int) -> tuple[Date, int] | None:
    """Parse the month and year of a German, French or Spanish date behind its day: "31. März 2027", "3 de mayo"."""
    month = _month_elsewhere(tokens, at)
    year, end = _year_after(tokens, at + 1)
    if month is None and year is not None and lower_at(tokens, at - 1) == ".":  # "1. August 2027"
        month = MONTH_NAMES.get(lower_at(tokens, at))
    return None if month is None else (Date.of(year, month, day), end)


def _month_and_year_elsewhere(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    month = _month_elsewhere(tokens, at)
    if month is None:
        return None
    year, end = _year_after(tokens, at + 1)
    return None if year is None else (Date.of(year, month, None), end)


def _month_elsewhere(tokens: Sequence[Token], at: int) -> int | None:
    month = MONTHS_ELSEWHERE.get(lower_at(tokens, at))
    return None if month is not None and tokens[at].text == "Mars" else month


def _year_at(tokens: Sequence[Token], at: int) -> tuple[Date, int] | None:
    """Return a four-digit year and the index after it, or None if a unit or sign shows that the number is no year."""
    year = full_year_at(tokens, at)
    if year is None or lower_at(tokens, at + 1) in _NO_YEAR:
        return None
    token = tokens[at]
    before = lower_at(tokens, at - 1)
    dated = before in _BEFORE_YEARS
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    counts = behind is not None and behind.word and (behind.lower in NAMES or behind.text in SYMBOLS)
    if not dated and (counts or (before in {"-", "=", "*", "+"} and adjacent(tokens, at))):
        return None
    date = Date.years(year, year)
    return (date if dated else replace(date, number=int(token.number or 0))), at + 1


def _narrowed_to_stage(tokens: Sequence[Token], date: Date, start: int) -> tuple[Date, int]:
    before = start - 1 - (lower_at(tokens, start - 1) == "-")
    stage = _WORDS["stages"].get(lower_at(tokens, before))
    if stage is None or date.days is None or date.month:
        return date, start
    begin, end = date.days
    first, last = (int((end - begin + 1) * share) for share in stage)
    return replace(date, days=(begin + first, begin + last - 1), number=None), before


def _extended_to_range(tokens: Sequence[Token], date: Date, start: int, end: int) -> tuple[Date, int]:
    link = lower_at(tokens, end)
    between = lower_at(tokens, start - 1) == "between"
    if date.days is None or link not in _RANGE_LINKS or (link == "and") != between or end + 1 >= len(tokens):
        return date, end
    if link == "/" and not adjacent(tokens, end + 1):
        return date, end
    year = None if date.month else date.year
    short = integer_at(tokens, end + 1) if link in {"-", "/"} and len(tokens[end + 1].text) == 2 else None
    full = None if date.month else full_year_at(tokens, end + 1)
    if short is not None and year is not None and short > year % 100 and lower_at(tokens, end + 2) not in {"-", "/"}:
        full = year // 100 * 100 + short
    upper = _point(tokens, end + 1) if full is None else (Date.years(full, full), end + 2)
    if upper is None or upper[0].days is None or upper[0].days[1] <= date.days[1]:
        return date, end
    return Date((date.days[0], upper[0].days[1]), ranged=not between), upper[1]
