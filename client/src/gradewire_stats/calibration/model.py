"""The model of a probability: boosted trees and a linear part, half of the log-odds each."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.calibration.labelled_rows import LabelledFeatures
from gradewire_stats.calibration.stored_fit import FittedFeature, Points, log_odds, tree_form
from gradewire_stats.point_estimates import one_blas_thread

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


_MOST_LOG_ODDS: Final = 10.0
_STEP: Final = 0.1
_WEAK_PRIOR: Final = 1e6


def probability_map(
    log_odds: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> Points:
    """Platt's map: 1 / (1 + exp(-(a x + b))), as points 0.1 of a x + b apart.

    Between points it is linear, within 1e-4 of the curve; outside (below 0.00005, above 0.99995) constant. On the
    development rows it was as well calibrated as isotonic regression and ordered rows better, having no steps.
    Source: Platt 1999, *Probabilistic Outputs for Support Vector Machines*.

    Args:
        log_odds: float64[rows], held out.
        right: bool[rows], of both kinds.
        weights: float64[rows], 0 or more; None: all rows count the same.

    Raises:
        ValueError: Higher log-odds are not more often right.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - the extra `calibrate`, and slow

    curve = LogisticRegression(C=_WEAK_PRIOR).fit(log_odds[:, None], right, weights)
    slope, shift = float(curve.coef_[0, 0]), float(curve.intercept_[0])
    if slope <= 0:
        raise ValueError("on rows held out, answers that look better are not more often right: nothing can be fitted")
    steps = round(_MOST_LOG_ODDS / _STEP)
    logits: NDArray[np.float64] = np.arange(-steps, steps + 1, dtype=np.float64) * _STEP
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-logits))
    return Points(((logits - shift) / slope).round(9), probabilities.round(9))


# Chosen by cross-validation over questions and by leaving sources out (docs/research/travel.md).
TREES: Final[dict[str, Any]] = {
    "max_iter": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 30,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 0,
}
LINEAR_SHARE: Final = 0.5


def fitted_model(rows: LabelledFeatures) -> dict[str, Any]:
    """The keys `features`, `base`, `trees` and `linear` of a fit."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - the extra `calibrate`, and slow

    with one_blas_thread():
        trees = HistGradientBoostingClassifier(**TREES, monotonic_cst=[each.monotone for each in rows.features])
        # scikit-learn cannot cut a feature that no row has into bins; a constant is one that no tree can ask for.
        known = np.where(np.isnan(rows.values).all(axis=0), 0.0, rows.values)
        trees.fit(known, rows.right, sample_weight=rows.weights)
        constant, linear = linear_form(rows.values, rows.right, rows.weights, rows.features, share=LINEAR_SHARE)
    form = tree_form([trees], rows.features, weight=1 - LINEAR_SHARE)
    return {**form, "base": form["base"] + constant, "linear": linear}


def held_out(rows: LabelledFeatures, folds: NDArray[np.intp]) -> NDArray[np.float64]:
    """float64[rows], log-odds by models of the other folds; NaN in a fold without which one class is left."""
    found = np.full(len(rows.right), np.nan)
    for inside in (folds == fold for fold in range(int(folds.max()) + 1)):
        found[inside] = _by_the_others(rows, inside)
    return found


def left_out_sources(rows: LabelledFeatures) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each source in alphabetical order, with bool[rows] of its rows; none where there is only one."""
    named = sorted(set(rows.sources))
    for source in named if len(named) > 1 else ():
        yield source, rows.of_source(source)


def left_out_log_odds(rows: LabelledFeatures) -> NDArray[np.float64]:
    """float64[rows], log-odds by models of the other sources, which have not seen the row's question either."""
    found = np.full(len(rows.right), np.nan)
    for _, inside in left_out_sources(rows):
        found[inside] = _by_the_others(rows, inside)
    return found


def _by_the_others(rows: LabelledFeatures, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    others = rows.where(rows.unasked(inside))
    if others.right.all() or not others.right.any():
        return np.full(int(inside.sum()), np.nan)
    return log_odds(fitted_model(others), rows.values[inside])
