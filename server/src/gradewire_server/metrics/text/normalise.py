"""SMILE's normalisation N (lower case, no punctuation, lemmas), and words' opposites."""

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Final

import numpy as np
from lemminflect import config
from lemminflect.codecs.OverridesCodec import OverridesCodec
from numpy.typing import NDArray

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")


@cache
def lemma_table() -> Mapping[str, str]:
    """Return the lemmas of about 33,000 words that differ from their lemma.

    lemminflect's own look-up takes 5 µs or more, and lemminflect reads the file four times as slowly as this function.
    """
    found: dict[str, str] = {}
    for part_of_speech in reversed(PARTS_OF_SPEECH):
        found.update(_lemmas_by_part_of_speech()[part_of_speech])
    # lemminflect looks words up in lower case, so it never finds entries with capital letters.
    lemmas = {word: lemmas.partition("/")[0].lower() for word, lemmas in found.items() if word == word.lower()}
    return {word: lemma for word, lemma in lemmas.items() if lemma != word}


@cache
def known_words() -> frozenset[str]:
    """Return the dictionary's lower-case words (about 70,000), with inflections."""
    return frozenset(word for word, _, _ in _dictionary_rows() if word == word.lower())


@cache
def _lemmas_by_part_of_speech() -> Mapping[str, Mapping[str, str]]:
    entries: dict[str, dict[str, str]] = defaultdict(dict)
    for word, part_of_speech, lemmas in _dictionary_rows():
        entries[part_of_speech][word] = lemmas
    overrides: dict[str, dict[str, tuple[str, ...]]] = OverridesCodec.load(config.lemma_overrides_fn)
    for word, entry in overrides.items():
        for part_of_speech, lemmas_of_word in entry.items():
            entries[part_of_speech.lower()][word] = "/".join(lemmas_of_word)
    return entries


def _dictionary_rows() -> Iterator[list[str]]:
    with gzip.open(config.lemma_lu_fn, "rt", encoding="utf-8") as file:
        return csv.reader(file.read().splitlines(), quoting=csv.QUOTE_NONE)


@cache
def lemmatizer() -> Callable[[str, str], str]:
    """Return a fast look-up: `lemmatizer()(word, word)` is a lower-case word's lemma."""
    return lemma_table().get


def verb_lemmas(word: str) -> tuple[str, ...]:
    """Return the lemmas of a lower-case word as a verb: "find" and "found" for "found", none for "planet"."""
    lemmas = _lemmas_by_part_of_speech()["verb"].get(word, "")
    return tuple(lemmas.split("/")) if lemmas else ()


_PREFIXES: Final = ("non", "un")
"""Prefixes that negate any word of at least five letters. "in" is not among them because of words like "inform"."""
_LEAST_LETTERS: Final = 5


@cache
def antonym_table() -> Mapping[str, frozenset[str]]:
    """Return the antonyms of each word in WordNet (about 5,700 lower-case words)."""
    found: dict[str, set[str]] = {}
    for line in (files(__package__) / "antonyms.txt").read_text("ascii").splitlines():
        if not line.startswith("#"):
            one, other = line.split()
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


def opposites_of(word: str) -> frozenset[str]:
    """Return the antonyms of a lower-case word, and the word with a negating prefix added or removed.

    The result contains "cold" for "hot" and "nonpolar" for "polar", but not "uniform" for "form".
    """
    found = antonym_table().get(word, frozenset())
    bare = next((word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix)), "")
    if len(bare) >= _LEAST_LETTERS and bare in known_words():
        return found | {bare}
    return found | {prefix + word for prefix in _PREFIXES} if len(word) >= _LEAST_LETTERS and word.isalpha() else found


_NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]+")
_NEITHER_IN_ASCII = {code: None for code in range(128) if _NEITHER_WORD_NOR_SPACE.match(chr(code))}
_MAX_CACHED_TEXTS = 4096
_MAX_CACHED_CHARACTERS = 256
_MAX_REGEX_CHARACTERS = 8192
# Match from the first to the last word character in a run without white space.
_WORD = re.compile(r"\w(?:\S*\w)?")
_RUN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Normalised:
    """The normal form N(x) of a non-blank text x, and its words; there is at least one word.

    If x contains no word characters, N(x) is x in lower case, split at white space.
    """

    text: str
    words: tuple[str, ...]


def normalise(text: str) -> Normalised:
    """Return N(text): lower-case, delete all but word characters and white space, split, lemmatise, join.

    Word characters are letters and digits of all scripts, and "_". Combining marks are deleted.
    """
    return _known(text) if len(text) <= _MAX_CACHED_CHARACTERS else _normalised(text)


def _normalised(text: str) -> Normalised:
    bare = bare_words(text)
    if not bare:
        lowered = text.lower()
        return Normalised(lowered, tuple(lowered.split()))
    words = tuple(map(lemmatizer(), bare, bare))
    return Normalised(" ".join(words), words)


_known = lru_cache(maxsize=_MAX_CACHED_TEXTS)(_normalised)


def bare_words(text: str) -> list[str]:
    """Return the words of N(text) before lemmatisation; empty if the text contains no word characters."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered.translate(_NEITHER_IN_ASCII).split()
    if len(lowered) <= _MAX_REGEX_CHARACTERS:
        return _NEITHER_WORD_NOR_SPACE.sub("", lowered).split()
    return _without_punctuation(lowered).split()


def _without_punctuation(text: str) -> str:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = np.bincount(codes)
    deleted = np.zeros(len(counts), np.bool_)
    for code in np.flatnonzero(counts).tolist():
        deleted[code] = _NEITHER_WORD_NOR_SPACE.match(chr(code)) is not None
    return codes[~deleted[codes]].tobytes().decode("utf-32-le", "surrogatepass")


def word_spans(text: str, max_words: int) -> NDArray[np.int32]:
    """Return the positions of the first `max_words` words in the raw text, int32[words, 2].

    The words are those of the normalised text. The positions are half-open character ranges, ascending and disjoint,
    without the punctuation around a word.
    """
    lowered = text.lower()
    pattern = _WORD if _WORD.search(lowered) else _RUN
    spans = [match.span() for match in islice(pattern.finditer(lowered), max_words)]
    found = np.array(spans, dtype=np.int32).reshape(-1, 2)
    if len(lowered) == len(text):
        return found
    # Lower-casing turns "İ" into two characters, so map positions back character by character.
    head = text[: found[-1, 1]]  # long enough, since lower-casing never shortens a text
    origin = np.repeat(np.arange(len(head), dtype=np.int32), [len(character.lower()) for character in head])
    return np.stack([origin[found[:, 0]], origin[found[:, 1] - 1] + 1], axis=1)
