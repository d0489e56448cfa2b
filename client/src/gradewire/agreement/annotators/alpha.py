"""Krippendorff's alpha of many draws of items at once.

Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability". With n pairable labels (of items that have at
least two), alpha = 1 - (n - 1) D / E, where D sums the distances of ordered pairs within an item, each divided by the
item's labels less one, and E those of all ordered pairs. Nominal distance is 0 or 1, interval the squared difference,
and ordinal the squared difference of midranks, which is what the sum over the marginals between two values amounts to.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.additive import scale_of, standard
from gradewire.agreement.bootstrap.ranked import CELLS_AT_A_TIME
from gradewire.agreement.bootstrap.weighted import Ordering

AlphaLevel = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[AlphaLevel, ...] = ("nominal", "ordinal", "interval")


@dataclass(frozen=True, slots=True)
class _Entries:
    """All labels in a row, item by item.

    Attributes:
        values: float64[labels], scaled to [-1, 1].
        item: int[labels], ascending.
        starts: int[items], where each item's labels start.
        size: float64[items], labels of each, at least 2.
        order: Of the values.
    """

    values: NDArray[np.float64]
    item: NDArray[np.intp]
    starts: NDArray[np.intp]
    size: NDArray[np.float64]
    order: Ordering


def alpha_of_draws(ratings: NDArray[np.float64], weights: NDArray[np.float64]) -> dict[AlphaLevel, NDArray[np.float64]]:
    """Alpha at every level of measurement.

    Args:
        ratings: float64[items, annotators] with at least two labels in each item, NaN where there is none.
        weights: float64[draws, items], how often each item was drawn.

    Returns:
        float64[draws] by level; NaN where a draw has only one value.
    """
    if not len(ratings):
        return {level: np.full(len(weights), np.nan) for level in LEVELS}
    item, column = np.nonzero(~np.isnan(ratings))
    values = ratings[item, column]
    values = standard(values, *scale_of(values))
    size = np.bincount(item)
    entries = _Entries(values, item, np.cumsum(size) - size, size.astype(np.float64), Ordering.of(values))
    step = max(1, CELLS_AT_A_TIME // len(values))
    chunks = [_chunk(entries, weights[start : start + step]) for start in range(0, len(weights), step)]
    return {level: np.concatenate([chunk[level] for chunk in chunks]) for level in LEVELS}


def _chunk(entries: _Entries, weights: NDArray[np.float64]) -> dict[AlphaLevel, NDArray[np.float64]]:
    by_label = np.take(weights, entries.item, axis=1)
    count = weights @ entries.size
    totals = entries.order.totals(by_label)
    # A squared distance summed over ordered pairs is 2 (m sum v² - (sum v)²), within an item as among all labels.
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
    """Distances within each item over its labels less one, float64[draws or 1, items]."""
    total = np.add.reduceat(values, entries.starts, axis=1)
    # About the item's mean: no digits are lost where labels are close together.
    about = values - (total / entries.size)[:, entries.item]
    within: NDArray[np.float64] = np.add.reduceat(about * about, entries.starts, axis=1)
    return 2 * entries.size * within / (entries.size - 1)


def _among(
    by_label: NDArray[np.float64], values: NDArray[np.float64], count: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances of all ordered pairs of labels of each draw, float64[draws]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (by_label * values).sum(axis=1, keepdims=True) / count[:, None]
    about = values - mean
    spread: NDArray[np.float64] = 2 * count * (by_label * about * about).sum(axis=1)
    # What rounding leaves of equal labels is not a spread.
    return np.asarray(np.where(spread > 1e-12 * count**2 * np.square(values).max(initial=0.0), spread, 0.0))


def _same(entries: _Entries) -> NDArray[np.float64]:
    """For each label, how many of its item are equal to it, float64[labels]."""
    groups = len(entries.order.starts)
    number, counts = np.unique(entries.item * groups + entries.order.group, return_inverse=True, return_counts=True)[1:]
    return np.asarray(counts[number], dtype=np.float64)


def _alpha(
    count: NDArray[np.float64], observed: NDArray[np.float64], expected: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(expected > 0, 1 - (count - 1) * observed / expected, np.nan))
