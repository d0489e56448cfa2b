"""A text as words, numbers and signs, each with its place."""

import re
from itertools import islice
from math import isfinite
from typing import Final, NamedTuple

MAX_TOKENS: Final = 8_192
"""Words, numbers and signs of a text that values are read from."""
_MAX_DIGITS: Final = 40
DIGITS: Final = frozenset("0123456789")
"""The digits of a text in plain form."""

# Commas, blanks or points part thousands; a point with one group behind it is a decimal point.
_NUMBER: Final = (
    r"\d{1,3}(?:,\d{3}){1,9}(?![\d,]\d)(?:\.\d+)?|\d{1,2}(?:,\d{2}){1,4},\d{3}(?!\d)|\d{1,3}(?:\.\d{3}){2,9}(?![\d.])"
    r"|(?<![\d.])\d{1,3}(?: \d{3}){1,9}(?![\d.])|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?![\w.]))?|(?<![\w.])\.\d+"
)
_TOKEN: Final = re.compile(
    rf"(?P<number>{_NUMBER})|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?|\u00b0)|(?P<sign><=|>=|!=|->|\+/-|\*\*|[^\w\s])"
)


class Token(NamedTuple):
    """One word, number or sign.

    Attributes:
        text: As written, in plain form.
        lower: In small letters.
        start: Where it begins in the plain text.
        end: Where it ends.
        number: Its value, for one that begins with a digit or a decimal point; at least 0.
        place: What its last digit that is not a trailing zero counts: 100 for "8,800", 0.01 for "3.14".
        word: Whether it is a word.
    """

    text: str
    lower: str
    start: int
    end: int
    number: float | None = None
    place: float = 1.0
    word: bool = False

    @property
    def whole(self) -> int | None:
        """The number of a plain run of at most four digits, None for all else."""
        return int(self.text) if self.number is not None and len(self.text) <= 4 and self.text.isdecimal() else None


def tokens_of(text: str) -> list[Token]:
    """The first MAX_TOKENS tokens of a text in plain form; numbers beyond what floats hold are words without value."""
    return [_token(match) for match in islice(_TOKEN.finditer(text), MAX_TOKENS)]


def _token(match: re.Match[str]) -> Token:
    text = match[0]
    if match.lastgroup != "number":
        return Token(text, text.lower(), match.start(), match.end(), word=match.lastgroup == "word")
    number, place = read_number(text)
    return Token(text, text, match.start(), match.end(), number if isfinite(number) else None, place)


def read_number(text: str) -> tuple[float, float]:
    """Value and place of a number in digits; points part thousands where there are several."""
    digits = text.replace(",", "").replace(" ", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    if len(digits) > _MAX_DIGITS and "." not in digits:
        return float("inf"), 1.0
    mantissa, _, power = digits.lower().partition("e")
    whole, _, decimals = mantissa[:_MAX_DIGITS].partition(".")
    scale = float(f"1e{power}") if power else 1.0
    if decimals:
        return float(digits[: _MAX_DIGITS * 2]), scale * 10.0 ** -len(decimals)
    zeros = len(whole) - len(whole.rstrip("0"))
    return float(digits), scale * 10.0 ** min(zeros, len(whole) - 1)
