"""Roman numerals."""

import re
from typing import Final

_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN: Final = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def roman_value(word: str) -> int | None:
    """1 to 3 999 for a numeral in capitals, as it is written by rule; None for all else ("IIX", "Mix", "")."""
    if not word or _ROMAN.fullmatch(word) is None:
        return None
    values = [_DIGITS[letter] for letter in word]
    return sum(-value if value < behind else value for value, behind in zip(values, [*values[1:], 0], strict=True))
