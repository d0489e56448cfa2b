"""Fits a threshold on labelled scores, and measures it on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement.fitting.thresholds import (
    FOLDS,
    balanced_accuracy,
    fit_threshold,
    fit_weight,
    held_out_verdicts,
)
from gradewire.agreement.point_estimates import RIGHT_FROM
from gradewire.agreement.rows import JudgedRows
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gradewire.agreement import AgreementReport
    from gradewire.agreement.fitting.thresholds import Objective, WeightObjective
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.cli.calibrate.rows import LabelledScores

BEFORE, AFTER = "before", "after"
STATISTICS: tuple[Statistic, ...] = ("accuracy", "f1", "precision", "recall", "auc", "pearson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Scores of one run of the metric.

    Attributes:
        fitted: Rows that are fitted on.
        held_out: Rows that the fit is measured on; None: the same ones, by folds.
    """

    fitted: LabelledScores
    held_out: LabelledScores | None

    @property
    def shown(self) -> LabelledScores:
        """The rows that the figures are computed on."""
        return self.fitted if self.held_out is None else self.held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdFit:
    """A fitted threshold, and the figures before and after it.

    Attributes:
        threshold: Score from which an answer counts as right.
        report: Of `BEFORE` and `AFTER` on the rows that it is measured on.
        balanced: Balanced accuracy of both.
        measured_on: Which rows these are, in words.
    """

    threshold: float
    report: AgreementReport
    balanced: Mapping[str, float]
    measured_on: str

    @property
    def figures(self) -> dict[str, float]:
        """Point values over all rows that it is measured on, by name; those that are not defined are left out."""
        found = {
            f"{statistic}_{metric.metric}": metric.cells[-1].estimates[statistic].value
            for metric in self.report.metrics
            for statistic in STATISTICS
        }
        found |= {f"balanced_accuracy_{name}": value for name, value in self.balanced.items()}
        found["rows_read"] = float(self.report.metrics[0].cells[-1].rows)
        return {name: round(value, 6) for name, value in found.items() if np.isfinite(value)}


def fitted_weight(scores: LabelledScores, objective: WeightObjective) -> float:
    """SMILE's weight of the sentence term; raises InputError where the rows do not determine it.

    Scores are made of the terms of the reference that gave the score, which another weight might pick otherwise.
    """
    try:
        return fit_weight(scores.values("sentence"), scores.values("lexical"), scores.labels, objective)
    except KeyError as error:
        raise InputError(f"the scores have no part {error}: sentence_weight is a parameter of smile") from error
    except ValueError as error:
        raise InputError(str(error)) from error


def fitted_threshold(before: Split, after: Split, objective: Objective, *, resamples: int, seed: int) -> ThresholdFit:
    """Fits on the scores `after` and compares with the verdicts `before`.

    Args:
        before: As the metric stands; the same rows.
        after: The scores to be fitted: the same ones, or those of another weight.
        objective: What the threshold maximises.
        resamples: Draws of the bootstrap behind the intervals.
        seed: Of these draws.

    Raises:
        InputError: All answers are right or all are wrong, or the runs have scores of different rows.
    """
    own, shown, standing = after.fitted, after.shown, before.shown
    if shown.sha256 != standing.sha256:
        raise InputError("other rows failed in the second run than in the first: try again")
    try:
        threshold = fit_threshold(own.scores, own.right, objective)
    except ValueError as error:
        raise InputError(f"{error} (a label of {RIGHT_FROM} and more is right)") from error
    if after.held_out is None:
        verdicts = held_out_verdicts(own.scores, own.right, own.questions, objective)
        measured_on = f"the same rows, each by a threshold fitted on other questions ({FOLDS} folds)"
    else:
        verdicts = (shown.scores >= threshold).astype(np.float64)
        measured_on = "the other half of the questions"
    both = {BEFORE: standing.verdicts, AFTER: verdicts}
    scores = {BEFORE: standing.scores, AFTER: shown.scores}
    report = compared(shown, scores, both, resamples=resamples, seed=seed)
    balanced = {name: balanced_accuracy(judged, shown.right) for name, judged in both.items()}
    return ThresholdFit(threshold=threshold, report=report, balanced=balanced, measured_on=measured_on)


def compared(
    rows: LabelledScores,
    scores: Mapping[str, NDArray[np.float64]],
    verdicts: Mapping[str, NDArray[np.float64]],
    *,
    resamples: int,
    seed: int,
) -> AgreementReport:
    """`STATISTICS` of `BEFORE` and `AFTER` on these rows, and their paired differences.

    Scores and verdicts are float64[rows]; a verdict is 1 (right), 0 (wrong) or NaN (none).
    """
    from gradewire.agreement import agreement  # noqa: PLC0415 - loads scipy, after the scores

    judged = JudgedRows(
        scores=scores,
        verdicts=verdicts,
        labels=rows.labels,
        datasets=rows.datasets,
        models=[""] * len(rows.labels),
        questions=rows.question_keys,
    )
    return agreement(
        judged,
        compare=[(AFTER, BEFORE)],
        compare_statistics=STATISTICS,
        statistics=STATISTICS,
        resamples=resamples,
        seed=seed,
    )
