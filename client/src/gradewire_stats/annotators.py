"""Agreement between annotators, and of verdicts with annotators: Krippendorff's alpha and Cohen's kappa."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.ranks import NUMBERS_AT_A_TIME, RANK_DRAWS, Ordering
from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.agreement.statistics import scale_of, standard
from gradewire_stats.bootstrap import Estimate, drawn_values, draws, estimate

AlphaLevel = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[AlphaLevel, ...] = ("nominal", "ordinal", "interval")
_Values = dict[Any, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class _Entries:
    """All labels in one array, sorted by item.

    Attributes:
        values: float64[labels], scaled to [-1, 1].
        item: int[labels], index of each label's item, ascending.
        starts: int[items], index of each item's first label.
        size: float64[items], each item's number of labels, at least 2.
        order: The values in ascending order, for totals and ranks.
    """

    values: NDArray[np.float64]
    item: NDArray[np.intp]
    starts: NDArray[np.intp]
    size: NDArray[np.float64]
    order: Ordering


def alpha_of_draws(ratings: NDArray[np.float64], weights: NDArray[np.float64]) -> dict[AlphaLevel, NDArray[np.float64]]:
    """Return Krippendorff's alpha in each draw, at every level of measurement.

    Args:
        ratings: float64[items, annotators], NaN for a missing label. Every item has at least two labels.
        weights: float64[draws, items], number of times each item was drawn.

    Returns:
        float64[draws] for each level, with NaN for draws in which all labels are equal.
    """
    if not len(ratings):
        return {level: np.full(len(weights), np.nan) for level in LEVELS}
    item, column = np.nonzero(~np.isnan(ratings))
    values = ratings[item, column]
    values = standard(values, *scale_of(values))
    size = np.bincount(item)
    entries = _Entries(values, item, np.cumsum(size) - size, size.astype(np.float64), Ordering.of(values))
    step = max(1, NUMBERS_AT_A_TIME // len(values))
    chunks = [_chunk(entries, weights[start : start + step]) for start in range(0, len(weights), step)]
    return {level: np.concatenate([chunk[level] for chunk in chunks]) for level in LEVELS}


def _chunk(entries: _Entries, weights: NDArray[np.float64]) -> dict[AlphaLevel, NDArray[np.float64]]:
    by_label = np.take(weights, entries.item, axis=1)
    count = weights @ entries.size
    totals = entries.order.totals(by_label)
    # The sum of squared distances over ordered pairs of m values v is 2 (m sum v² - (sum v)²).
    spread = _within(entries, entries.values[None, :])
    squares = np.add.reduceat(_same(entries), entries.starts)
    ranks = entries.order.midranks(by_label) - (count[:, None] + 1) / 2
    return {
        "nominal": _alpha(
            count,
            weights @ ((entries.size**2 - squares) / (entries.size - 1)),
            count**2 - np.einsum("ij,ij->i", totals, totals),
        ),
        "interval": _alpha(count, (weights * spread).sum(axis=1), _among(by_label, entries.values[None, :], count)),
        "ordinal": _alpha(count, (weights * _within(entries, ranks)).sum(axis=1), _among(by_label, ranks, count)),
    }


def _within(entries: _Entries, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distances between each item's n labels, summed and divided by n - 1: float64[…, items]."""
    total = np.add.reduceat(values, entries.starts, axis=1)
    # Centre at the item's mean first, because otherwise close labels would lose digits.
    about = values - (total / entries.size)[:, entries.item]
    within: NDArray[np.float64] = np.add.reduceat(about * about, entries.starts, axis=1)
    return 2 * entries.size * within / (entries.size - 1)


def _among(
    by_label: NDArray[np.float64], values: NDArray[np.float64], count: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum of squared distances over all ordered pairs of labels in each draw, float64[draws]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (by_label * values).sum(axis=1, keepdims=True) / count[:, None]
    about = values - mean
    spread: NDArray[np.float64] = 2 * count * (by_label * about * about).sum(axis=1)
    # Rounding can leave a small spread for equal labels. Treat such a spread as 0.
    return np.asarray(np.where(spread > 1e-12 * count**2 * np.square(values).max(initial=0.0), spread, 0.0))


def _same(entries: _Entries) -> NDArray[np.float64]:
    """Return, for each label, the number of equal labels for the same item, float64[labels]."""
    groups = len(entries.order.starts)
    number, counts = np.unique(entries.item * groups + entries.order.group, return_inverse=True, return_counts=True)[1:]
    return np.asarray(counts[number], dtype=np.float64)


def _alpha(
    count: NDArray[np.float64], observed: NDArray[np.float64], expected: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(expected > 0, 1 - (count - 1) * observed / expected, np.nan))


# Maximum number of columns to compare in pairs. The number of pairs grows with the square of the columns, and in a
# wider file a column rarely belongs to a single annotator.
MAX_COLUMNS = 30


def pairs_of(ratings: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return every pair of columns, in order. With more than `MAX_COLUMNS` columns, return no pairs.

    Args:
        ratings: float64[items, annotators].
    """
    columns = ratings.shape[1]
    return list(combinations(range(columns), 2)) if columns <= MAX_COLUMNS else []


def kappa_of_draws(
    ratings: NDArray[np.float64], weights: NDArray[np.float64]
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Return Cohen's kappa in each draw, for every pair of annotators.

    Args:
        ratings: float64[items, annotators], NaN without a label.
        weights: float64[draws, items], number of times each item was drawn.

    Returns:
        float64[draws] for each pair in `pairs_of`. NaN if no item has labels by both annotators, or if all their labels
        are equal.
    """
    return {
        (first, second): _of_pair(ratings[:, first], ratings[:, second], weights) for first, second in pairs_of(ratings)
    }


def _of_pair(
    first: NDArray[np.float64], second: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    both = np.flatnonzero(~np.isnan(first) & ~np.isnan(second))
    if not len(both):
        return np.full(len(weights), np.nan)
    left, right = first[both], second[both]
    order_left, order_right = Ordering.of(left), Ordering.of(right)
    _, at_left, at_right = np.intersect1d(left, right, return_indices=True)
    shared_left, shared_right = order_left.group[at_left], order_right.group[at_right]
    agree = (left == right).astype(np.float64)
    step = max(1, NUMBERS_AT_A_TIME // len(both))
    found = []
    for start in range(0, len(weights), step):
        drawn = np.take(weights[start : start + step], both, axis=1)
        count = drawn.sum(axis=1)
        totals_left = order_left.totals(drawn)[:, shared_left]
        totals_right = order_right.totals(drawn)[:, shared_right]
        # Use counts instead of shares, because whole numbers show exactly whether disagreement is possible.
        expected = np.einsum("ij,ij->i", totals_left, totals_right)
        with np.errstate(invalid="ignore", divide="ignore"):
            kappa = (count * (drawn @ agree) - expected) / (count * count - expected)
        found.append(np.where(count * count > expected, kappa, np.nan))
    return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement between two annotators (columns).

    Attributes:
        first: The first column's number, from 1.
        second: The second column's number, above `first`.
        items: Number of items that both annotators labelled.
        kappa: Cohen's kappa, -1 to 1, or NaN if all labels by both annotators are equal.
    """

    first: int
    second: int
    items: int
    kappa: Estimate


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement between annotators.

    Attributes:
        items: Number of items with at least two labels. Other items are ignored.
        annotators: Largest number of labels for an item.
        alpha: Krippendorff's alpha by level of measurement, at most 1, or NaN if all labels are equal.
        pairs: Pairs of columns with an item in common, sorted by descending number of items. Empty if there are more
            than `MAX_COLUMNS` columns.
    """

    items: int
    annotators: int
    alpha: Mapping[AlphaLevel, Estimate]
    pairs: Sequence[PairAgreement]


def annotator_agreement(
    ratings: NDArray[np.float64], *, resamples: int = RANK_DRAWS, seed: int = 0
) -> AnnotatorAgreement:
    """Compute Krippendorff's alpha and Cohen's kappa, with intervals from draws of items.

    Args:
        ratings: float64[items, annotators], NaN without a label.
        resamples: Number of draws, at most `RANK_DRAWS`.
        seed: Seed for the draws.

    Returns:
        The agreement. Statistics are NaN if no item has two labels, or all labels are equal. There are no intervals
        with fewer than `LEAST_QUESTIONS` items. For a pair, only items that both annotators labelled count.
    """
    given = ~np.isnan(ratings)
    usable = ratings[given.sum(axis=1) >= 2]
    items = len(usable)
    chunks = draws(np.zeros(items, dtype=np.intp), resamples=min(resamples, RANK_DRAWS) if items else 0, seed=seed)
    drawn = drawn_values(chunks, lambda weights: _of_draws(usable, weights))
    point = _of_draws(usable, np.ones((1, items)))
    nothing = np.array([])
    return AnnotatorAgreement(
        items=items,
        annotators=int(given.sum(axis=1).max(initial=0)),
        alpha={level: estimate(float(point[level][0]), drawn.get(level, nothing), questions=items) for level in LEVELS},
        pairs=sorted(_pairs(usable, point, drawn), key=lambda pair: -pair.items),
    )


def _of_draws(ratings: NDArray[np.float64], weights: NDArray[np.float64]) -> _Values:
    return {**alpha_of_draws(ratings, weights), **kappa_of_draws(ratings, weights)}


def _pairs(ratings: NDArray[np.float64], point: _Values, drawn: _Values) -> Iterator[PairAgreement]:
    for first, second in pairs_of(ratings):
        if items := int((~np.isnan(ratings[:, first]) & ~np.isnan(ratings[:, second])).sum()):
            kappa = estimate(float(point[first, second][0]), drawn[first, second], questions=items)
            yield PairAgreement(first + 1, second + 1, items, kappa)


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Agreement between a metric's verdicts and an annotator (a column).

    Attributes:
        annotator: The column's number, from 1.
        items: Number of items with a verdict and a label by this annotator.
        kappa: Cohen's kappa, -1 to 1, or NaN if all verdicts and labels are equal.
    """

    annotator: int
    items: int
    kappa: Estimate


def verdict_agreement(
    verdicts: NDArray[np.float64], ratings: NDArray[np.float64], *, resamples: int = RANK_DRAWS, seed: int = 0
) -> list[VerdictAgreement]:
    """Compute Cohen's kappa of a metric's verdicts with each annotator, with intervals from draws of items.

    Args:
        verdicts: float64[items], 1 (right), 0 (wrong) or NaN without a verdict.
        ratings: float64[items, annotators], NaN without a label. A label of 0.5 or more means right.
        resamples: Number of draws, at most `RANK_DRAWS`.
        seed: Seed for the draws.

    Returns:
        The agreement for each column that shares an item with the verdicts. Empty if a label lies outside [0, 1], or if
        there are more than `MAX_COLUMNS` columns.
    """
    if ratings.shape[1] > MAX_COLUMNS or np.nanmin(ratings, initial=0.0) < 0 or np.nanmax(ratings, initial=1.0) > 1:
        return []
    judged = ~np.isnan(verdicts)
    said, given = verdicts[judged], ratings[judged]
    right = np.where(np.isnan(given), np.nan, given >= RIGHT_FROM)

    def values(weights: NDArray[np.float64]) -> dict[int, NDArray[np.float64]]:
        return {column: _of_pair(said, labels, weights) for column, labels in enumerate(right.T)}

    count = len(said)
    chunks = draws(np.zeros(count, dtype=np.intp), resamples=min(resamples, RANK_DRAWS) if count else 0, seed=seed)
    drawn, point = drawn_values(chunks, values), values(np.ones((1, count)))
    found = []
    for column, labels in enumerate(right.T):
        if items := int((~np.isnan(labels)).sum()):
            kappa = estimate(float(point[column][0]), drawn[column], questions=items)
            found.append(VerdictAgreement(column + 1, items, kappa))
    return found
