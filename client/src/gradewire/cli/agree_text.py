"""Agreement as a table and as JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from gradewire.agreement.point import STATISTICS
from gradewire.cli.terminal import number, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.agreement import AgreementReport, Comparison, Estimate, MetricAgreement
    from gradewire.agreement.point import Statistic
    from gradewire.cli.files import InputFile
    from gradewire.cli.judged_rows import JudgedColumns

_TITLES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "tau-b", "accuracy": "accuracy", "auc": "AUC"}


def print_metric(metric: MetricAgreement, line: str) -> None:
    """Prints the table of one metric on standard output."""
    rows = []
    for cell in metric.cells:
        name = " ".join(part for part in (cell.dataset, cell.model) if part) or "all rows"
        rows.append([name, str(cell.rows), str(cell.failed), *_estimates(cell.estimates)])
    if len(metric.cells) > 1:
        rows.append(["mean of cells", "", "", *_estimates(metric.headline)])
    columns = ["", "rows", "failed", *(_TITLES[statistic] for statistic in STATISTICS)]
    print_table(f"{metric.metric}  ({line})", columns, rows, stream=sys.stdout)


def _estimates(estimates: Mapping[Statistic, Estimate]) -> list[str]:
    return [shown(estimates[statistic]) for statistic in STATISTICS]


def shown(estimate: Estimate) -> str:
    """A value and its interval."""
    if math.isnan(estimate.low):
        return number(estimate.value)
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
