"""The result of `gradewire agree`, which its tables, JSON document and HTML page show."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gradewire_cli.problems import InputError
from gradewire_cli.results.interval_notes import draws_by_statistic
from gradewire_cli.scoring.labelled_run import described_run
from gradewire_stats import MissingScipyError
from gradewire_stats.bootstrap import LEAST_QUESTIONS
from gradewire_stats.calibration.quality import abstention

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradewire_cli.results.accuracy_tables import People
    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_cli.scoring.labelled_run import LabelledRun
    from gradewire_stats.agreement.report import AgreementReport, CellAgreement, MetricAgreement
    from gradewire_stats.agreement.rows import JudgedRows
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.annotators import AnnotatorAgreement, VerdictAgreement
    from gradewire_stats.calibration.quality import Abstention
    from gradewire_stats.model_accuracy import ModelAccuracyTable
    from gradewire_stats.model_ranks import SystemTable


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementResult:
    """A comparison of metrics with labels.

    Attributes:
        by_verdict: `rows`, but labelled with the evaluator's verdicts if an evaluator replaces annotators.
        annotators: Agreement among annotators, or None if no row has several annotators.
        verdicts: Agreement of each metric's verdicts with each annotator. Empty if no row has several annotators.
        systems: Mean scores and ranks of the models, by data set and over all rows. Empty if there is only one model.
        accuracies: The models' accuracy according to each metric and to the evaluator that replaces annotators. None if
            annotators labelled the rows, or if the evaluator returns no verdicts.
    """

    run: LabelledRun
    labelled: LabelledRows
    rows: JudgedRows
    by_verdict: JudgedRows
    report: AgreementReport
    annotators: AnnotatorAgreement | None
    verdicts: Mapping[str, Sequence[VerdictAgreement]]
    systems: Sequence[SystemTable]
    accuracies: ModelAccuracyTable | None

    @property
    def people(self) -> People:
        """The words that tables use for annotators, or for the evaluator that replaces annotators."""
        return self.labelled.people

    def abstention(self, label: str) -> Abstention | None:
        """Return a metric's accuracy with and without its uncertain verdicts, or None if no verdict is uncertain."""
        return abstention(self.rows.verdicts[label], self.labelled.certain(label), self.by_verdict.labels)


def compute_agreement(
    run: LabelledRun,
    labelled: LabelledRows,
    *,
    pairs: Callable[[Sequence[str]], Sequence[tuple[str, str]]],
    compared: Sequence[Statistic],
    with_groups: bool,
) -> AgreementResult:
    """Compute the statistics of the collected rows.

    `pairs` receives all metric labels and returns the pairs to compare. `compared` names the statistics to compare.

    Raises:
        InputError: No row can be compared, or scipy is not installed.
    """
    from gradewire_stats.agreement.report import agreement  # noqa: PLC0415 - scipy loads slowly
    from gradewire_stats.annotators import annotator_agreement, verdict_agreement  # noqa: PLC0415 - as above
    from gradewire_stats.model_accuracy import model_accuracy  # noqa: PLC0415 - as above
    from gradewire_stats.model_ranks import system_tables  # noqa: PLC0415 - as above

    rows, by_verdict = labelled.judged(with_groups=with_groups), labelled.judged_by_verdict(with_groups=with_groups)
    ratings = labelled.ratings()
    several = ratings.shape[1] > 1
    compare = pairs(list(rows.scores))
    try:
        beside = rows if labelled.against is None else rows.beside_evaluator(labelled.against.verdicts())
        report = agreement(beside, compare=compare, compare_statistics=compared, **run.draws)
        annotators = annotator_agreement(ratings, **run.draws) if several else None
        verdicts = {
            metric: verdict_agreement(judged, ratings, **run.draws)
            for metric, judged in (rows.verdicts if several else {}).items()
        }
        systems = system_tables(rows, **run.draws)
        accuracies = None
        if labelled.against is not None and labelled.against.has_verdicts:
            accuracies = model_accuracy(by_verdict, **run.draws)
    except MissingScipyError as error:
        raise InputError(str(error)) from error
    return AgreementResult(
        run=run,
        labelled=labelled,
        rows=rows,
        report=report,
        annotators=annotators,
        verdicts=verdicts,
        by_verdict=by_verdict,
        systems=systems,
        accuracies=accuracies,
    )


def agreement_document(result: AgreementResult) -> dict[str, Any]:
    """Return the result as a JSON document."""
    judged = described_run(result.run, result.labelled)
    draws = {"draws": draws_by_statistic(result.report), "least_questions": LEAST_QUESTIONS}
    return {
        **judged,
        "bootstrap": judged["bootstrap"] | draws,
        "annotators": result.annotators,
        "metrics": {metric.metric: _metric(metric, result) for metric in result.report.metrics},
        "comparisons": result.report.comparisons,
        "systems": result.systems,
        "wrong_verdicts": result.labelled.wrong.listed,
        "accuracies": None
        if result.accuracies is None
        else {"reference": result.accuracies.cells, "evaluators": result.accuracies.evaluators},
    }


def _metric(metric: MetricAgreement, result: AgreementResult) -> dict[str, Any]:
    tally = result.labelled.tallies[metric.metric]
    return {
        "line": tally.line,
        "statuses": dict(tally.statuses),
        "headline": metric.headline,
        "abstention": result.abstention(metric.metric),
        "annotators": result.verdicts.get(metric.metric, ()),
        "cells": [_flat(cell) for cell in metric.cells],
    }


def _flat(cell: CellAgreement) -> dict[str, Any]:
    named = {field.name: getattr(cell, field.name) for field in fields(cell)}
    estimates = named.pop("estimates")
    return {**named, **estimates}
