"""What a calibration is worth, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire.cli.agree_tables import FigureTable, differing, estimated
from gradewire.cli.agree_text import TITLES
from gradewire.cli.calibrate_fit import AFTER, BEFORE, STATISTICS
from gradewire.cli.terminal import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.cli.calibrate_fit import Split, ThresholdFit
    from gradewire.cli.judged_rows import JudgedColumns

# Intervals of a share that is read on fewer are wider than what a threshold gains.
FEW_ROWS = 100


def fit_table(fit: ThresholdFit) -> FigureTable:
    """Figures before and after, with their paired differences."""
    before, after = (metric.cells[-1] for metric in fit.report.metrics)
    differences = {found.statistic: found.all_rows for found in fit.report.comparisons}
    rows = [
        [
            TITLES[statistic],
            estimated(before.estimates[statistic]),
            estimated(after.estimates[statistic]),
            differing(differences[statistic]),
        ]
        for statistic in STATISTICS
    ]
    rows.insert(1, ["balanced accuracy", number(fit.balanced[BEFORE]), number(fit.balanced[AFTER]), ""])
    return FigureTable(
        f"Read on {after.rows} rows: {fit.read_on}", ["", BEFORE, AFTER, f"{AFTER} minus {BEFORE}"], rows
    )


def fit_lines(fit: ThresholdFit, before: Split, after: Split, weight: float | None) -> Iterator[str]:
    """What was fitted on what, a line each."""
    rows = after.fitted
    told = f"threshold {fit.threshold:g}" + ("" if weight is None else f", sentence_weight {weight:g}")
    count, right = len(rows.scores), int(rows.right.sum())
    yield f"{told}: fitted on {count} rows, {right} of them right, SHA-256 {rows.sha256[:12]}"
    yield f"before: {before.fitted.line}"
    if after.fitted.line != before.fitted.line:
        yield f"after: {after.fitted.line}"


def warning_lines(fit: ThresholdFit, after: Split, columns: JudgedColumns) -> Iterator[str]:
    """What to beware of, a sentence each."""
    count, fewer = len(after.fitted.scores), min(after.fitted.right.sum(), (~after.fitted.right).sum())
    if count < FEW_ROWS:
        yield f"warning: {count} rows are few to fit on: label {FEW_ROWS} or more"
    elif fewer < FEW_ROWS // 10:
        which = "right" if after.fitted.right.sum() == fewer else "wrong"
        yield f"warning: only {fewer} rows are {which}: label more"
    if after.fitted.failed:
        yield f"warning: {after.fitted.failed} rows have no score and were left out"
    yield from (f"warning: {sentence}" for sentence in columns.left_out())
    gain = {found.statistic: found.all_rows for found in fit.report.comparisons}["accuracy"]
    if gain.low <= 0 <= gain.high:
        yield "the interval of the gain in accuracy holds 0: these rows do not show that verdicts get better"
