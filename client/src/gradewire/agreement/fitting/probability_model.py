"""What a fit of `correctness` makes of features: boosted trees and a linear model, half of the log-odds each.

Trees are scikit-learn's histogram gradient boosting (Ke et al. 2017) with monotonic constraints. Alone they fit the
kinds of rows that they have seen better; the average errs less on rows of a source that was left out.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.labelled_features import LabelledFeatures
from gradewire.agreement.fitting.linear_part import linear_form
from gradewire.agreement.fitting.stored_evaluation import log_odds
from gradewire.agreement.fitting.stored_form import tree_form
from gradewire.agreement.optional_imports import one_blas_thread

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


def travelled(rows: LabelledFeatures) -> NDArray[np.float64]:
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
