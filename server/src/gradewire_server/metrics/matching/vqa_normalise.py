"""The normalisation of the VQA challenge's evaluation: punctuation, number words, articles, contractions.

Source: Antol et al. 2015, "VQA: Visual Question Answering", and the challenge's evaluation program (v2);
docs/reference/metrics.md lists what is done differently.
"""

import re
from collections.abc import Iterator
from typing import Final

from gradewire_server.metrics.text.long_text import translated

_PUNCTUATION: Final = frozenset(';/[]"{}()=+\\_-><@`,?!')
_COMMA_IN_NUMBER: Final = re.compile(r"\d,\d")
_PERIOD_OUTSIDE_NUMBER: Final = re.compile(r"\.(?!\d)")
_NUMBERS: Final = {
    "none": "0",
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}
_ARTICLES: Final = frozenset({"a", "an", "the"})

_ENDINGS: Final = {
    "n't": "ai are ca could did does do had has have is might must need ought sha should was were wo would",
    "n't've": "could had might should would",
    "'d": "he how it someone something there they where who you",
    "'d've": "he it she somebody someone something there they we who you y'all",
    "'ll": "how it somebody someone something they what who why you y'all",
    "'re": "there they what why you",
    "'s": "he how somebody someone that there what when where who why",
    "'ve": "could might must not should they we what where who would you",
}
_IRREGULAR: Final = ("ma'am", "o'clock", "'ow's'at", "'twas", "y'all")


def _misspellings(word: str) -> Iterator[str]:
    """The word with one apostrophe left out, for each it has."""
    for place in (match.start() for match in re.finditer("'", word)):
        yield word[:place] + word[place + 1 :]


def _contractions() -> dict[str, str]:
    regular = (stem + ending for ending, stems in _ENDINGS.items() for stem in stems.split())
    return {wrong: word for word in (*regular, *_IRREGULAR) for wrong in _misspellings(word)}


_CONTRACTIONS: Final = _contractions()


def tidy(text: str) -> str:
    """What is done to every text before it is compared, normalised or not: tabs and line ends to spaces, ends cut."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def vqa_normalise(text: str) -> str:
    """The words of an answer as the VQA challenge compares them, joined by single spaces; "" where none is left.

    A punctuation mark becomes a space; it goes without one where it stands beside a space anywhere in the text, and all
    do where a comma stands between digits. Apostrophes and colons stay. A period goes unless a digit follows. Then
    lower case, "two" to "2" (zero to ten; "none" is 0), no articles, and the apostrophe into contractions ("dont").
    """
    tight = _COMMA_IN_NUMBER.search(text) is not None
    gaps = {
        ord(mark): "" if tight or f"{mark} " in text or f" {mark}" in text else " "
        for mark in _PUNCTUATION.intersection(text)
    }
    words = _PERIOD_OUTSIDE_NUMBER.sub("", translated(text, gaps)).lower().split()
    kept = [_NUMBERS.get(word, word) for word in words if word not in _ARTICLES]
    return " ".join(_CONTRACTIONS.get(word, word) for word in kept)
