"""Near-equal spellings: names with a letter more or less, other endings."""

from collections.abc import Callable, Collection, Sequence
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, JaroWinkler

from gradewire_server.metrics.calibrated.features.words import Said, weight

_MAX_REFERENCE_WORDS: Final = 32
_MAX_ANSWER_WORDS: Final = 1_024
_MAX_LETTERS: Final = 64
_MAX_ANSWER_LETTERS: Final = 16_384
_MAX_REFERENCE_LETTERS: Final = 128
_PROVES: Final = 0.5
"""Weight of a word from which on it has to be there."""


def spelling_features(candidates: Sequence[Said], best: Said, answer: Said, asked: Collection[str]) -> dict[str, float]:
    """Near-equal spellings of the references that come closest word by word.

    Args:
        candidates: Those references, the closest first; at least one.
        best: SMILE's best reference.
        answer: The prediction.
        asked: Words of the question, which prove little.

    Returns:
        `spelling_least`: of the best reference's words that prove something, the lowest similarity (by insertions and
        deletions) to the closest word of the answer; NaN where no word does. `spelling_begin`: weighed mean of the
        Jaro-Winkler similarities, of the better one of best and closest reference. `spelling_within`: of the candidate
        that is closest to a stretch of the answer. 0 to 1 each.
    """
    words = list(dict.fromkeys(word[:_MAX_LETTERS] for word in answer.words))[:_MAX_ANSWER_WORDS]
    texts = dict.fromkeys(" ".join(each.words)[:_MAX_REFERENCE_LETTERS] for each in (best, *candidates))
    whole = " ".join(answer.words)[:_MAX_ANSWER_LETTERS]
    return {
        "spelling_least": _farthest(best, words, asked),
        "spelling_begin": max(_beginnings(each, words, asked) for each in {best: None, candidates[0]: None}),
        "spelling_within": max(_within(text, whole) for text in texts),
    }


def _farthest(reference: Said, answer: Sequence[str], asked: Collection[str]) -> float:
    proving = [word for word in _first_words(reference) if weight(word, asked) >= _PROVES]
    if not proving:
        return nan
    return float(_closeness(proving, answer, Indel.normalized_similarity).min())


def _beginnings(reference: Said, answer: Sequence[str], asked: Collection[str]) -> float:
    words = _first_words(reference)
    weights = np.array([weight(word, asked) for word in words])
    return float(weights @ _closeness(words, answer, JaroWinkler.normalized_similarity) / weights.sum())


def _first_words(reference: Said) -> list[str]:
    return list(dict.fromkeys(word[:_MAX_LETTERS] for word in reference.words))[:_MAX_REFERENCE_WORDS]


def _closeness(words: Sequence[str], answer: Sequence[str], scorer: Callable[..., float]) -> NDArray[np.float64]:
    """float64[words], similarity of each to its closest word in an answer; of numbers only equal ones are close."""
    found = process.cdist(words, answer, scorer=scorer, dtype=np.float64).max(axis=1)
    exact = [word in answer for word in words]
    return np.where([word.isdecimal() for word in words], exact, found)


def _within(text: str, whole: str) -> float:
    """0 to 1. A text without letters is there as a whole, or not at all."""
    if any(map(str.isalpha, text)):
        return fuzz.partial_ratio(text, whole) / 100
    return float(f" {text} " in f" {whole} ")
