"""Fit the minimum score of a right answer, and SMILE's sentence weight, on labelled answers."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.agreement.statistics import auc, correlations
from gradewire_stats.calibration.labelled_rows import question_key

Objective = Literal["accuracy", "balanced_accuracy", "f1"]
WeightObjective = Literal["pearson", "auc"]

FOLDS = 5
# Candidate weights have two decimals, because labelled rows cannot determine more decimals.
WEIGHTS = np.round(np.linspace(0.0, 1.0, 101), 2)
_DECIMALS = (2, 3, 4, 6)


def fit_threshold(scores: NDArray[np.float64], right: NDArray[np.bool_], objective: Objective = "accuracy") -> float:
    """Return the threshold (the minimum score of a right answer) that agrees best with labels.

    If several thresholds are equally good, return the middle of the widest gap between two neighbouring scores (the
    lowest gap if several are equally wide), rounded to as few decimals as possible within the gap's middle half.

    Args:
        scores: float64[rows], finite.
        right: bool[rows], human labels.
        objective: Value to maximise: "accuracy" is the share of verdicts that match the labels, "balanced_accuracy" is
            the mean of this share over right and over wrong answers, and "f1" is the F1 score for right answers.

    Raises:
        ValueError: All answers are right, or all are wrong, or a score is not finite.
    """
    _check(scores, right)
    order = np.argsort(scores, kind="stable")
    ranked, labels = scores[order], right[order]
    # The cut before position k calls rows 0 … k-1 wrong.
    below_right = np.concatenate([[0], np.cumsum(labels)])
    below_wrong = np.arange(len(ranked) + 1) - below_right
    possible = np.concatenate([[True], ranked[1:] > ranked[:-1], [True]])
    values = _values(objective, right.sum() - below_right, below_wrong, int(right.sum()), int((~right).sum()))
    values[~possible] = -math.inf
    # There is no gap before the first score or after the last score.
    gaps = np.concatenate([[0.0], ranked[1:] - ranked[:-1], [0.0]])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    cut = int(best[np.argmax(gaps[best])])
    if cut == 0:
        return float(ranked[0])
    if cut == len(ranked):
        return float(np.nextafter(ranked[-1], math.inf))
    return _between(float(ranked[cut - 1]), float(ranked[cut]))


def held_out_verdicts(
    scores: NDArray[np.float64],
    right: NDArray[np.bool_],
    questions: Sequence[str],
    objective: Objective = "accuracy",
) -> NDArray[np.float64]:
    """Return each row's verdict from a threshold that was fitted on other questions.

    Args:
        scores: float64[rows], finite.
        right: bool[rows].
        questions: Each row's question. Rows with the same `question_key` are in the same fold.
        objective: Same as in `fit_threshold`.

    Returns:
        float64[rows], 1 (right), 0 (wrong), or NaN if the rows in the other folds are all right or all wrong.
    """
    fold = np.array([_fold(question, row) for row, question in enumerate(questions)])
    verdicts = np.full(len(scores), math.nan)
    for number in range(FOLDS):
        own, others = fold == number, fold != number
        if own.any() and right[others].any() and not right[others].all():
            threshold = fit_threshold(scores[others], right[others], objective)
            verdicts[own] = scores[own] >= threshold
    return verdicts


def fit_weight(
    sentence: NDArray[np.float64],
    lexical: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: WeightObjective = "pearson",
) -> float:
    """Return the weight w (0, 0.01 … 1) with which `w · sentence + (1 - w) · lexical` agrees best with labels.

    Args:
        sentence: float64[rows], finite.
        lexical: float64[rows], finite.
        labels: float64[rows] in [0, 1]. For AUC, 0.5 or more is right.
        objective: Value to maximise. If several weights are equally good, the middle weight is returned.

    Raises:
        ValueError: All labels are equal, or a value is not finite.
    """
    _check(sentence + lexical, labels >= RIGHT_FROM if objective == "auc" else labels > labels.min())
    right = labels >= RIGHT_FROM
    # Score one weight at a time, because all weights at once would need a hundred times the memory.
    mixed = (weight * sentence + (1 - weight) * lexical for weight in WEIGHTS)
    values = np.array(
        [
            correlations(scores, labels, ["pearson"])["pearson"] if objective == "pearson" else auc(scores, right)
            for scores in mixed
        ]
    )
    values = np.nan_to_num(values, nan=-math.inf)
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return float(WEIGHTS[best[len(best) // 2]])


def balanced_accuracy(verdicts: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the mean of two accuracies, over right answers and over wrong answers, or NaN if one kind is missing."""
    judged = ~np.isnan(verdicts)
    agree = (verdicts == 1) == right
    sides = [agree[judged & side] for side in (right, ~right)]
    return float(np.mean([side.mean() for side in sides])) if all(len(side) for side in sides) else math.nan


def _values(
    objective: Objective, true_right: NDArray[Any], true_wrong: NDArray[Any], right: int, wrong: int
) -> NDArray[np.float64]:
    if objective == "accuracy":
        return np.asarray((true_right + true_wrong) / (right + wrong))
    if objective == "balanced_accuracy":
        return np.asarray((true_right / right + true_wrong / wrong) / 2)
    called_right = true_right + (wrong - true_wrong)
    return np.asarray(2 * true_right / (called_right + right))


def _between(low: float, high: float) -> float:
    middle, quarter = low + (high - low) / 2, (high - low) / 4
    for decimals in _DECIMALS:
        short = round(middle, decimals)
        if abs(short - middle) <= quarter and low < short <= high:
            return short
    # Two adjacent floats have nothing between them.
    return middle if low < middle else high


def _fold(question: str, row: int) -> int:
    # Blank questions are all different.
    key = question_key(question) or f"row {row}"
    # The digest must differ from `half_of`'s digest, because otherwise each half would fill only some folds.
    return hashlib.blake2b(key.encode("utf-8"), digest_size=8, person=b"fold").digest()[0] % FOLDS


def _check(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    if not np.isfinite(scores).all():
        raise ValueError("a score is not a finite number. Leave such rows out")
    if not len(right) or right.all() or not right.any():
        which = (
            "there are no rows" if not len(right) else "all answers are right" if right.all() else "no answer is right"
        )
        raise ValueError(f"{which}, but a threshold needs right and wrong answers")
