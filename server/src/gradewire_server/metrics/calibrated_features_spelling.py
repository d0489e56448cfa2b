"""Near-equal spellings: names with a letter more or less, words written together or apart, initials."""

import re
from collections.abc import Callable, Collection, Sequence
from math import nan
from typing import Final

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, JaroWinkler

from gradewire_server.metrics.calibrated_features_words import STOP_WORDS, Said, weight

_MAX_REFERENCE_WORDS: Final = 32
_MAX_ANSWER_WORDS: Final = 256
_MAX_LETTERS: Final = 64
_MAX_ANSWER_LETTERS: Final = 4096
_MAX_REFERENCE_LETTERS: Final = 128
_PROVES: Final = 0.5
"""Weight of a word from which on it has to be there."""
_LEAST_JOINED: Final = 4
_LEAST_INITIALS: Final = 2
_MOST_INITIALS: Final = 5
_CAPITAL: Final = re.compile(r"\b[^\W_a-z]")


def spelled(reference: Said, answer: Sequence[str], asked: Collection[str]) -> tuple[float, float, float]:
    """How close each word of a reference comes to the closest word of an answer.

    Args:
        reference: Its first 32 distinct words count.
        answer: Distinct words, of bounded number and length.
        asked: Words of the question, which prove little.

    Returns:
        Weighed mean of the similarity by insertions and deletions; its minimum over words that prove something, NaN
        without one; weighed mean of the Jaro-Winkler similarity, which forgives endings. 0 to 1 each.
    """
    words = list(dict.fromkeys(word[:_MAX_LETTERS] for word in reference.words))[:_MAX_REFERENCE_WORDS]
    weights = np.array([weight(word, asked) for word in words])
    edits = process.cdist(words, answer, scorer=Indel.normalized_similarity).max(axis=1)
    begins = process.cdist(words, answer, scorer=JaroWinkler.normalized_similarity).max(axis=1)
    for row, word in enumerate(words):
        if word.isdecimal():  # "13" is as far from "3" as any other number
            edits[row] = begins[row] = float(word in answer)
    proving = edits[weights >= _PROVES]
    least = float(proving.min()) if len(proving) else nan
    return float(weights @ edits / weights.sum()), least, float(weights @ begins / weights.sum())


def spelling_features(candidates: Sequence[Said], best: Said, answer: Said, asked: Collection[str]) -> dict[str, float]:
    """Near-equal spellings of the references that come closest word by word.

    Args:
        candidates: Those references, the closest first; at least one.
        best: SMILE's best reference.
        answer: The prediction.
        asked: Words of the question.
    """
    words = list(dict.fromkeys(word[:_MAX_LETTERS] for word in answer.words))[:_MAX_ANSWER_WORDS]
    of_best = spelled(best, words, asked)
    of_closest = spelled(candidates[0], words, asked)
    texts = [" ".join(each.words)[:_MAX_REFERENCE_LETTERS] for each in (best, *candidates)]
    whole = " ".join(answer.words)[:_MAX_ANSWER_LETTERS]
    return {
        "spelling": of_best[0],
        "spelling_least": of_best[1],
        "spelling_closest": max(of_best[0], of_closest[0]),
        "spelling_begin": max(of_best[2], of_closest[2]),
        "spelling_within": _closest(fuzz.partial_ratio, texts, whole),
        "spelling_whole": _closest(fuzz.ratio, texts, whole),
        "spelling_words": _closest(fuzz.token_set_ratio, texts, whole),
    }


def _closest(scorer: Callable[[str, str], float], texts: Sequence[str], whole: str) -> float:
    """0 to 1. Of numbers only equal ones are close: a text without letters is there as a whole, or not at all."""
    return max(
        scorer(text, whole) / 100 if any(map(str.isalpha, text)) else float(f" {text} " in f" {whole} ")
        for text in texts
    )


def joined(references: Sequence[Said], answer: Said) -> float:
    """1 where a reference of four letters or more stands in the answer when blanks and punctuation do not count."""
    letters = answer.joined
    return float(any(len(each.joined) >= _LEAST_JOINED and each.joined in letters for each in references))


def initials(references: Sequence[Said], answer: Said) -> float:
    """1 where the answer has a reference's initials as a word, or begins words with the letters of one in capitals."""
    begins = "".join(_CAPITAL.findall(answer.raw)).casefold()
    return float(any(_short(each, answer) or _long(each, begins) for each in references))


def _short(reference: Said, answer: Said) -> bool:
    """Whether an answer like "the UN" has the initials of "United Nations"."""
    letters = "".join(word[0] for word in reference.words if word not in STOP_WORDS)
    return len(reference.words) > 1 and len(letters) >= _LEAST_INITIALS and letters in answer.distinct


def _long(reference: Said, begins: str) -> bool:
    """Whether an answer like "the United Nations" is what a reference like "UN" is short for."""
    letters = "".join(reference.words)
    written = reference.raw.replace(".", "").strip()
    return _LEAST_INITIALS <= len(letters) <= _MOST_INITIALS and written.isupper() and letters in begins
