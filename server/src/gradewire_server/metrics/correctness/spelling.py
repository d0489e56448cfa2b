"""Near-equal spellings, and new words of the best reference that an answer lacks."""

import re
from collections.abc import Callable, Collection, Sequence
from math import nan
from typing import Final

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, JaroWinkler

from gradewire_server.metrics.correctness.words import (
    FUNCTION_WORDS,
    STOP_WORDS,
    FeatureText,
    core_of,
    recall,
    share,
    weight,
)
from gradewire_server.metrics.text.normalise import known_words

_MAX_REFERENCE_WORDS: Final = 32
_MAX_ANSWER_WORDS: Final = 256
_MAX_LETTERS: Final = 64
_MAX_ANSWER_LETTERS: Final = 4096
_MAX_REFERENCE_LETTERS: Final = 128
_LEAST_BEGINNING: Final = 4
"""Letters in which two words of the dictionary begin alike, to be near each other."""
_PROVES: Final = 0.5
"""Weight of a word from which on it has to be there."""


def spelling_features(
    candidates: Sequence[FeatureText], best: FeatureText, answer: FeatureText, asked: Collection[str]
) -> dict[str, float]:
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


def _farthest(reference: FeatureText, answer: Sequence[str], asked: Collection[str]) -> float:
    proving = [word for word in _first_words(reference) if weight(word, asked) >= _PROVES]
    if not proving:
        return nan
    return min(_closeness(proving, answer, Indel.normalized_similarity))


def _beginnings(reference: FeatureText, answer: Sequence[str], asked: Collection[str]) -> float:
    words = _first_words(reference)
    weights = np.array([weight(word, asked) for word in words])
    return float(weights @ _closeness(words, answer, JaroWinkler.normalized_similarity) / weights.sum())


def _first_words(reference: FeatureText) -> list[str]:
    return list(dict.fromkeys(word[:_MAX_LETTERS] for word in reference.words))[:_MAX_REFERENCE_WORDS]


def _closeness(words: Sequence[str], answer: Sequence[str], scorer: Callable[..., float]) -> list[float]:
    """Similarity of each word to its closest one in an answer, 0 to 1; of numbers only equal ones are close."""
    known = known_words()
    unknown, among = [other for other in answer if other not in known], [other for other in answer if other in known]
    closeness = []
    for word in words:
        if word.isdecimal():
            closeness.append(float(word in answer))
            continue
        others: Sequence[str] = answer
        if word in known:
            begin = word[: max(_LEAST_BEGINNING, len(word) - 1)]
            others = [*unknown, *(other for other in among if _begins(word, begin, other))]
        closeness.append(float(process.extractOne(word, others, scorer=scorer)[1]) if others else 0.0)
    return closeness


def _begins(word: str, begin: str, other: str) -> bool:
    """Whether all but a letter of the shorter of two words, and four of its letters, begin the other one."""
    return word == other or other.startswith(
        begin if len(other) >= len(word) else word[: max(_LEAST_BEGINNING, len(other) - 1)]
    )


def _within(text: str, whole: str) -> float:
    """0 to 1. A text without letters is there as a whole, or not at all."""
    if any(map(str.isalpha, text)):
        return fuzz.partial_ratio(text, whole) / 100
    return float(f" {text} " in f" {whole} ")


_ALL: Final = 0.99
"""Recall from which on a part is there."""
# Between modifiers and a head stand none of these but "and": an English phrase ends before them.
_BEHIND_HEAD: Final = FUNCTION_WORDS - {"a", "an", "the", "and", "or", "his", "her", "their", "its", "one"}
_COMMA: Final = re.compile(r"[,;:(]")


def missing_features(
    best: FeatureText, parts: Sequence[FeatureText], said: Collection[str], asked: Collection[str]
) -> dict[str, float]:
    """What of the best reference an answer has, by the place of a word; NaN where it has no such word.

    Args:
        best: SMILE's best reference.
        parts: Its parts between commas and "and".
        said: Words of the answer, other forms among them.
        asked: Words of the question.

    Returns:
        `head_recall`: whether the head of the reference's phrase is there. `modifier_recall`: share of its other new
        words. `name_recall`: share of its new words that no dictionary has, names mostly. `member_recall`: share of
        the parts of a list that are there as a whole.
    """
    core = core_of(best)
    new = [word for word in dict.fromkeys(core.content) if word not in asked]
    head = head_of(core)
    names = [word for word in new if word.isalpha() and word not in known_words()]
    members = [recall(part, said, asked) >= _ALL for part in parts] if len(parts) > 1 else []
    return {
        "head_recall": float(head in said) if head in new else nan,
        "modifier_recall": share(word in said for word in new if word != head),
        "name_recall": share(word in said for word in names),
        "member_recall": share(members),
    }


def head_of(reference: FeatureText) -> str:
    """The last word that counts before the first preposition, verb or comma behind one.

    "kitchen" of "a large kitchen in the old house"; of a phrase that begins with such a word, the last one before the
    next.
    """
    words = FeatureText.of(_COMMA.split(reference.raw, 1)[0]).words if _COMMA.search(reference.raw) else reference.words
    head = ""
    for word in words:
        if head and word in _BEHIND_HEAD:
            return head
        if word not in STOP_WORDS:
            head = word
    return head or reference.content[-1]
