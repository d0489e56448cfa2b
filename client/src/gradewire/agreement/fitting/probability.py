"""Fits metric `calibrated`: monotone boosted trees, a calibration map, and what its band rests on.

Trees are scikit-learn's histogram gradient boosting (Ke et al. 2017) with monotonic constraints. Map and band come from
rows whose question the trees that judged them have not seen; the trees that are stored are fitted on all rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.halves import question_key
from gradewire.agreement.fitting.probability_figures import brier_score, calibration_error
from gradewire.agreement.fitting.probability_map import probability_map
from gradewire.agreement.fitting.stored_form import FittedFeature, HeldOut, Points, fit_form, log_odds, tree_form
from gradewire.agreement.optional_imports import one_blas_thread
from gradewire.agreement.point_estimates import RIGHT_FROM, auc

FOLDS: Final = 8
BAND_FOLDS: Final = 2
LEAST_OF_A_CLASS: Final = 40
"""Right and wrong rows without which nothing is fitted: fewer say nothing about a probability."""
FEW_ROWS: Final = 1000
# Chosen by cross-validation on the fit split of EVOUNA's development rows (docs/research/calibrated.md).
_TREES: Final = {
    "max_iter": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 30,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 0,
}


@dataclass(frozen=True, slots=True)
class CalibratedFitResult:
    """A fit and its figures on held-out rows.

    Attributes:
        fit: The form that a model stores, JSON.
        figures: Of the rows' held-out probabilities: `accuracy`, `pearson`, `auc`, `brier`, `ece` (15 bins of equal
            mass).
        warnings: What the reader should know, one sentence each.
    """

    fit: dict[str, Any]
    figures: dict[str, float]
    warnings: tuple[str, ...]


def fit_calibrated(
    features: Sequence[FittedFeature],
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    questions: Sequence[str],
    *,
    provenance: Mapping[str, Any],
) -> CalibratedFitResult:
    """Fits P(right) to labelled rows. The same rows in the same order give the same fit, bit for bit.

    Args:
        features: The metric's, in its order.
        values: float64[rows, features], NaN where a feature does not apply.
        labels: float64[rows], 0 to 1, right from 0.5.
        questions: Of each row, as written; rows of one question are never on both sides of a fold. A row without a
            question is a question of its own.
        provenance: `metric_version`, `model`, `model_digest` and whatever else the fit is to carry as it is.

    Raises:
        ValueError: Labels outside [0, 1], too few right or wrong rows or questions, values that are infinite, or
            features that say nothing about the labels.
        ImportError: scikit-learn is not installed.
    """
    right = _checked(values, labels, questions)
    folds = fold_of(questions)
    found = _held_out(features, values, right, folds)
    with one_blas_thread():
        trees = _trees(values, right, features)
    points = probability_map(found, right)
    figures = _figures(_crossed(found, right, folds), right)
    # Coarser folds for the band: choices were made on the finer ones, which flatter themselves; these do worse, having
    # seen half of the questions. Measured elsewhere the band is still too narrow (docs/research/calibrated.md).
    probabilities = points(_held_out(features, values, right, fold_of(questions, BAND_FOLDS)))
    held = HeldOut(probabilities[right], probabilities[~right])
    fit = fit_form(trees, points, held, {**provenance, "figures": figures})
    few = len(values) < FEW_ROWS
    warnings = (f"{len(values)} rows are few: below {FEW_ROWS} probabilities are rough",) if few else ()
    return CalibratedFitResult(fit, figures, warnings)


def held_out_probabilities(
    features: Sequence[FittedFeature],
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    questions: Sequence[str],
    *,
    parts: int = FOLDS,
) -> NDArray[np.float64]:
    """float64[rows], P(right) by trees and maps that have not seen a row's question.

    Args:
        features: As of `fit_calibrated`, as the next three.
        values: See there.
        labels: See there.
        questions: See there.
        parts: Of the questions, each of which is left out once.
    """
    right = _checked(values, labels, questions)
    folds = fold_of(questions, parts)
    return _crossed(_held_out(features, values, right, folds), right, folds)


def _held_out(
    features: Sequence[FittedFeature],
    values: NDArray[np.float64],
    right: NDArray[np.bool_],
    folds: NDArray[np.intp],
) -> NDArray[np.float64]:
    """float64[rows], log-odds by trees of the other folds."""
    found = np.empty(len(values))
    with one_blas_thread():
        for fold in range(int(folds.max()) + 1):
            inside = folds == fold
            found[inside] = log_odds(_trees(values[~inside], right[~inside], features), values[inside])
    return found


def fold_of(questions: Sequence[str], count: int = FOLDS) -> NDArray[np.intp]:
    """Fold of each row, from 0 to below `count`: questions in the order of a hash, dealt out one by one.

    Not the hash alone: its folds of a few questions could be empty.
    """
    keys = [question_key(question) or f"\0{row}" for row, question in enumerate(questions)]
    dealt = {
        key: number % count
        for number, key in enumerate(sorted(set(keys), key=lambda key: (blake2b(key.encode()).digest(), key)))
    }
    return np.array([dealt[key] for key in keys], dtype=np.intp)


def _checked(values: NDArray[np.float64], labels: NDArray[np.float64], questions: Sequence[str]) -> NDArray[np.bool_]:
    if not len(labels) == len(questions) == len(values):
        raise ValueError(f"there are {len(values)} rows, {len(labels)} labels and {len(questions)} questions")
    if not ((labels >= 0) & (labels <= 1)).all():
        raise ValueError("labels must be numbers from 0 to 1")
    if np.isinf(values).any():
        raise ValueError("a feature is infinite")
    right = labels >= RIGHT_FROM
    for kind, count in (("right", int(right.sum())), ("wrong", int((~right).sum()))):
        if count < LEAST_OF_A_CLASS:
            raise ValueError(f"{count} answers are {kind}; a fit needs {LEAST_OF_A_CLASS} right and as many wrong ones")
    for fold in range(FOLDS):
        outside = right[fold_of(questions) != fold]
        if not outside.any() or outside.all():
            raise ValueError(f"the rows have too few questions to hold {FOLDS} parts of them out")
    return right


def _trees(values: NDArray[np.float64], right: NDArray[np.bool_], features: Sequence[FittedFeature]) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - the extra `calibrate`, and slow

    model = HistGradientBoostingClassifier(**_TREES, monotonic_cst=[feature.monotone for feature in features])
    # scikit-learn cannot cut a feature that no row has into bins; a constant is one that no tree can ask for.
    model.fit(np.where(np.isnan(values).all(axis=0), 0.0, values), right)
    return tree_form([model], features)


def _crossed(held_out: NDArray[np.float64], right: NDArray[np.bool_], folds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Probabilities by maps that have not seen the row's question either, for honest figures."""
    found = np.empty(len(held_out))
    for fold in range(int(folds.max()) + 1):
        inside = folds == fold
        points: Points = probability_map(held_out[~inside], right[~inside])
        found[inside] = points(held_out[inside])
    return found


def _figures(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    return {
        "accuracy": round(float(np.mean((probabilities >= 0.5) == right)), 6),
        "pearson": round(float(np.corrcoef(probabilities, right)[0, 1]), 6),
        "auc": round(auc(probabilities, right), 6),
        "brier": round(brier_score(probabilities, right), 6),
        "ece": round(calibration_error(probabilities, right), 6),
    }
