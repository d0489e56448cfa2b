"""SMILE's formula: from vectors and words to the score, its parts and the reference that gave it.

Source: SMILE, eqs. 1 to 3, without the further ½ of eq. 3 (a slip: the score is said to lie in [0, 1]).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.parts import SmileParts
from gradewire_server.domain.result import MetricResult, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.checks import cut_warning
from gradewire_server.metrics.matching.easy_match import contained
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.ties import TIE, first_of_the_highest

CORRECT_BIN = 4
_TOP_BIN = 5


@dataclass(frozen=True, slots=True)
class Keyword:
    """The keyword term of one reference.

    Attributes:
        cosine: Of its closest window, -1 to 1.
        window: That window's words.
    """

    cosine: float
    window: str


def smile_bin(score: float) -> int:
    """floor(6 · score), limited to 0 … 5."""
    return max(0, min(_TOP_BIN, math.floor(6 * score)))


def exact_terms(texts: SmileTexts, preset: SmilePreset) -> NDArray[np.float64]:
    """The term m for every reference, float64[references] in 0 … 1.

    The share of N(r)'s distinct words that stand in N(y); over N(r) with repeats for REFERENCE_CODE; for PAPER 1 where
    N(r) as a whole stands in N(y), else 0.
    """
    if preset is SmilePreset.PAPER:
        return np.fromiter(contained(texts.words, texts.keywords), np.float64)
    said = set(texts.words.words)
    shares = []
    for keyword in texts.keywords:
        words = keyword.words if preset is SmilePreset.REFERENCE_CODE else set(keyword.words)
        shares.append(sum(word in said for word in words) / len(words))
    return np.array(shares)


@dataclass(frozen=True, slots=True)
class Similarities:
    """What the encoder said of an item.

    Attributes:
        sentences: float64[references], cosine of e(y) and each reference's sentence.
        keywords: By reference index; those that cannot give the score may be missing (see `can_still_win`).
        truncated: Whether something was cut.
    """

    sentences: NDArray[np.float64]
    keywords: Mapping[int, Keyword]
    truncated: bool

    def joined_by(self, keywords: Mapping[int, Keyword], *, truncated: bool) -> "Similarities":
        """A copy with further keyword terms."""
        return Similarities(self.sentences, {**self.keywords, **keywords}, self.truncated or truncated)


def held_keywords(texts: SmileTexts) -> dict[int, Keyword]:
    """The keyword terms that need no encoder: a window equal to N(r) has cosine 1 and is the best one."""
    return {index: Keyword(1.0, texts.keywords[index].text) for index in texts.held}


def closest_windows(
    texts: SmileTexts,
    windows: Mapping[int, Sequence[str]],
    vectors: NDArray[np.float32],
    keywords: NDArray[np.float32],
) -> dict[int, Keyword]:
    """The keyword terms of the references in `texts.asked`.

    Args:
        texts: The item's texts.
        windows: Window length to distinct texts in order of position, for every length in `texts.rows_of` and in its
            order.
        vectors: float32[windows of all lengths, dims], rows of length 1, in the same order.
        keywords: float32[asked, dims], e(N(r)), rows of length 1.

    Returns:
        By reference index; of equal windows the first is named.
    """
    found = {}
    start = 0
    for length, rows in texts.rows_of.items():
        stop = start + len(windows[length])
        cosines = vectors[start:stop] @ keywords[rows].T
        start = stop
        for row, column in zip(rows, cosines.T, strict=True):
            best = first_of_the_highest(column)
            found[texts.asked[row]] = Keyword(float(column.max()), windows[length][best])
    return found


def can_still_win(texts: SmileTexts, sentences: NDArray[np.float64], parameters: SmileParameters) -> tuple[int, ...]:
    """References in `texts.asked` that can match or beat the best held one, whatever their windows say.

    Cutting the others off is exact: with the closest window possible (cosine 1) they stay below the score of a
    reference that is known already.
    """
    if not texts.held:
        return texts.asked
    exact = exact_terms(texts, parameters.preset)
    highest = _scores(_similarity(sentences, parameters.preset), exact, np.ones(len(exact)), parameters.weight)
    least = highest[list(texts.held)].max() - 2 * TIE
    return tuple(index for index in texts.asked if highest[index] >= least)


def grade(texts: SmileTexts, similarities: Similarities, parameters: SmileParameters) -> MetricResult:
    """The score of the best reference and its parts; equal scores name the lowest reference index.

    Without a threshold (the caller's, or one fitted for the encoder) bins decide, and the result is UNCALIBRATED.
    """
    indices = sorted(similarities.keywords)
    sentence = _similarity(similarities.sentences[indices], parameters.preset)
    cosines = np.array([similarities.keywords[index].cosine for index in indices])
    keyword = _similarity(cosines, parameters.preset)
    exact = exact_terms(texts, parameters.preset)[indices]
    scores = _scores(sentence, exact, keyword, parameters.weight)
    best = first_of_the_highest(scores)
    score, s, lex = float(scores[best]), float(sentence[best]), float((exact[best] + keyword[best]) / 2)
    threshold = parameters.threshold
    bin_ = smile_bin(score)
    correct = bin_ >= CORRECT_BIN if threshold is None else score >= threshold
    warnings = cut_warning(similarities.truncated)
    return MetricResult(
        score=score,
        warnings=warnings if threshold is not None else (*warnings, Warning.UNCALIBRATED),
        matched_reference=indices[best],
        correct=correct,
        parts=SmileParts(
            sentence=s,
            keyword=float(keyword[best]),
            exact=float(exact[best]),
            lexical=lex,
            best_window=similarities.keywords[indices[best]].window,
            bin=bin_,
            correct=correct,
            harmonic_mean=harmonic_mean(s, lex) if parameters.preset is SmilePreset.REFERENCE_CODE else None,
        ),
    )


def _scores(
    sentence: NDArray[np.float64], exact: NDArray[np.float64], keyword: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    return weight * sentence + (1 - weight) * (exact + keyword) / 2


def harmonic_mean(sentence: float, lexical: float) -> float | None:
    """2sl / (s + l), or None where a term is negative or both are 0: the harmonic mean is not defined there."""
    if sentence < 0 or lexical < 0 or sentence + lexical == 0:
        return None
    return 2 * sentence * lexical / (sentence + lexical)


def _similarity(cosines: NDArray[np.floating[Any]], preset: SmilePreset) -> NDArray[np.float64]:
    clipped = cosines.astype(np.float64).clip(-1.0, 1.0)
    return clipped if preset is SmilePreset.REFERENCE_CODE else (1.0 + clipped) / 2.0
