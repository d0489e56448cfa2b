"""Fit thresholds and probabilities, and measure them on held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire_cli.calibrate.rows import VOTES
from gradewire_cli.problems import InputError
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_stats.agreement.report import AgreementReport, agreement
from gradewire_stats.agreement.rows import RIGHT_FROM, JudgedRows
from gradewire_stats.bootstrap import question_clusters, strata_of
from gradewire_stats.calibration import evaluate_fit
from gradewire_stats.calibration.fit_correctness import fit_correctness
from gradewire_stats.calibration.labelled_rows import InputKinds, checked, question_keys
from gradewire_stats.calibration.level import Level, LevelRows, check_level_rows, cross_fitted, fit_level, levelled_form
from gradewire_stats.calibration.quality import BINS, brier_score, calibration_error
from gradewire_stats.calibration.thresholds import (
    FOLDS,
    balanced_accuracy,
    fit_threshold,
    fit_weight,
    held_out_verdicts,
)
from gradewire_stats.comparison.groups import GroupedRows, compare_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_cli.calibrate.rows import LabelledScores
    from gradewire_cli.scoring.labelled_run import Draws
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.bootstrap import Difference
    from gradewire_stats.calibration.fit_correctness import CorrectnessFitResult
    from gradewire_stats.calibration.labelled_rows import FittedFeature, LabelledFeatures
    from gradewire_stats.calibration.thresholds import Objective, WeightObjective


BEFORE, AFTER = "before", "after"
STATISTICS: tuple[Statistic, ...] = ("accuracy", "f1", "precision", "recall", "auc", "pearson")


@dataclass(frozen=True, slots=True)
class Split:
    """Scores to fit on, and held-out scores to measure on. Without held-out scores (None), cross-validation is used."""

    fitted: LabelledScores
    held_out: LabelledScores | None

    @property
    def measured(self) -> LabelledScores:
        """The scores to measure on."""
        return self.fitted if self.held_out is None else self.held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The gain of a new fit over the fit that it would replace, on questions outside the new fit.

    Attributes:
        statistic: What was compared, in words.
        text: The difference with its interval.
        is_better: True if the rows prove that the new fit is better.
    """

    statistic: str
    text: str
    is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdFit:
    """A fitted threshold, with statistics before and after the fit.

    Attributes:
        report: Statistics of `BEFORE` and `AFTER` on the measured rows.
        balanced: Balanced accuracy of `BEFORE` and `AFTER`.
    """

    threshold: float
    report: AgreementReport
    balanced: Mapping[str, float]
    measured_on: str

    def gain(self, objective: Objective) -> Gain | None:
        """Return the gain in the objective, or None if there were no verdicts before. Needs an interval above 0.

        A gain in balanced accuracy has no interval, so any gain is enough.
        """
        if math.isnan(self.balanced[BEFORE]):
            return None
        if objective == "balanced_accuracy":
            apart = self.balanced[AFTER] - self.balanced[BEFORE]
            return Gain(statistic="balanced accuracy", text=f"{apart:+.4f}", is_better=apart > 0)
        found = {each.statistic: each.all_rows for each in self.report.comparisons}[objective]
        return Gain(statistic=objective, text=difference_text(found), is_better=found.low > 0)

    @property
    def values(self) -> dict[str, float]:
        """Statistics over all measured rows by name, without undefined statistics."""
        found = {
            f"{statistic}_{metric.metric}": metric.cells[-1].estimates[statistic].value
            for metric in self.report.metrics
            for statistic in STATISTICS
        }
        found |= {f"balanced_accuracy_{name}": value for name, value in self.balanced.items()}
        found["rows_read"] = float(self.report.metrics[0].cells[-1].rows)
        return {name: round(value, 6) for name, value in found.items() if np.isfinite(value)}


def fitted_weight(scores: LabelledScores, objective: WeightObjective) -> float:
    """Return the weight of SMILE's sentence term; raise InputError if the rows do not determine the weight."""
    try:
        return fit_weight(scores.values("sentence"), scores.values("lexical"), scores.labels, objective)
    except KeyError as error:
        raise InputError(f"the scores have no field {error}. Only smile has a sentence_weight") from error
    except ValueError as error:
        raise InputError(str(error)) from error


def fitted_threshold(before: Split, after: Split, objective: Objective, draws: Draws) -> ThresholdFit:
    """Fit a threshold on the `after` scores, and compare its verdicts with the `before` verdicts.

    Raises:
        InputError: All answers are right, all are wrong, or the two runs scored different rows.
    """
    own, shown, standing = after.fitted, after.measured, before.measured
    if shown.sha256 != standing.sha256:
        raise InputError("the runs with the old and the new weight failed on different rows. Run the command again")
    try:
        threshold = fit_threshold(own.scores, own.right, objective)
    except ValueError as error:
        raise InputError(f"{error} (labels of at least {RIGHT_FROM} count as right)") from error
    if after.held_out is None:
        verdicts = held_out_verdicts(own.scores, own.right, own.questions, objective)
        measured_on = f"the same rows, each with a threshold fitted on other questions ({FOLDS} folds)"
    else:
        verdicts = (shown.scores >= threshold).astype(np.float64)
        measured_on = "the other half of the questions"
    both = {BEFORE: standing.verdicts, AFTER: verdicts}
    scores = {BEFORE: standing.scores, AFTER: shown.scores}
    report = compared(shown, scores, both, draws)
    balanced = {name: balanced_accuracy(judged, shown.right) for name, judged in both.items()}
    return ThresholdFit(threshold=threshold, report=report, balanced=balanced, measured_on=measured_on)


def compared(
    rows: LabelledScores,
    scores: Mapping[str, NDArray[np.float64]],
    verdicts: Mapping[str, NDArray[np.float64]],
    draws: Draws,
    statistics: Sequence[Statistic] = STATISTICS,
) -> AgreementReport:
    """Return statistics before and after the fit, with paired differences.

    `scores` and `verdicts` are float64[rows] by `BEFORE` and `AFTER`. Verdicts are 1 (right), 0 (wrong) or NaN (no
    verdict).
    """
    judged = JudgedRows(
        scores=scores,
        verdicts=verdicts,
        labels=rows.labels,
        datasets=rows.datasets,
        models=[""] * len(rows.labels),
        questions=rows.question_keys,
    )
    compare = [(AFTER, BEFORE)]
    return agreement(judged, compare=compare, compare_statistics=statistics, statistics=statistics, **draws)


# SMILE's default threshold: answers with at least this score count as right.
_SMILE_CUT = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityFit:
    """A fit of the metric `correctness` with its statistics.

    Attributes:
        result: The fit to store with a model, its held-out statistics, and warnings.
        report: Statistics of the stored fit, or of SMILE without one (`BEFORE`), and of the new fit (`AFTER`), on
            questions outside the new fit.
        other_values: Calibration error and Brier score, before (NaN for SMILE) and after, by name.
        brier: The new fit's Brier score minus the stored fit's, or None without a stored fit.
    """

    result: CorrectnessFitResult
    report: AgreementReport
    measured_on: str
    other_values: Mapping[str, tuple[float, float]]
    brier: Difference | None

    @property
    def gain(self) -> Gain | None:
        """The gain over the stored fit, or None without one. A lower Brier score is better."""
        if self.brier is None:
            return None
        return Gain(statistic="Brier score", text=difference_text(self.brier), is_better=self.brier.high < 0)


def fitted_probability(  # noqa: PLR0913, PLR0917 - the rows, the features, the stored fit and the draws
    split: Split,
    features: Sequence[FittedFeature],
    shape: Sequence[str],
    provenance: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
    draws: Draws,
) -> ProbabilityFit:
    """Fit a probability to the rows' features, and compare it with the stored fit, or with SMILE without one.

    With --fit-half, the rows to measure on are the other half of the questions. Otherwise each row is read by a fit on
    other questions. `features` are in the metric's order, and `shape` names the features that determine a row's input
    kind. The fit contains `provenance`.

    Raises:
        InputError: The scores lack features, the rows do not allow a fit, or scikit-learn is not installed.
    """
    rows, names = split.fitted, [feature.name for feature in features]
    try:
        labelled = labelled_features(rows, features, shape)
        found = fit_correctness(labelled, provenance=provenance)
    except ImportError as error:
        missing = f"{error.name}, which is not installed" if error.name else str(error)
        raise InputError(f"fitting a probability needs {missing}. Run: pip install 'gradewire[calibrate]'") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    measured, after = rows, found.held_out
    measured_on = f"the same rows, each by a fit on other questions ({FOLDS} folds)"
    if split.held_out is not None:
        measured, measured_on = split.held_out, "the other half of the questions"
        after = _probabilities(found.fit, measured, names, shape)
    before = measured.values("smile") if stored is None else _probabilities(stored, measured, names, shape)
    cut = _SMILE_CUT if stored is None else RIGHT_FROM
    found_scores = {BEFORE: before, AFTER: after}
    verdicts = {BEFORE: (before >= cut).astype(np.float64), AFTER: (after >= RIGHT_FROM).astype(np.float64)}
    right = measured.right
    return ProbabilityFit(
        result=found,
        report=compared(measured, found_scores, verdicts, draws),
        measured_on=measured_on,
        other_values={
            name: (math.nan if stored is None else of(before, right), of(after, right))
            for name, of in (("ECE", calibration_error), ("Brier", brier_score))
        },
        brier=None if stored is None else _brier_difference(measured, before, after, draws),
    )


def labelled_features(
    rows: LabelledScores, features: Sequence[FittedFeature], shape: Sequence[str]
) -> LabelledFeatures:
    """Return the rows' features for a fit of a probability; see `fitted_probability`.

    Raises:
        InputError: The scores lack features.
        ValueError: The rows do not allow a fit.
    """
    names = [feature.name for feature in features]
    values = _values(rows.results, (*names, *shape))
    return checked(
        features,
        values[:, : len(names)],
        rows.labels,
        rows.questions,
        sources=rows.sources,
        shapes=InputKinds(shape, values[:, len(names) :]),
    )


def _probabilities(
    fit: Mapping[str, Any], rows: LabelledScores, known: Sequence[str], shape: Sequence[str]
) -> NDArray[np.float64]:
    columns = (*known, *shape)
    values = _values(rows.results, columns)
    used = values[:, [columns.index(feature["name"]) for feature in fit["features"]]]
    distance = fit.get("distance")
    named = () if distance is None else distance["shape"]
    return evaluate_fit.probabilities(fit, used, values[:, [columns.index(name) for name in named]])


def _brier_difference(
    rows: LabelledScores, before: NDArray[np.float64], after: NDArray[np.float64], draws: Draws
) -> Difference:
    errors = [(found - rows.right) ** 2 for found in (before, after)]
    questions = question_clusters(rows.datasets, rows.question_keys)
    grouped = GroupedRows(
        {"Brier": np.concatenate(errors)},
        np.repeat(np.arange(2), len(before)).astype(np.intp),
        [(BEFORE,), (AFTER,)],
        np.tile(questions, 2),
        strata_of(rows.datasets, questions),
    )
    paired = compare_groups(grouped, by_row=True, **draws)["Brier"][1].paired
    assert paired is not None  # noqa: S101 - both groups have all rows
    return paired.mean


def difference_text(found: Difference) -> str:
    """Return a difference and its interval, e.g. "+0.0123 [+0.0010, +0.0240]"."""
    bounds = "too few questions for an interval" if math.isnan(found.low) else f"{found.low:+.4f}, {found.high:+.4f}"
    return f"{found.value:+.4f} [{bounds}]"


ROWS_PER_BIN = 10
"""Minimum number of rows in a bin of the calibration error, because few rows would make the error too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFit:
    """A level of a stored fit of the metric `correctness`, with statistics before and after.

    Attributes:
        form: The levelled fit to store with a model.
        report: Statistics of `BEFORE` and `AFTER` on the measured rows.
        other_values: Further statistics, before and after, by name.
        brier: The Brier score after minus before.
        figures: All statistics to store, by name.
    """

    level: Level
    form: dict[str, Any]
    report: AgreementReport
    measured_on: str
    other_values: Mapping[str, tuple[float, float]]
    brier: Difference
    figures: Mapping[str, float]

    @property
    def gain(self) -> Gain:
        """The gain over the fit without the level. A lower Brier score is enough, because few rows prove little."""
        before, after = self.other_values["Brier"]
        return Gain(statistic="Brier score", text=difference_text(self.brier), is_better=after < before)


def fitted_level(
    split: Split, form: Mapping[str, Any], known: Sequence[str], shape: Sequence[str], draws: Draws
) -> LevelFit:
    """Fit a level to the rows' features, and measure it: with --fit-half on the other half, else by cross-validation.

    `form` is the stored fit. `known` are the metric's features, and `shape` names the numbers of a row's input kind.

    Raises:
        InputError: The scores lack features, the rows are too few or of one class, or SciPy is not installed.
    """
    rows = level_rows(split.fitted, form, known, shape)
    try:
        check_level_rows(rows)
        level, held_out = fit_level(rows), cross_fitted(rows)
    except ImportError as error:
        raise InputError(f"fitting a level needs SciPy. Run: pip install 'gradewire[calibrate]' ({error})") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    before, after = rows.probabilities(), held_out
    measured_on = "the same rows, each at a level fitted on other questions"
    if split.held_out is not None:
        others = level_rows(split.held_out, form, known, shape)
        before, after = others.probabilities(), others.probabilities(level)
        measured_on = "the other half of the questions"
    found = {BEFORE: before, AFTER: after}
    verdicts = {name: (each >= RIGHT_FROM).astype(np.float64) for name, each in found.items()}
    right = split.measured.right
    bins = max(1, min(BINS, len(right) // ROWS_PER_BIN))
    other_values = {
        f"ECE, {bins} bins": (
            calibration_error(before, right, bins=bins),
            calibration_error(after, right, bins=bins),
        ),
        "Brier": (brier_score(before, right), brier_score(after, right)),
        "mean probability": (float(before.mean()), float(after.mean())),
        "share of right rows": (float(right.mean()), float(right.mean())),
    }
    # A level keeps the order of the rows, so statistics of the order are the same before and after.
    report = compared(split.measured, found, verdicts, draws, ("accuracy", "f1", "precision", "recall"))
    accuracies = tuple(metric.cells[-1].estimates["accuracy"].value for metric in report.metrics)
    named = {"accuracy": accuracies, "ece": other_values[f"ECE, {bins} bins"], "brier": other_values["Brier"]}
    return LevelFit(
        level=level,
        form=levelled_form(form, level, rows, held_out),
        report=report,
        measured_on=measured_on,
        other_values=other_values,
        brier=_brier_difference(split.measured, before, after, draws),
        figures={
            f"{name}_{when}": round(value, 6)
            for name, values in named.items()
            for when, value in zip((BEFORE, AFTER), values, strict=True)
        },
    )


def level_rows(rows: LabelledScores, form: Mapping[str, Any], known: Sequence[str], shape: Sequence[str]) -> LevelRows:
    """Return the rows for a fit of a level; see `fitted_level`. Raise InputError if the scores lack features."""
    columns = (*known, *shape)
    values = _values(rows.results, columns)
    used = values[:, [columns.index(feature["name"]) for feature in form["features"]]]
    distance = form.get("distance")
    shapes = None if distance is None else values[:, [columns.index(name) for name in distance["shape"]]]
    return LevelRows.of_form(form, used, shapes, rows.right, question_keys(rows.questions))


def _values(results: Iterable[Mapping[str, Any]], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the features' values as float64[rows, features], with NaN for a missing feature."""
    rows = []
    for result in results:
        if not isinstance(found := result.get("features"), dict):
            raise InputError("the scores have no features. Score with --metrics 'correctness?features_only=true'")
        if unknown := sorted(set(found) - set(names)):
            raise InputError(f"{unknown[0]} is not a feature of this version of correctness. Score the rows again")
        if VOTES in names and VOTES not in found:  # each row has this feature, so it is no missing value
            asked = f"correctness?features_only=true&fit={VOTES}&grader={NO_GRADER}"
            raise InputError(f"the scores have no feature {VOTES}. Score with --metrics '{asked}'")
        rows.append([found.get(name, math.nan) for name in names])
    return np.array(rows, np.float64)
