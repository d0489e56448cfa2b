"""SMILE's normalisation N: the words of a text, lower-cased, without punctuation, as lemmas.

Source: SMILE, appendix on text normalisation. Texts come NFC-normalised.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.text.lemmas import lemmatizer

_NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]+")
_NEITHER_IN_ASCII = {code: None for code in range(128) if _NEITHER_WORD_NOR_SPACE.match(chr(code))}
_KNOWN_TEXTS = 4096
"""Texts whose words are kept, those met last: references come back with every answer to their question."""
_KNOWN_CHARACTERS = 256
_LONG_CHARACTERS = 8192
"""From here on a regular expression is too slow: with every third of a megabyte's characters to be deleted it holds
everybody up for half a second."""
# First to last word character of a run without white space: what is left of the run once the rest is deleted.
_WORD = re.compile(r"\w(?:\S*\w)?")
_RUN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Normalised:
    """N(x) of a text that is not blank.

    Attributes:
        text: The words joined by single spaces; where no word is left, the lower-cased raw text.
        words: At least one. Where no word is left, the white-space separated parts of the raw text.
    """

    text: str
    words: tuple[str, ...]


def normalise(text: str) -> Normalised:
    """N(text): lower-case, delete what is neither word character nor white space, split, lemmatise, join.

    Word characters and white space are Python's: letters, digits and "_" of all scripts; combining marks are deleted.
    """
    return _known(text) if len(text) <= _KNOWN_CHARACTERS else _normalised(text)


def _normalised(text: str) -> Normalised:
    bare = bare_words(text)
    if not bare:
        lowered = text.lower()
        return Normalised(lowered, tuple(lowered.split()))
    words = tuple(map(lemmatizer(), bare, bare))
    return Normalised(" ".join(words), words)


_known = lru_cache(maxsize=_KNOWN_TEXTS)(_normalised)


def bare_words(text: str) -> list[str]:
    """The words of N(text) before they are lemmatised; none where no word character is in the text."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered.translate(_NEITHER_IN_ASCII).split()
    if len(lowered) <= _LONG_CHARACTERS:
        return _NEITHER_WORD_NOR_SPACE.sub("", lowered).split()
    return _without_others(lowered).split()


def _without_others(text: str) -> str:
    """The text without what is neither word character nor white space, each kind of character looked at once."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = np.bincount(codes)
    deleted = np.zeros(len(counts), np.bool_)
    for code in np.flatnonzero(counts).tolist():
        deleted[code] = _NEITHER_WORD_NOR_SPACE.match(chr(code)) is not None
    return codes[~deleted[codes]].tobytes().decode("utf-32-le", "surrogatepass")


def word_spans(text: str, max_words: int) -> NDArray[np.int32]:
    """Where the first `max_words` words of `normalise(text)` stand in the raw text.

    Returns:
        int32[words, 2], half-open character ranges, ascending and disjoint; punctuation around a word is left out.
    """
    lowered = text.lower()
    pattern = _WORD if _WORD.search(lowered) else _RUN
    spans = [match.span() for match in islice(pattern.finditer(lowered), max_words)]
    found = np.array(spans, dtype=np.int32).reshape(-1, 2)
    if len(lowered) == len(text):
        return found
    # Lower-casing makes two characters of "İ": count back, character by character.
    head = text[: found[-1, 1]]  # long enough: lower case is never shorter
    origin = np.repeat(np.arange(len(head), dtype=np.int32), [len(character.lower()) for character in head])
    return np.stack([origin[found[:, 0]], origin[found[:, 1] - 1] + 1], axis=1)
