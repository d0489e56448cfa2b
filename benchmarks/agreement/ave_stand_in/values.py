"""Other ways to write a number or a date."""

from __future__ import annotations

import re

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {
    **dict(enumerate(_ONES)),
    **{10 * ten: name for ten, name in enumerate(_TENS, 2)},
    **{10 * ten + one: f"{name}-{_ONES[one]}" for ten, name in enumerate(_TENS, 2) for one in range(1, 10)},
}
_NUMBERS = {name: number for number, name in _WORDS.items()}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# In full or by three letters, September also by four.
MONTH = "|".join((*(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS), "Sept"))
DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{3,4})"
_DATES = (
    (
        re.compile(rf"(?P<month>{MONTH})\.?\s+(?P<day>{DAY})(?:\s*,\s*|\s+){_YEAR}", re.IGNORECASE),
        "{day} {month} {year}",
    ),
    (
        re.compile(rf"(?P<day>{DAY})\s+(?:of\s+)?(?P<month>{MONTH})\.?,?\s+{_YEAR}", re.IGNORECASE),
        "{month} {day}, {year}",
    ),
)
_MONTH_OF_YEAR = re.compile(rf"(?P<month>{MONTH})\.?,?\s+(?P<of>of\s+)?{_YEAR}", re.IGNORECASE)
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}(?:[.,][0-9]{1,2})?)\s*(?P<sign>%|per\s?cent)", re.IGNORECASE)
_YEAR_ALONE = re.compile(r"(?:(?P<led>in)\s+)?(?P<year>1[0-9]{3}|20[0-9]{2})", re.IGNORECASE)
_MOST_DIGITS = 2
# Dates and numbers are short; in a longer text none is looked for.
_LONGEST_CHARACTERS = 200


def other_value_form(text: str) -> tuple[str, str] | None:
    """A text that is a date or begins with a number up to 99, with that written otherwise.

    Returns:
        The text, and the form it has now: "date order", "month", "year", "percent", "digits" or "words"; None for any
        other text.
    """
    if len(text) > _LONGEST_CHARACTERS:
        return None
    for pattern, order in _DATES:
        if found := pattern.fullmatch(text):
            day = found["day"].rstrip("stndrhSTNDRH")
            return order.format(day=int(day), month=_full(found["month"]), year=found["year"]), "date order"
    if found := _MONTH_OF_YEAR.fullmatch(text):
        return f"{_full(found['month'])} {'' if found['of'] else 'of '}{found['year']}", "month"
    if found := _YEAR_ALONE.fullmatch(text):
        return (found["year"] if found["led"] else f"the year {found['year']}"), "year"
    return _other_number_form(text)


def _full(month: str) -> str:
    return next(name for name in _MONTHS if name[:3].lower() == month[:3].lower())


def _other_number_form(text: str) -> tuple[str, str] | None:
    if found := _PERCENT.fullmatch(text):
        return f"{found['number']}{' percent' if found['sign'] == '%' else '%'}", "percent"
    first, blank, rest = text.partition(" ")
    if (number := _NUMBERS.get(first.lower())) is not None:
        return f"{number}{blank}{rest}", "digits"
    # int() reads the digits of every script.
    if len(first) <= _MOST_DIGITS and first.isascii() and first.isdigit():
        return f"{_WORDS[int(first)]}{blank}{rest}", "words"
    return None
