"""Porter's stems, with the corrections of NLTK's version, which rouge-score and NLTK's METEOR use too.

Source: Porter 1980, "An algorithm for suffix stripping".
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

LONGEST_STEMMED_CHARACTERS: Final = 64
"""Longer words are no English and stay as they are."""
_REMEMBERED_STEMS: Final = 65_536


@cache
def _stemmer() -> Callable[[str], str]:
    # NLTK takes a second and 50 MB to import, which a server that never stems must not pay.
    from nltk.stem.porter import PorterStemmer  # noqa: PLC0415

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


@lru_cache(maxsize=_REMEMBERED_STEMS)
def _stem_of(word: str) -> str:
    return _stemmer()(word)


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    return _stem_of(word) if len(word) <= LONGEST_STEMMED_CHARACTERS else word
