"""The tables of the page: overview, cells, paired differences, failed rows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradewire.report.figures import MINUS, UNDEFINED, Figure, count, estimated, p_value
from gradewire.report.texts import normal_form, shown, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.agreement import AgreementReport, Estimate
    from gradewire.agreement.point import Statistic
    from gradewire.report.input import ReportInput
    from gradewire.report.texts import ShownText

STATISTICS: dict[Statistic, tuple[str, str]] = {
    "pearson": ("Pearson", "linear correlation of score and label, at most 1"),
    "spearman": ("Spearman", "correlation of ranks, at most 1"),
    "kendall": (
        "Kendall τ-b",
        "pairs of rows in the same order less those in the opposite one, corrected for ties",
    ),
    "auc": ("ROC-AUC", "chance that a right answer scores above a wrong one, ties half; 0.5 is guessing"),
    "pairwise": (
        "Pairwise",
        "share of pairs of answers to one question with different labels that are ordered rightly",
    ),
    "accuracy": ("Accuracy", "share of rows on which the metric's verdict is the label"),
    "f1": ("F1", "harmonic mean of precision and recall of the verdict right"),
    "macro_f1": ("Macro-F1", "mean of the F1 of right and of wrong"),
    "precision": ("Precision", "share of rows judged right that are right"),
    "recall": ("Recall", "share of right rows that are judged right"),
    "positive_rate": ("Positive rate", "share of rows judged right"),
    "deviation": ("Deviation", "mean verdict less mean label: above 0 the metric flatters"),
}
CELL_KINDS = {"dataset": "Data set", "model": "Model", "group": "Group"}
_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Column:
    """Head of a column; `title` explains it, `numeric` columns sort by number."""

    name: str
    title: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table; `filters` are what its selection boxes go by."""

    cells: Sequence[Figure]
    filters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its first `heads` columns name the line."""

    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    heads: int = 1


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed rows of one metric and status, with a few examples (id, message, prediction)."""

    metric: str
    status: str
    rows: int
    examples: Sequence[tuple[str, str, ShownText]]


def name(text: str) -> Figure:
    """A cell of words."""
    return Figure(visible(text) or "(none)", order=text.casefold())


def overview(agreement: AgreementReport) -> Table:
    """One line per metric: mean of its cells, for the statistics that are defined within a cell."""
    statistics = [
        statistic
        for statistic in defined_statistics(agreement)
        if any(
            estimated(metric.headline[statistic]).order for metric in agreement.metrics if statistic in metric.headline
        )
    ]
    lines = [
        Line(
            [
                name(metric.metric),
                count(metric.cells[-1].rows),
                count(metric.cells[-1].failed),
                *(_estimate(metric.headline, statistic) for statistic in statistics),
            ]
        )
        for metric in agreement.metrics
    ]
    columns = [Column("Metric", numeric=False), Column("Scored"), Column("Failed"), *map(_column, statistics)]
    return Table("Agreement of each metric with the labels: mean of the cells, 95 % interval below", columns, lines)


def cells(agreement: AgreementReport) -> Table:
    """One line per metric and cell; a cell is named by what its rows have in common."""
    statistics = defined_statistics(agreement)
    kinds = [
        kind for kind in CELL_KINDS if any(getattr(cell, kind) for metric in agreement.metrics for cell in metric.cells)
    ]
    lines = []
    for metric in agreement.metrics:
        for cell in metric.cells:
            named = {kind: getattr(cell, kind) for kind in kinds}
            lines.append(
                Line(
                    [
                        name(metric.metric),
                        *(name(value) if value else Figure("all") for value in named.values()),
                        count(cell.rows),
                        count(cell.failed),
                        *(_estimate(cell.estimates, statistic) for statistic in statistics),
                    ],
                    {"metric": metric.metric, **named},
                )
            )
    heads = [Column("Metric", numeric=False), *(Column(CELL_KINDS[kind], numeric=False) for kind in kinds)]
    columns = [*heads, Column("Scored"), Column("Failed"), *map(_column, statistics)]
    return Table("One line for each metric and cell, 95 % interval below", columns, lines, heads=len(heads))


def comparisons(agreement: AgreementReport) -> Table:
    """One line per pair of metrics and statistic."""
    lines = [
        Line(
            [
                Figure(f"{visible(pair.metric)} {MINUS} {visible(pair.baseline)}", order=pair.metric.casefold()),
                Figure(_column(pair.statistic).name, order=pair.statistic),
                count(pair.rows),
                estimated(pair.mean_of_cells),
                p_value(pair.mean_of_cells.p_value),
                estimated(pair.all_rows),
                p_value(pair.all_rows.p_value),
            ],
            {"metric": pair.metric},
        )
        for pair in agreement.comparisons
    ]
    columns = [
        Column("Difference", numeric=False),
        Column("Statistic", numeric=False),
        Column("Rows", "rows that both scored"),
        Column("Mean of cells"),
        Column("p", "two-sided, from the same draws"),
        Column("All rows"),
        Column("p", "two-sided, from the same draws"),
    ]
    return Table("Paired differences on the rows that both scored, 95 % interval below", columns, lines)


def failures(report: ReportInput) -> list[Failures]:
    """Rows without a score, by metric and status."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: defaultdict[tuple[str, str], list[tuple[str, str, ShownText]]] = defaultdict(list)
    for row in report.rows:
        for metric, result in row.results.items():
            if result.get("score") is not None:
                continue
            key = metric, str(result.get("status", "UNKNOWN"))
            counts[key] += 1
            if len(examples[key]) < _EXAMPLES:
                text = shown(normal_form(row.prediction[: 4 * _EXAMPLE_CHARACTERS]), max_characters=_EXAMPLE_CHARACTERS)
                message = visible(str(result.get("message", ""))[: 2 * _EXAMPLE_CHARACTERS])
                examples[key].append((visible(row.id[:_EXAMPLE_CHARACTERS]), message, text))
    return [Failures(metric, status, counts[metric, status], examples[metric, status]) for metric, status in counts]


def defined_statistics(agreement: AgreementReport) -> list[Statistic]:
    """Statistics with a value anywhere, in the page's order."""
    defined = {
        statistic
        for metric in agreement.metrics
        for cell in metric.cells
        for statistic, estimate in cell.estimates.items()
        if not math.isnan(estimate.value)
    }
    return [statistic for statistic in STATISTICS if statistic in defined]


def _column(statistic: Statistic) -> Column:
    return Column(*STATISTICS[statistic])


def _estimate(estimates: Mapping[Statistic, Estimate], statistic: Statistic) -> Figure:
    return estimated(estimates[statistic]) if statistic in estimates else Figure(UNDEFINED)
