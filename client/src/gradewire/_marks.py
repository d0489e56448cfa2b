"""Texts that the server refuses, as their normal form takes too long; the name of a set needs that form here too."""

import re
from typing import Final
from unicodedata import category

MAX_MARKS: Final = 30
"""Combining marks in a row (Unicode UAX 15, Stream-Safe Text Format); no language needs more than a few."""
_LONG_RUN: Final = "M" * (MAX_MARKS + 1)
# Neither letter nor space and from where the marks begin: they are all in it. The look-behind starts a run at its first
# character only, so that runs just below the bound are not tried again from each of their characters.
_SYMBOL: Final = r"[^\w\s\x00-\u02ff]"
_SYMBOLS: Final = re.compile(rf"{_SYMBOL}(?<!{_SYMBOL}{_SYMBOL}){_SYMBOL}{{{MAX_MARKS},}}")


def too_many_marks(text: str) -> bool:
    """Whether more than MAX_MARKS characters of Unicode's categories M stand in a row."""
    return not text.isascii() and any(
        _LONG_RUN in "".join([category(character)[0] for character in run.group()]) for run in _SYMBOLS.finditer(text)
    )
