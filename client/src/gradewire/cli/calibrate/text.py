"""Tables and sentences about a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradewire.agreement.fitting.travel import COVERAGES
from gradewire.cli.calibrate.fit import AFTER, BEFORE, STATISTICS
from gradewire.cli.output.names import TITLES
from gradewire.tables import Table, Value, differing, estimated, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.agreement import AgreementReport
    from gradewire.agreement.fitting.travel import TravelFigures
    from gradewire.cli.calibrate.fit import Split, ThresholdFit
    from gradewire.cli.calibrate.probability import ProbabilityFit
    from gradewire.cli.run.labelled_rows import LabelledRows

# Intervals of a share over fewer rows are wider than what a threshold gains.
FEW_ROWS = 100


def fit_table(fit: ThresholdFit) -> Table:
    """Figures before and after, with their paired differences."""
    table = _table(fit.report, fit.measured_on, (BEFORE, AFTER))
    balanced = ["balanced accuracy", number(fit.balanced[BEFORE]), number(fit.balanced[AFTER]), ""]
    return replace(table, rows=[table.rows[0], balanced, *table.rows[1:]])


def probability_tables(fit: ProbabilityFit) -> Iterator[Table]:
    """Figures of a probability: on its own rows, held out, and on the other half beside SMILE's."""
    yield Table(
        "Held out by question",
        ["", "probability"],
        [[name, number(value)] for name, value in fit.result.figures.items()],
    )
    if fit.result.travel:
        yield Table(
            "By fits on the other sources",
            ["source left out", "rows", "Pearson", "AUC", "accuracy", "ECE"]
            + [f"accuracy of {share:.0%}" for share in COVERAGES]
            + ["UNCERTAIN", "accuracy of the others", "wrong ones UNCERTAIN"],
            [[each.source, str(each.rows), *map(number, _travel_numbers(each))] for each in fit.result.travel],
        )
    if fit.report is not None:
        table = _table(fit.report, "the other half of the questions", ("smile", "probability"))
        rest = [[name, "", number(value), ""] for name, value in fit.further.items()]
        yield replace(table, rows=[*table.rows, *rest])


def _travel_numbers(each: TravelFigures) -> tuple[float, ...]:
    certain = (each.uncertain, each.accuracy_certain, each.held)
    return (each.pearson, each.auc, each.accuracy, each.ece, *each.at_coverage, *certain)


def _table(report: AgreementReport, measured_on: str, names: tuple[str, str]) -> Table:
    before, after = (metric.cells[-1] for metric in report.metrics)
    differences = {found.statistic: found.all_rows for found in report.comparisons}
    rows: list[list[Value | str]] = [
        [
            TITLES[statistic],
            estimated(before.estimates[statistic]),
            estimated(after.estimates[statistic]),
            differing(differences[statistic]),
        ]
        for statistic in STATISTICS
    ]
    return Table(f"Read on {after.rows} rows: {measured_on}", ["", *names, f"{names[1]} minus {names[0]}"], rows)


def fit_lines(told: str, before: Split, after: Split) -> Iterator[str]:
    """What was fitted on what, a line each; `before` are scores of the metric as it stands, `after` were fitted on."""
    rows = after.fitted
    count, right = len(rows.scores), int(rows.right.sum())
    yield f"{told}: fitted on {count} rows, {right} of them right, SHA-256 {rows.sha256[:12]}"
    yield f"before: {before.fitted.line}"
    if after.fitted.line != before.fitted.line:
        yield f"after: {after.fitted.line}"


def gain_lines(fit: ThresholdFit) -> Iterator[str]:
    """A sentence where the rows do not show that verdicts get better."""
    gain = {found.statistic: found.all_rows for found in fit.report.comparisons}["accuracy"]
    if gain.low <= 0 <= gain.high:
        yield "the interval of the gain in accuracy holds 0: these rows do not show that verdicts get better"


def warning_lines(after: Split, labelled: LabelledRows) -> Iterator[str]:
    """Warnings about the rows, a sentence each."""
    count, fewer = len(after.fitted.scores), min(after.fitted.right.sum(), (~after.fitted.right).sum())
    if count < FEW_ROWS:
        yield f"warning: {count} rows are few to fit on: label {FEW_ROWS} or more"
    elif fewer < FEW_ROWS // 10:
        which = "right" if after.fitted.right.sum() == fewer else "wrong"
        yield f"warning: only {fewer} rows are {which}: label more"
    if after.fitted.failed:
        yield f"warning: {after.fitted.failed} rows have no score and were left out"
    yield from (f"warning: {sentence}" for sentence in labelled.left_out())
