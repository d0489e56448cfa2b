"""Cohen's kappa of many draws of items at once.

Source: Cohen 1960, "A coefficient of agreement for nominal scales": (p_o - p_e) / (1 - p_e), with p_e from the two
annotators' own shares.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.ranked import CELLS_AT_A_TIME
from gradewire.agreement.bootstrap.weighted import Ordering

# Pairs grow with the square. Where a file has more columns than this, they are hardly the same people in every row.
MAX_COLUMNS = 30


def pairs_of(ratings: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Every pair of columns, in order; none where there are more than `MAX_COLUMNS` columns.

    Args:
        ratings: float64[items, annotators].
    """
    columns = ratings.shape[1]
    return list(combinations(range(columns), 2)) if columns <= MAX_COLUMNS else []


def kappa_of_draws(ratings: NDArray[np.float64], weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Kappa of every pair of annotators.

    Args:
        ratings: float64[items, annotators], NaN where there is no label.
        weights: float64[draws, items], how often each item was drawn.

    Returns:
        float64[draws] for each of `pairs_of`; NaN where a pair has no item in common or all labels are alike.
    """
    return [_of_pair(ratings[:, first], ratings[:, second], weights) for first, second in pairs_of(ratings)]


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
    step = max(1, CELLS_AT_A_TIME // len(both))
    found = []
    for start in range(0, len(weights), step):
        drawn = np.take(weights[start : start + step], both, axis=1)
        count = drawn.sum(axis=1)
        totals_left = order_left.totals(drawn)[:, shared_left]
        totals_right = order_right.totals(drawn)[:, shared_right]
        # Counts, not shares: whole numbers tell exactly whether any disagreement can be expected at all.
        expected = np.einsum("ij,ij->i", totals_left, totals_right)
        with np.errstate(invalid="ignore", divide="ignore"):
            kappa = (count * (drawn @ agree) - expected) / (count * count - expected)
        found.append(np.where(count * count > expected, kappa, np.nan))
    return np.concatenate(found)
