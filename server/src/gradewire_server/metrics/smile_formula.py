"""SMILE's formula: from vectors and words to the score, its parts and the reference that gave it.

Source: SMILE, eqs. 1 to 3, without the further ½ of eq. 3 (a slip: the score is said to lie in [0, 1]).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.metric import Calibration
from gradewire_server.domain.result import MetricResult, SmileParts, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.easy_match import contains
from gradewire_server.metrics.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile_texts import SmileTexts
from gradewire_server.metrics.ties import first_of_the_highest

CORRECT_BIN = 4
_TOP_BIN = 5


@dataclass(frozen=True, slots=True)
class Candidates:
    """Windows of one length that take part in k.

    Attributes:
        texts: Distinct, in order of position.
        vectors: float32[len(texts), dims], rows of length 1.
    """

    texts: Sequence[str]
    vectors: NDArray[np.float32]


def smile_bin(score: float) -> int:
    """floor(6 · score), limited to 0 … 5."""
    return max(0, min(_TOP_BIN, math.floor(6 * score)))


def exact_terms(texts: SmileTexts, preset: SmilePreset) -> NDArray[np.float64]:
    """The term m for every reference, float64[references] in 0 … 1.

    The share of N(r)'s distinct words that stand in N(y); over N(r) with repeats for REFERENCE_CODE; for PAPER 1 where
    N(r) as a whole stands in N(y), else 0.
    """
    if preset is SmilePreset.PAPER:
        return np.array([contains(texts.words, keyword) for keyword in texts.keywords], dtype=np.float64)
    said = set(texts.words.words)
    shares = []
    for keyword in texts.keywords:
        words = keyword.words if preset is SmilePreset.REFERENCE_CODE else set(keyword.words)
        shares.append(sum(word in said for word in words) / len(words))
    return np.array(shares)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the encoder said of an item.

    Attributes:
        prediction: float32[dims], e(y).
        references: float32[2 · references, dims], of `SmileTexts.reference_texts`.
        candidates: Window length to windows, for every length in `SmileTexts.references_of`.
        truncated: Whether something was cut.
    """

    prediction: NDArray[np.float32]
    references: NDArray[np.float32]
    candidates: Mapping[int, Candidates]
    truncated: bool


def grade(
    texts: SmileTexts, evidence: Evidence, parameters: SmileParameters, calibration: Calibration | None
) -> MetricResult:
    """The score of the best reference and its parts.

    Equal scores name the lowest reference index, equal windows the first. `calibration` is the threshold for `correct`
    that was fitted for the encoder, or None.
    """
    count = len(texts.keywords)
    keyword_vectors = evidence.references[count:]
    window_cosines: dict[int, NDArray[np.float32]] = {}
    keyword = np.empty(count)
    for length, indices in texts.references_of.items():
        cosines = evidence.candidates[length].vectors @ keyword_vectors[indices].T
        window_cosines[length] = cosines
        keyword[indices] = cosines.max(axis=0)
    sentence = _similarity(evidence.references[:count] @ evidence.prediction, parameters.preset)
    keyword = _similarity(keyword, parameters.preset)
    exact = exact_terms(texts, parameters.preset)
    lexical = (exact + keyword) / 2
    scores = parameters.weight * sentence + (1 - parameters.weight) * lexical
    best = first_of_the_highest(scores)
    length = texts.windows.length_for(len(texts.keywords[best].words))
    cosines = window_cosines[length][:, texts.references_of[length].index(best)]
    score, s, lex = float(scores[best]), float(sentence[best]), float(lexical[best])
    threshold = _threshold(parameters, calibration)
    bin_ = smile_bin(score)
    warnings = (Warning.TRUNCATED,) if evidence.truncated else ()
    return MetricResult(
        score=score,
        warnings=warnings if threshold is not None else (*warnings, Warning.UNCALIBRATED),
        matched_reference=best,
        parts=SmileParts(
            sentence=s,
            keyword=float(keyword[best]),
            exact=float(exact[best]),
            lexical=lex,
            best_window=evidence.candidates[length].texts[first_of_the_highest(cosines)],
            bin=bin_,
            correct=bin_ >= CORRECT_BIN if threshold is None else score >= threshold,
            harmonic_mean=harmonic_mean(s, lex) if parameters.preset is SmilePreset.REFERENCE_CODE else None,
        ),
    )


def harmonic_mean(sentence: float, lexical: float) -> float | None:
    """2sl / (s + l), or None where a term is negative or both are 0: the harmonic mean is not defined there."""
    if sentence < 0 or lexical < 0 or sentence + lexical == 0:
        return None
    return 2 * sentence * lexical / (sentence + lexical)


def _similarity(cosines: NDArray[np.floating[Any]], preset: SmilePreset) -> NDArray[np.float64]:
    clipped = cosines.astype(np.float64).clip(-1.0, 1.0)
    return clipped if preset is SmilePreset.REFERENCE_CODE else (1.0 + clipped) / 2.0


def _threshold(parameters: SmileParameters, calibration: Calibration | None) -> float | None:
    """The fitted threshold, where it was fitted for this formula: the default one, with this weight."""
    if calibration is None or parameters.preset not in {SmilePreset.V1, SmilePreset.FAST}:
        return None
    return calibration.threshold if math.isclose(parameters.weight, calibration.sentence_weight) else None
