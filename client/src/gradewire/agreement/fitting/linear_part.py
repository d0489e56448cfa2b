"""The linear part of a fit: a logistic model whose weights keep to the directions of the features.

It knows less than trees and errs less where answers are unlike the fitted ones: beyond the values that were seen it
says what it says at their edge, and no cut that suits one source alone stands in it.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.stored_form import FittedFeature

_PENALTY: Final = 30.0
"""Of squared weights, for features of one standard deviation; chosen by leaving sources out."""
_EDGES: Final = (1.0, 99.0)
"""Percentiles beyond which a feature says no more."""
_LEAST_SPREAD: Final = 1e-6


def linear_form(
    values: NDArray[np.float64],
    right: NDArray[np.bool_],
    weights: NDArray[np.float64],
    features: Sequence[FittedFeature],
    *,
    share: float,
) -> tuple[float, dict[str, list[float]]]:
    """Fits a logistic model under signs.

    Args:
        values: float64[rows, features], NaN where a feature does not apply: there it counts as its mean.
        right: bool[rows], of both kinds.
        weights: float64[rows], their mean is 1.
        features: Columns of `values`.
        share: What its log-odds are multiplied by.

    Returns:
        The constant, and `weight`, `low`, `high` and `missing` of each feature, as a fit stores them.

    Raises:
        ImportError: SciPy is not installed.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the extra `calibrate`, and slow

    low, high, mean, spread = _scales(values, weights)
    columns = np.where(np.isnan(values), 0.0, (np.clip(values, low, high) - mean) / spread)
    sides = np.where(right, 1.0, -1.0)

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = sides * (columns @ found[:-1] + found[-1])
        slopes = -sides * weights / (1 + np.exp(np.clip(margins, -500, 500)))
        total = weights @ np.logaddexp(0.0, -margins) + 0.5 * _PENALTY * (found[:-1] @ found[:-1])
        return float(total), np.concatenate((columns.T @ slopes + _PENALTY * found[:-1], [slopes.sum()]))

    bounds: Any = [{1: (0.0, None), -1: (None, 0.0), 0: (None, None)}[feature.monotone] for feature in features]
    solved = minimize(loss, np.zeros(len(features) + 1), jac=True, bounds=[*bounds, (None, None)], method="L-BFGS-B")
    weight = _short(share * solved.x[:-1] / spread)
    constant = float(share * solved.x[-1] - weight @ mean)
    return constant, {
        "weight": weight.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "missing": mean.tolist(),
    }


def _scales(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Lowest and highest value that counts, mean and spread of each feature; 0, 0, 0 and 1 of one that no row has."""
    count = values.shape[1]
    low, high, mean, spread = np.zeros(count), np.zeros(count), np.zeros(count), np.ones(count)
    for column in range(count):
        there = ~np.isnan(values[:, column])
        if there.any():
            known = values[there, column]
            low[column], high[column] = np.percentile(known, _EDGES)
            clipped = np.clip(known, low[column], high[column])
            mean[column] = np.average(clipped, weights=weights[there])
            found = float(np.sqrt(np.average((clipped - mean[column]) ** 2, weights=weights[there])))
            spread[column] = found if found > _LEAST_SPREAD else 1.0
    return _short(low), _short(high), _short(mean), spread


def _short(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([float(f"{value:.9g}") for value in values])
