"""NFC, the one normal form of every text that comes in, in a time that grows with the text and no faster.

Sorting combining marks takes the square of their number, in one C call that nothing can interrupt: a few hundred
kilobytes of them would hold up every caller. Source of the bound: Unicode UAX 15, Stream-Safe Text Format.
"""

import re
from typing import Final
from unicodedata import category, normalize

MAX_MARKS: Final = 30
"""Combining marks in a row; no language needs more than a few."""
_LONG_RUN: Final = "M" * (MAX_MARKS + 1)
# Neither letter nor space and from where the marks begin: they are all in it. The look-behind starts a run at its first
# character only, so that runs just below the bound are not tried again from each of their characters.
_SYMBOL: Final = r"[^\w\s\x00-\u02ff]"
_SYMBOLS: Final = re.compile(rf"{_SYMBOL}(?<!{_SYMBOL}{_SYMBOL}){_SYMBOL}{{{MAX_MARKS},}}")


class TooManyMarksError(ValueError):
    """A text has more than MAX_MARKS combining marks in a row."""

    def __init__(self) -> None:
        super().__init__(f"more than {MAX_MARKS} combining marks in a row")


def nfc(text: str) -> str:
    """The text in NFC (plain ASCII passes at once); raises TooManyMarksError."""
    if text.isascii():
        return text
    if has_long_run(text):
        raise TooManyMarksError
    return normalize("NFC", text)


def has_long_run(text: str) -> bool:
    """Whether more than MAX_MARKS characters of Unicode's categories M stand in a row."""
    return not text.isascii() and any(
        _LONG_RUN in "".join([category(character)[0] for character in run.group()]) for run in _SYMBOLS.finditer(text)
    )
