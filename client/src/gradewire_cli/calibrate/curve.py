"""The gain from the labels of `gradewire calibrate --add`: a fit's quality on unseen questions, by number of labels."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradewire_cli.calibrate.fits import ROWS_PER_BIN, labelled_features, level_rows
from gradewire_cli.results.tables import Table, number
from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.cascade import fitted_risks
from gradewire_stats.calibration.evaluate_fit import log_odds
from gradewire_stats.calibration.fit_correctness import fitted_model
from gradewire_stats.calibration.labelled_rows import LEAST_OF_A_CLASS, half_of, question_keys
from gradewire_stats.calibration.learning_curve import DRAWS, FOLDS, CurvePoint, CurveRows, Spread, learning_curve
from gradewire_stats.calibration.level import fit_level
from gradewire_stats.calibration.quality import BINS, brier_score, calibration_error
from gradewire_stats.calibration.thresholds import balanced_accuracy, fit_threshold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_cli.calibrate.cascade import ScoredCascade
    from gradewire_cli.calibrate.rows import LabelledScores
    from gradewire_stats.calibration.labelled_rows import FittedFeature, Half
    from gradewire_stats.calibration.learning_curve import Predict, Quality
    from gradewire_stats.calibration.thresholds import Objective

_LOWER_IS_BETTER: Final = frozenset({"Brier", "ECE"})
_CURVE_RISK: Final = 0.05
"""The risk of a cascade's learning curve, which is the default of `auto`."""
_DRAWS_OF_TREES: Final = 3
_FOLDS_OF_TREES: Final = 5
"""Numbers of draws and parts for a fit of the probability, which takes a thousand times as long as the other fits."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A learning curve to print. All are empty without labels from --add for two questions or more.

    Attributes:
        present: The statistics before the new fit, by name. Empty if they are unknown.
    """

    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    points: Sequence[CurvePoint] = ()
    present: Mapping[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the curve for a JSON document, or {} without points."""
        if not self.points:
            return {}
        return {"learning_curve": {"present": dict(self.present), "points": [asdict(each) for each in self.points]}}


def curve_of_threshold(rows: LabelledScores, objective: Objective, seed: int) -> Curve:
    """Return the learning curve of a threshold, compared with the present verdicts."""

    def predict(fitted_on: NDArray[np.bool_], read: NDArray[np.bool_]) -> NDArray[np.float64]:
        cut = fit_threshold(rows.scores[fitted_on], rows.right[fitted_on], objective)
        return (rows.scores[read] >= cut).astype(np.float64)

    statistics: dict[str, Quality] = {
        "accuracy": partial(_accuracy, RIGHT_FROM),
        "balanced accuracy": balanced_accuracy,
    }
    return _curve(predict, _curve_rows(rows), statistics, rows.verdicts, seed=seed)


def curve_of_level(
    rows: LabelledScores, form: Mapping[str, Any], known: Sequence[str], shape: Sequence[str], seed: int
) -> Curve:
    """Return the learning curve of a level, compared with the fit without a level; see `fitted_level`."""
    if not rows.added.any():
        return Curve()
    found = level_rows(rows, form, known, shape)

    def predict(fitted_on: NDArray[np.bool_], read: NDArray[np.bool_]) -> NDArray[np.float64]:
        return found.where(read).probabilities(fit_level(found.where(fitted_on)))

    bins = max(1, min(BINS, int(rows.added.sum()) // ROWS_PER_BIN))
    statistics: dict[str, Quality] = {
        "Brier": brier_score,
        "ECE": partial(calibration_error, bins=bins),
        "accuracy": partial(_accuracy, RIGHT_FROM),
    }
    return _curve(predict, _curve_rows(rows), statistics, found.probabilities(), seed=seed)


def curve_of_probability(
    rows: LabelledScores, features: Sequence[FittedFeature], shape: Sequence[str], seed: int
) -> Curve:
    """Return the learning curve of the model under a probability; see `fitted_probability`.

    A fit needs 40 right and 40 wrong rows. The model's log-odds have no map to probabilities yet, so the curve has no
    Brier score.
    """
    if not rows.added.any():
        return Curve()
    found = labelled_features(rows, features, shape)

    def predict(fitted_on: NDArray[np.bool_], read: NDArray[np.bool_]) -> NDArray[np.float64]:
        if min(rows.right[fitted_on].sum(), (~rows.right[fitted_on]).sum()) < LEAST_OF_A_CLASS:
            raise ValueError("too few rows of a class")
        return log_odds(fitted_model(found.where(fitted_on)), found.values[read])

    statistics: dict[str, Quality] = {"AUC": auc, "accuracy": partial(_accuracy, 0.0)}
    return _curve(predict, _curve_rows(rows), statistics, None, draws=_DRAWS_OF_TREES, folds=_FOLDS_OF_TREES, seed=seed)


def curve_of_cascade(scored: ScoredCascade, half: Half | None, delta: float, seed: int) -> Curve:
    """Return the learning curve of the bands of `auto` for its default risk.

    Its statistics are the share of rows that the cascade decides without a judge, and the share of wrong verdicts among
    them. No judge is called for the curve. With `half`, only rows of this half of the questions count.
    """
    kept = np.array([half is None or half_of(question) == half for question in scored.cheap.questions], dtype=np.bool_)
    rows, cheap = scored.rows.where(kept), scored.cheap

    def predict(fitted_on: NDArray[np.bool_], read: NDArray[np.bool_]) -> NDArray[np.float64]:
        if not fitted_on.any():
            raise ValueError("no rows to fit on")
        found = fitted_risks(rows.where(fitted_on), delta)
        accepts_from = next(each.accepts_from for each in found if each.risk == _CURVE_RISK)
        told = rows.where(read)
        return np.where(told.confidence >= accepts_from, told.verdicts.astype(np.float64), np.nan)

    statistics: dict[str, Quality] = {"decided without a judge": _decided, "wrong among these": _wrong_of_decided}
    keys = [key for key, is_kept in zip(question_keys(cheap.questions), kept, strict=True) if is_kept]
    added = CurveRows(right=rows.right, keys=keys, added=cheap.added[kept])
    return _curve(predict, added, statistics, None, seed=seed)


def _decided(values: NDArray[np.float64], _: NDArray[np.bool_]) -> float:
    return float(np.mean(np.isfinite(values)))


def _wrong_of_decided(values: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    decided = np.isfinite(values)
    return float(np.mean((values[decided] >= RIGHT_FROM) != right[decided])) if decided.any() else math.nan


def _accuracy(cut: float, values: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    return float(np.mean((values >= cut) == right))


def _curve_rows(rows: LabelledScores) -> CurveRows:
    return CurveRows(right=rows.right, keys=question_keys(rows.questions), added=rows.added)


def _curve(  # noqa: PLR0913 - the fit, the rows, the statistics, and three numbers
    predict: Predict,
    rows: CurveRows,
    statistics: Mapping[str, Quality],
    present: NDArray[np.float64] | None,
    *,
    seed: int,
    draws: int = DRAWS,
    folds: int = FOLDS,
) -> Curve:
    """Return a table of statistics by number of labels, and a sentence on the gain of the last labels.

    `present` contains each row's value before the new fit, float64[rows], with NaN for a row without one.
    """
    if len({key for key, is_added in zip(rows.keys, rows.added, strict=True) if is_added}) < 2:
        return Curve()
    points = learning_curve(predict, rows, statistics, draws=draws, folds=folds, seed=seed)
    body = [
        [f"{point.labels}", f"{point.draws}", *(_written(point.values[name]) for name in statistics)]
        for point in points
    ]
    before: dict[str, float] = {}
    if present is not None and np.isfinite(present[rows.added]).all():
        before = {name: of(present[rows.added], rows.right[rows.added]) for name, of in statistics.items()}
        body.insert(0, ["present fit", "", *map(number, before.values())])
    title = f"Gain from {int(rows.added.sum())} added labels, on unseen questions: mean of the draws [10 %, 90 %]"
    tables = [Table(title, ["labels", "draws", *statistics], body)]
    return Curve(tables, _gain(points, next(iter(statistics))), points, before)


def _written(spread: Spread) -> str:
    return (
        number(spread.mean) if math.isnan(spread.mean) else f"{spread.mean:.3f} [{spread.low:.3f}, {spread.high:.3f}]"
    )


def _gain(points: Sequence[CurvePoint], name: str) -> list[str]:
    usable = [point for point in points if math.isfinite(point.values[name].mean)]
    if len(usable) < 2:
        return []
    earlier, last = usable[-2:]
    gain = last.values[name].mean - earlier.values[name].mean
    better = f"{name} {gain:+.3f} ({'lower' if name in _LOWER_IS_BETTER else 'higher'} is better)"
    return [f"the last {last.labels - earlier.labels} of {last.labels} labels changed {better}"]
