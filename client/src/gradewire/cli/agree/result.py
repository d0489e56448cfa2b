"""The result of a run of `agree`, computed once for tables, JSON and page."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gradewire.agreement.curves.abstention import abstention
from gradewire.agreement.estimates import LEAST_QUESTIONS
from gradewire.cli.output.interval_notes import draws_by_statistic
from gradewire.cli.problems import InputError
from gradewire.cli.run.labelled_run import described_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradewire.agreement import AgreementReport, CellAgreement, JudgedRows, MetricAgreement
    from gradewire.agreement.annotators.labels import AnnotatorAgreement
    from gradewire.agreement.curves.abstention import Abstention
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.cli.run.labelled_rows import LabelledRows
    from gradewire.cli.run.labelled_run import LabelledRun


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementResult:
    """What was compared, and the figures.

    Attributes:
        run: The options.
        labelled: Rows as they came, with what was left out.
        rows: The same as arrays.
        report: Agreement of the metrics with the labels.
        annotators: Agreement of the annotators with one another; None where no row has several.
    """

    run: LabelledRun
    labelled: LabelledRows
    rows: JudgedRows
    report: AgreementReport
    annotators: AnnotatorAgreement | None

    def abstention(self, label: str) -> Abstention | None:
        """Accuracy of a metric's verdicts with and without the uncertain ones; None where none is uncertain."""
        return abstention(self.rows.verdicts[label], self.labelled.certain(label), self.rows.labels)


def compute_agreement(
    run: LabelledRun,
    labelled: LabelledRows,
    *,
    pairs: Callable[[Sequence[str]], Sequence[tuple[str, str]]],
    compared: Sequence[Statistic],
    with_groups: bool,
) -> AgreementResult:
    """Computes the figures of what a run collected.

    `pairs` gives, for the labels of the metrics, those that are compared with one another by the statistics `compared`.

    Raises:
        InputError: There is nothing to judge, or scipy is not installed.
    """
    from gradewire.agreement import MissingScipyError, agreement  # noqa: PLC0415 - scipy takes a second to load
    from gradewire.agreement.annotators.labels import annotator_agreement  # noqa: PLC0415 - as above

    rows = labelled.judged(with_groups=with_groups)
    ratings = labelled.ratings()
    resamples, seed = run.resamples, run.seed
    compare = pairs(list(rows.scores))
    try:
        report = agreement(rows, compare=compare, compare_statistics=compared, resamples=resamples, seed=seed)
        annotators = annotator_agreement(ratings, resamples=resamples, seed=seed) if len(ratings) else None
    except MissingScipyError as error:
        raise InputError(str(error)) from error
    return AgreementResult(run=run, labelled=labelled, rows=rows, report=report, annotators=annotators)


def agreement_document(found: AgreementResult) -> dict[str, Any]:
    """Everything that was computed, as `write_json` takes it."""
    judged = described_run(found.run, found.labelled)
    draws = {"draws": draws_by_statistic(found.report), "least_questions": LEAST_QUESTIONS}
    return {
        **judged,
        "bootstrap": judged["bootstrap"] | draws,
        "annotators": found.annotators,
        "metrics": {metric.metric: _metric(metric, found) for metric in found.report.metrics},
        "comparisons": found.report.comparisons,
    }


def _metric(metric: MetricAgreement, found: AgreementResult) -> dict[str, Any]:
    tally = found.labelled.tallies[metric.metric]
    return {
        "line": tally.line,
        "statuses": dict(tally.statuses),
        "headline": metric.headline,
        "abstention": found.abstention(metric.metric),
        "cells": [_flat(cell) for cell in metric.cells],
    }


def _flat(cell: CellAgreement) -> dict[str, Any]:
    """The cell with its figures beside the other fields."""
    named = {field.name: getattr(cell, field.name) for field in fields(cell)}
    estimates = named.pop("estimates")
    return {**named, **estimates}
