"""Pairs of answers to the same question: does the better answer get the higher score?"""

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.optional_imports import scipy_stats

# Up to this many answers to a question are compared each with each, for all questions at once; more of them are counted
# by sorting, question by question, because the number of pairs grows with the square.
COMPARED_EACH = 32


def ordered_pairs(
    scores: NDArray[np.float64], labels: NDArray[np.float64], clusters: NDArray[np.intp], *, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts pairs of rows of one question with different labels.

    Args:
        scores: float64[rows], finite.
        labels: float64[rows], finite.
        clusters: int[rows], question of each row, from 0.
        count: Number of questions.

    Returns:
        Two float64[questions]: pairs that the scores order as the labels do, ties of scores counted half, and all
        pairs.
    """
    right, pairs = np.zeros(count), np.zeros(count)
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters, minlength=count)
    small = sizes[clusters[order]] <= COMPARED_EACH
    few = order[small]
    _compare_each(scores[few], labels[few], clusters[few], right=right, pairs=pairs)
    for cluster in np.flatnonzero(sizes > COMPARED_EACH):
        start = np.searchsorted(clusters[order], cluster)
        here = order[start : start + sizes[cluster]]
        right[cluster], pairs[cluster] = _count_by_sorting(scores[here], labels[here])
    return right, pairs


def _compare_each(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    clusters: NDArray[np.intp],
    *,
    right: NDArray[np.float64],
    pairs: NDArray[np.float64],
) -> None:
    """Adds to `right` and `pairs`; rows of a question stand beside each other."""
    for apart in range(1, COMPARED_EACH):
        same = np.flatnonzero(clusters[apart:] == clusters[:-apart])
        if not len(same):
            return
        by_label = np.sign(labels[same + apart] - labels[same])
        by_score = np.sign(scores[same + apart] - scores[same])
        differ = by_label != 0
        ordered = np.where(by_score == 0, 0.5, by_score == by_label)[differ]
        question = clusters[same][differ]
        right += np.bincount(question, weights=ordered, minlength=len(right))
        pairs += np.bincount(question, minlength=len(pairs))


def _count_by_sorting(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[float, float]:
    total = len(scores) * (len(scores) - 1) / 2
    different_labels = total - _tied(labels)
    different_scores = total - _tied(scores)
    if not different_labels or not different_scores:
        return different_labels / 2, different_labels
    # tau-b is (concordant - discordant) over the root of both counts; the numerator is a whole number.
    tau = float(scipy_stats().kendalltau(scores, labels).statistic)
    surplus = round(tau * float(np.sqrt(different_labels * different_scores)))
    return (different_labels + surplus) / 2, different_labels


def _tied(values: NDArray[np.float64]) -> float:
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())
