"""Agreement as a table and as JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from gradewire.agreement.point import STATISTICS
from gradewire.cli.terminal import columns_of, number, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.agreement import AgreementReport, Comparison, Estimate, MetricAgreement
    from gradewire.agreement.point import Statistic
    from gradewire.cli.files import InputFile
    from gradewire.cli.judged_rows import JudgedColumns

# Value and interval of five statistics side by side.
WIDE_COLUMNS = 140
_TITLES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "tau-b", "accuracy": "accuracy", "auc": "AUC"}


def print_metric(metric: MetricAgreement, line: str) -> None:
    """Prints the table of one metric on standard output."""
    narrow = columns_of(sys.stdout) < WIDE_COLUMNS
    failed = any(cell.failed for cell in metric.cells)
    rows = []
    for cell in metric.cells:
        name = " ".join(part for part in (cell.dataset, cell.model) if part) or "all rows"
        counts = [str(cell.rows), str(cell.failed)] if failed else [str(cell.rows)]
        rows.append([name, *counts, *_estimates(cell.estimates, narrow=narrow)])
    if len(metric.cells) > 1:
        rows.append(["cells' mean", *([""] * (1 + failed)), *_estimates(metric.headline, narrow=narrow)])
    counted = ["rows", "failed"] if failed else ["rows"]
    columns = ["", *counted, *(_TITLES[statistic] for statistic in STATISTICS)]
    print_table(f"{metric.metric}: {line}", columns, rows, stream=sys.stdout)
    if left_out := _undefined(metric):
        click.echo(f"not defined, and not in the cells' mean: {left_out}\n")


def _undefined(metric: MetricAgreement) -> str:
    """In how many cells each statistic is not defined, because scores or labels are all alike there."""
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    counts = {statistic: sum(math.isnan(cell.estimates[statistic].value) for cell in cells) for statistic in STATISTICS}
    # A metric without verdicts has no accuracy anywhere: nothing is left out of a mean.
    return ", ".join(
        f"{_TITLES[statistic]} in {count} of {len(cells)} cells"
        for statistic, count in counts.items()
        if 0 < count < len(cells)
    )


def _estimates(estimates: Mapping[Statistic, Estimate], *, narrow: bool) -> list[str]:
    return [shown(estimates[statistic], narrow=narrow) for statistic in STATISTICS]


def shown(estimate: Estimate, *, narrow: bool) -> str:
    """A value and its interval, which stands on a line of its own where there is little room."""
    if math.isnan(estimate.low):
        return number(estimate.value)
    if narrow:
        low, high = (number(bound).replace("0.", ".", 1) for bound in (estimate.low, estimate.high))
        return f"{number(estimate.value)}\n{low} {high}"
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def comparison_lines(comparison: Comparison) -> list[str]:
    """The difference of two metrics in words."""
    head = f"{comparison.metric} minus {comparison.baseline}, Pearson, {comparison.rows} rows"
    return [
        f"{head}, mean of cells: {_difference(comparison.mean_of_cells)}",
        f"{head}, all at once:   {_difference(comparison.all_rows)}",
    ]


def _difference(estimate: Estimate) -> str:
    # A difference of two correlations is small: one digit more.
    bounds = f" [{estimate.low:+.4f}, {estimate.high:+.4f}]" if not math.isnan(estimate.low) else ""
    return f"{estimate.value:+.4f}{bounds}" if not math.isnan(estimate.value) else "-"


def to_json(report: AgreementReport, columns: JudgedColumns, *, source: InputFile, resamples: int, seed: int) -> str:
    """All figures; what is not defined is null."""
    document = {
        "file": source.path,
        "where": {column: sorted(values) for column, values in source.options.where.items()},
        "unlabelled_rows": columns.unlabelled,
        "unreadable_labels": columns.unreadable,
        "bootstrap": {"resamples": resamples, "seed": seed, "confidence": 0.95, "unit": "question"},
        "metrics": {metric.metric: _metric(metric, columns) for metric in report.metrics},
        "comparisons": [
            {
                "metric": comparison.metric,
                "baseline": comparison.baseline,
                "rows": comparison.rows,
                "pearson_mean_of_cells": _estimate(comparison.mean_of_cells),
                "pearson_all_rows": _estimate(comparison.all_rows),
            }
            for comparison in report.comparisons
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _metric(metric: MetricAgreement, columns: JudgedColumns) -> dict[str, Any]:
    tally = columns.tallies[metric.metric]
    return {
        "line": tally.line,
        "statuses": dict(tally.statuses),
        "headline": {statistic: _estimate(estimate) for statistic, estimate in metric.headline.items()},
        "cells": [
            {
                "level": cell.level,
                "dataset": cell.dataset,
                "model": cell.model,
                "rows": cell.rows,
                "failed": cell.failed,
                **{statistic: _estimate(estimate) for statistic, estimate in cell.estimates.items()},
            }
            for cell in metric.cells
        ],
    }


def _estimate(estimate: Estimate) -> dict[str, float | int | None]:
    def defined(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "value": defined(estimate.value),
        "low": defined(estimate.low),
        "high": defined(estimate.high),
        "resamples": estimate.resamples,
    }
