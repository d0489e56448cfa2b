"""Fit the metric `correctness`: a model of the features, a map from log-odds to probabilities, and a band.

Maps and bands are fitted on rows that their model has not seen. These rows are held out by question and by source. The
stored model is fitted on all rows. Its log-odds are the mean of boosted trees and a linear model.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import one_blas_thread
from gradewire_stats.calibration.evaluate_fit import distances, log_odds, ramp, ruled, without_doubted
from gradewire_stats.calibration.labelled_rows import (
    FOLDS,
    LEAST_OF_A_CLASS,
    FittedFeature,
    InputKinds,
    LabelledFeatures,
    folds_of_keys,
    left_out_sources,
)
from gradewire_stats.calibration.quality import (
    TransferStatistics,
    probability_quality,
    transfer_statistics,
    transfer_warnings,
)
from gradewire_stats.calibration.serialise_fit import DistanceBand, Points, fit_form, neighbourhood, scales, tree_form

_PENALTY: Final = 30.0
"""Penalty on squared weights of standardised features. The value was chosen by leaving sources out."""
_EDGES: Final = (1.0, 99.0)
"""Percentiles at which features are clipped."""
_LEAST_SPREAD: Final = 1e-6

_MOST_LOG_ODDS: Final = 10.0
_STEP: Final = 0.1
_WEAK_PRIOR: Final = 1e6

# Chosen by cross-validation over questions and by leaving sources out (docs/research/correctness.md).
TREES: Final[dict[str, Any]] = {
    "max_iter": 300,
    "learning_rate": 0.1,
    "max_leaf_nodes": 10,
    "min_samples_leaf": 20,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 0,
}
LINEAR_SHARE: Final = 0.25

BAND_FOLDS: Final = 2
FEW_ROWS: Final = 1000
MOST_SOURCES: Final = 24
FEW_OF_A_SOURCE: Final = 50
LEAST_RAMP: Final = 0.01
"""Minimum distance between near and far, ten times the server's minimum. With a smaller distance, a small change could
turn a near item into a far item.
"""
TRANSFER_WEIGHT: Final = 0.1
"""Weight of a row held out by source, relative to the same row held out by question."""
NEAR, FAR, ALL_NEAR = 50.0, 95.0, 99.0
"""Percentiles of held-out rows' distances. Rows are held out by question and, with several sources, also by source. The
near range ends at the percentile NEAR of the rows held out by question (ALL_NEAR with a single source). The far range
starts at the percentile FAR of all held-out rows."""


def linear_form(
    values: NDArray[np.float64],
    right: NDArray[np.bool_],
    weights: NDArray[np.float64],
    features: Sequence[FittedFeature],
    *,
    share: float,
) -> tuple[float, dict[str, list[float]]]:
    """Fit a logistic model with constraints on signs.

    Args:
        values: float64[rows, features]. NaN means that a feature does not apply, and counts as the feature's mean.
        right: bool[rows], with both classes.
        weights: float64[rows], with mean 1.
        features: Columns of `values`.
        share: Factor for the log-odds.

    Returns:
        The values that a fit stores: the constant, and the lists `weight`, `low`, `high` and `missing` over all
        features.

    Raises:
        ImportError: SciPy is not installed.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the extra `calibrate`, and slow

    low, high, mean, spread = _scales(values, weights)
    scaled = np.where(np.isnan(values), 0.0, (np.clip(values, low, high) - mean) / spread)
    sides = np.where(right, 1.0, -1.0)

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = sides * (scaled @ found[:-1] + found[-1])
        slopes = -sides * weights / (1 + np.exp(np.clip(margins, -500, 500)))
        total = weights @ np.logaddexp(0.0, -margins) + 0.5 * _PENALTY * (found[:-1] @ found[:-1])
        return float(total), np.concatenate((scaled.T @ slopes + _PENALTY * found[:-1], [slopes.sum()]))

    bounds: Any = [{1: (0.0, None), -1: (None, 0.0), 0: (None, None)}[feature.monotone] for feature in features]
    solved = minimize(loss, np.zeros(len(features) + 1), jac=True, bounds=[*bounds, (None, None)], method="L-BFGS-B")
    weight = _short(share * solved.x[:-1] / spread)
    constant = float(share * solved.x[-1] - weight @ mean)
    columns = {"weight": weight, "low": low, "high": high, "missing": mean}
    return constant, {name: column.tolist() for name, column in columns.items()}


def _scales(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return each feature's lower and upper limit, mean and spread (0, 0, 0 and 1 for a feature without values)."""
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


def probability_map(
    log_odds: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> Points:
    """Fit Platt's map, 1 / (1 + exp(-(a x + b))), stored as points at every 0.1 of a x + b.

    Between two points, the map is linear and within 1e-4 of the curve. Beyond the first and last points, the map is
    constant. Unlike isotonic regression, the map has no steps, so it keeps the rows' order.
    Source: Platt 1999, *Probabilistic Outputs for Support Vector Machines*.

    Args:
        log_odds: float64[rows], held out.
        right: bool[rows], with both classes.
        weights: float64[rows], 0 or more. None means equal weights.

    Raises:
        ValueError: Answers with higher log-odds are right no more often than the others.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - the extra `calibrate`, and slow

    curve = LogisticRegression(C=_WEAK_PRIOR).fit(log_odds[:, None], right, weights)
    slope, shift = float(curve.coef_[0, 0]), float(curve.intercept_[0])
    if slope <= 0:
        raise ValueError("no fit is possible: held-out answers with higher scores are right no more often than others")
    steps = round(_MOST_LOG_ODDS / _STEP)
    logits: NDArray[np.float64] = np.arange(-steps, steps + 1, dtype=np.float64) * _STEP
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-logits))
    return Points(((logits - shift) / slope).round(9), probabilities.round(9))


def fitted_model(rows: LabelledFeatures) -> dict[str, Any]:
    """Fit a model. Return its stored form with the keys `features`, `base`, `trees` and `linear`."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - the extra `calibrate`, and slow

    with one_blas_thread():
        trees = HistGradientBoostingClassifier(**TREES, monotonic_cst=[each.monotone for each in rows.features])
        # scikit-learn cannot bin a feature without values. A constant is harmless, because no tree splits on it.
        known = np.where(np.isnan(rows.values).all(axis=0), 0.0, rows.values)
        # Equal weights give the same trees as none, but scikit-learn's quantiles take 20 times longer with weights.
        weights = None if np.ptp(rows.weights) == 0 else rows.weights
        trees.fit(known, rows.right, sample_weight=weights)
        constant, linear = linear_form(rows.values, rows.right, rows.weights, rows.features, share=LINEAR_SHARE)
    form = tree_form([trees], rows.features, weight=1 - LINEAR_SHARE)
    return {**form, "base": form["base"] + constant, "linear": linear}


def held_out(rows: LabelledFeatures, folds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return float64[rows], each row's log-odds from a model fitted on the other folds.

    A row's value is NaN if the rows in the other folds are all right or all wrong.
    """
    return _by_the_others(rows, (folds == fold for fold in range(int(folds.max()) + 1)))


def left_out_log_odds(rows: LabelledFeatures) -> NDArray[np.float64]:
    """Return float64[rows], each row's log-odds from a model fitted on the other sources.

    The other sources' rows with the same question as the row are left out, too.
    """
    return _by_the_others(rows, (inside for _, inside in left_out_sources(rows)))


def _by_the_others(rows: LabelledFeatures, parts: Iterable[NDArray[np.bool_]]) -> NDArray[np.float64]:
    found = np.full(len(rows.right), np.nan)
    for inside in parts:
        others = rows.where(rows.without_shared_questions(inside))
        if others.right.any() and not others.right.all():
            found[inside] = log_odds(fitted_model(others), rows.values[inside])
    return found


@dataclass(frozen=True, slots=True)
class CorrectnessFitResult:
    """A fit and its quality on held-out rows.

    Attributes:
        fit: The JSON document that a model stores.
        quality: Quality of the probabilities for questions outside the fit: `accuracy`, `pearson`, `auc`, `brier` and
            `ece` (15 bins of equal mass).
        transfer: For each source, the quality of a fit on the other sources. Empty if there is only one source.
        held_out: float64[rows], each row's probability from a fit that has not seen its question.
    """

    fit: dict[str, Any]
    quality: dict[str, float]
    transfer: tuple[TransferStatistics, ...]
    warnings: tuple[str, ...]
    held_out: NDArray[np.float64]


def fit_correctness(
    rows: LabelledFeatures, *, provenance: Mapping[str, Any], with_transfer: bool = True
) -> CorrectnessFitResult:
    """Fit P(right) to labelled rows. The same rows in the same order give the same fit, bit for bit.

    Every source has the same weight.

    Args:
        rows: Result of `checked`.
        provenance: `metric_version`, `model`, `model_digest` and any other values for the fit to store unchanged.
        with_transfer: Test the fit on each source in turn, without that source's rows. The tests take most of the time.

    Raises:
        ValueError: The features do not predict the labels, or there are more sources than MOST_SOURCES.
        ImportError: scikit-learn is not installed.
    """
    if (count := len(set(rows.sources))) > MOST_SOURCES:
        raise ValueError(
            f"{count} sources, but at most {MOST_SOURCES} are possible, because each is left out once. Name a column "
            "with fewer values (--source)"
        )
    unseen = held_out_probabilities(rows)
    quality = probability_quality(unseen, rows.right)
    transfer = tuple(transfer_statistics(rows, fitted_form)) if with_transfer else ()
    fit = fitted_form(rows, {**provenance, "figures": quality})
    return CorrectnessFitResult(fit, quality, transfer, tuple(_warnings(rows, transfer)), unseen)


def held_out_probabilities(rows: LabelledFeatures, *, parts: int = FOLDS) -> NDArray[np.float64]:
    """Return float64[rows], P(right) from models and maps that have not seen the row's question.

    Args:
        rows: Result of `checked`.
        parts: Number of parts to split the questions into. Each part is left out once.

    Raises:
        ValueError: The features do not predict the labels.
    """
    (evidence,) = _evidence(rows, parts)
    return ruled(_cross_fitted_probabilities(evidence, folds_of_keys(rows.keys, parts)), rows.rules)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Log-odds of held-out rows: first every row held out by question, then every row held out by source.

    Attributes:
        rows: intp[n], position of the labelled row.
        log_odds: float64[n], from a model that has not seen the row.
        right: bool[n].
        weights: float64[n].
        share: float64[n], 0 for rows near the model's rows, 1 for far rows, and linear in between.
        edges: The largest near distance and the smallest far distance, or None without shapes.
    """

    rows: NDArray[np.intp]
    log_odds: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64]
    share: NDArray[np.float64]
    edges: tuple[float, float] | None

    def where(self, kept: NDArray[np.bool_]) -> "_Evidence":
        columns = (self.rows[kept], self.log_odds[kept], self.right[kept], self.weights[kept], self.share[kept])
        return _Evidence(*columns, self.edges)

    def weighted(self, *, far: bool) -> NDArray[np.float64]:
        """Return the rows' weights as evidence about far items or, if `far` is False, about near items."""
        return self.weights * (self.share if far else 1 - self.share)

    def near(self) -> Points:
        return probability_map(self.log_odds, self.right, self.weighted(far=False))

    def far(self) -> Points | None:
        """Return the map for far items, or None if far rows are too few or do not allow a map."""
        weights = self.weighted(far=True)
        if min(float(weights[self.right].sum()), float(weights[~self.right].sum())) < LEAST_OF_A_CLASS:
            return None
        try:
            return probability_map(self.log_odds, self.right, weights)
        except ValueError:
            return None


def _evidence(rows: LabelledFeatures, *parts: int) -> Iterator[_Evidence]:
    by_source = left_out_log_odds(rows)
    apart = None if rows.shapes is None else _distances(rows, rows.shapes)
    for count in parts:
        yield _evidence_of(rows, held_out(rows, folds_of_keys(rows.keys, count)), by_source, apart)


def _evidence_of(
    rows: LabelledFeatures,
    by_question: NDArray[np.float64],
    by_source: NDArray[np.float64],
    apart: NDArray[np.float64] | None,
) -> _Evidence:
    count = len(rows.right)
    found = np.concatenate((by_question, by_source))
    share, edges = np.zeros(len(found)), None
    if apart is not None:
        several = not np.isnan(by_source).all()
        known = apart[~np.isnan(apart)]
        near, far = np.percentile(apart[:count], NEAR if several else ALL_NEAR), np.percentile(known, FAR)
        edges = (float(near), float(far) if several and far - near >= LEAST_RAMP else 2 * float(near) + 1.0)
        share = ramp(apart, *edges)
    weights = np.concatenate((rows.weights, TRANSFER_WEIGHT * rows.weights))
    evidence = _Evidence(np.tile(np.arange(count), 2), found, np.tile(rows.right, 2), weights, share, edges)
    return evidence.where(~np.isnan(found))


def _distances(rows: LabelledFeatures, shapes: InputKinds) -> NDArray[np.float64]:
    """Return float64[2 rows]: each row's distance from the other half of the questions, then from the other sources.

    Distances from other sources are NaN if there is only one source.
    """
    count = len(rows.right)
    found, scale = np.full(2 * count, np.nan), scales(shapes.values)
    halves = folds_of_keys(rows.keys, BAND_FOLDS)
    parts = [(0, halves == half) for half in range(BAND_FOLDS)]
    parts += [(count, inside) for _, inside in left_out_sources(rows)]
    for start, inside in parts:
        others = rows.where(rows.without_shared_questions(inside))
        if others.shapes is not None and len(others.right):
            kept = neighbourhood(others.shapes.values, scale, others.keys, others.sources)
            found[start + np.flatnonzero(inside)] = distances(kept, shapes.values[inside])
    return found


def _cross_fitted_probabilities(evidence: _Evidence, folds: NDArray[np.intp]) -> NDArray[np.float64]:
    found = np.empty(len(folds))
    for fold in range(int(folds.max()) + 1):
        inside = folds[evidence.rows] == fold
        others = evidence.where(~inside)
        near = others.near()
        far = others.far() or near
        mine = evidence.where(inside & (np.arange(len(inside)) < len(folds)))
        found[mine.rows] = (1 - mine.share) * near(mine.log_odds) + mine.share * far(mine.log_odds)
    return found


def fitted_form(rows: LabelledFeatures, provenance: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the fit of `fit_correctness` without measuring the fit's quality."""
    # The band uses coarse folds, because the design was chosen on the fine folds, which are therefore too optimistic.
    evidence, coarse = _evidence(rows, FOLDS, BAND_FOLDS)
    near, far = evidence.near(), evidence.far()
    found = near(coarse.log_odds)
    if far is not None:
        found = (1 - coarse.share) * found + coarse.share * far(coarse.log_odds)
    found = ruled(found, rows.rules[coarse.rows])
    found = without_doubted(found, rows.doubts[coarse.rows])
    distance = None
    if evidence.edges is not None and rows.shapes is not None:
        kept = neighbourhood(rows.shapes.values, scales(rows.shapes.values), rows.keys, rows.sources)
        edges = {name: round(edge, 6) for name, edge in zip(("near", "far"), evidence.edges, strict=True)}
        distance = {"shape": list(rows.shapes.names), **kept, **edges}
    near_band = DistanceBand(near, found, coarse.right, coarse.weighted(far=False))
    far_band = None if far is None else DistanceBand(far, found, coarse.right, coarse.weighted(far=True))
    return fit_form(fitted_model(rows), near_band, provenance or {}, far=far_band, distance=distance)


def _warnings(rows: LabelledFeatures, transfer: tuple[TransferStatistics, ...]) -> Iterator[str]:
    if len(rows.right) < FEW_ROWS:
        yield f"there are only {len(rows.right)} rows, and probabilities are inaccurate with fewer than {FEW_ROWS}"
    sources = Counter(rows.sources)
    for source, count in sorted(sources.items()):
        if count < FEW_OF_A_SOURCE and len(sources) > 1 and rows.counting.get(source, 1.0) >= 1:
            yield (
                f"source {source!r} has only {count} rows but counts as much as every other source, so each row weighs "
                f"{rows.weights[rows.of_source(source)][0]:.1f} times the mean. Label more rows, or merge sources"
            )
    yield from transfer_warnings(transfer)
