"""Words of a text of any script, for metrics that count words.

On ASCII text they are ROUGE's (Lin 2004; runs of letters and digits), so that values equal the published program's.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Final
from unicodedata import category

MAX_WORDS: Final = 1024
"""Words of a text that are compared."""
MAX_CHARACTERS: Final = 65_536
"""Characters of a text that words are taken from."""

_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
# Scripts that put no space between words: Thai, Lao, Myanmar, Khmer, kana, Han.
_UNSPACED: Final = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)


def _runs(numbers: list[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield f"{chr(found[0])}-{chr(found[-1])}"


@cache
def _word() -> re.Pattern[str]:
    """A word, or one letter of an unspaced script; marks go with the letter before them, as Python's own words do not."""
    marks = "".join(_runs([number for number in range(sys.maxunicode + 1) if category(chr(number))[0] == "M"]))
    letter = rf"(?:(?![{_UNSPACED}])[^\W_])"
    return re.compile(rf"(?:[{_UNSPACED}](?<=\w)|{letter}(?:{letter}|[{marks}])*)[{marks}]*")


def split_words(text: str) -> list[str]:
    """Lower-case words, at least one of what is not blank.

    A word is a run of letters, digits and marks; each letter of a script that puts no spaces between words is one of
    its own; all else, "_" too, stands between words. Where there is no word ("?!"), the white-space separated parts are
    taken.
    """
    lowered = text.lower()
    pattern = _ASCII_WORD if lowered.isascii() else _word()
    return pattern.findall(lowered) or lowered.split()


def first_words(text: str) -> tuple[list[str], bool]:
    """The first MAX_WORDS of `split_words`, and whether anything was left out."""
    begun = text.lstrip()
    words = split_words(begun[:MAX_CHARACTERS])
    return words[:MAX_WORDS], len(words) > MAX_WORDS or len(begun) > MAX_CHARACTERS
