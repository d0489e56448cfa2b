"""The tables of the page: overview, cells, paired differences, failed rows."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradewire.agreement import AgreementReport, Estimate
from gradewire.agreement.point_estimates import Statistic
from gradewire.agreement.result_tables import CellAgreement, MetricAgreement
from gradewire.report.figures import MINUS, UNDEFINED, Figure, count, estimated, over_cells, p_value, with_all_rows
from gradewire.report.input import ReportInput
from gradewire.report.texts import ShownText, normal_form, shown, visible

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
_STATUS_CHARACTERS = 40
# Figures in the table of cells, and lines of one metric there; lines of the paired differences; kinds of failure.
CELL_FIGURES = 6000
_CELL_LINES = 200
DIFFERENCE_LINES = 300
_FAILURES = 60
OTHER_FAILURES = "other statuses"


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
    """A table; its first `heads` columns name the line, `note` says what is left out."""

    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    heads: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed rows of one metric and status, with a few examples (id, message, prediction)."""

    metric: str
    status: str
    rows: int
    examples: Sequence[tuple[str, str, ShownText]]


def name(text: str) -> Figure:
    """A cell with words."""
    return Figure(text, order=text.casefold())


def overview(agreement: AgreementReport) -> Table:
    """One line per metric: mean of its cells, for the statistics that are defined within a cell.

    Where the mean has no interval, the figure over all rows stands beside it if that has one.
    """
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
                *(_mean(metric, statistic) for statistic in statistics),
            ]
        )
        for metric in agreement.metrics
    ]
    columns = [Column("Metric", numeric=False), Column("Scored"), Column("Failed"), *map(_column, statistics)]
    caption = _with_intervals("Agreement of each metric with the labels: mean of the cells", lines)
    if any(cell.beside for line in lines for cell in line.cells):
        caption += "; where the mean has no interval, the figure over all rows with its 95 % interval"
    return Table(caption, columns, lines)


def cells(agreement: AgreementReport, *, figures: int = CELL_FIGURES) -> Table:
    """One line per metric and cell; a cell is named by what its rows have in common.

    Of more cells than fit into so many figures the largest are shown, the same of every metric.
    """
    statistics = defined_statistics(agreement)
    kinds = [
        kind for kind in CELL_KINDS if any(getattr(cell, kind) for metric in agreement.metrics for cell in metric.cells)
    ]
    most = min(_CELL_LINES, figures // max(1, len(agreement.metrics) * len(statistics)))
    lines = [
        _cell_line(metric.metric, cell, kinds, statistics)
        for metric in agreement.metrics
        for cell in _largest(metric.cells, most)
    ]
    there = max((len(metric.cells) for metric in agreement.metrics), default=0)
    note = ""
    if there > most:
        note = f"The {most:,} largest of {there:,} lines of each metric are shown; --json has the figures of all."
    heads = [Column("Metric", numeric=False), *(Column(CELL_KINDS[kind], numeric=False) for kind in kinds)]
    columns = [*heads, Column("Scored"), Column("Failed"), *map(_column, statistics)]
    caption = _with_intervals("One line for each metric and cell", lines)
    return Table(caption, columns, lines, heads=len(heads), note=note)


def _cell_line(metric: str, cell: CellAgreement, kinds: Sequence[str], statistics: Sequence[Statistic]) -> Line:
    named = {kind: getattr(cell, kind) for kind in kinds}
    head = [name(metric), *(name(value) if value else Figure("all") for value in named.values())]
    counts = [count(cell.rows), count(cell.failed)]
    estimates = [_estimate(cell.estimates, statistic) for statistic in statistics]
    return Line([*head, *counts, *estimates], {"metric": metric, **named})


def _largest(found: Sequence[CellAgreement], most: int) -> list[CellAgreement]:
    """The cells with most rows, in the order they came."""
    by_size = sorted(range(len(found)), key=lambda place: -found[place].rows - found[place].failed)
    return [found[place] for place in sorted(by_size[:most])]


def comparisons(agreement: AgreementReport, *, most: int = DIFFERENCE_LINES) -> Table:
    """One line per pair of metrics and statistic, the first `most`."""
    lines = [
        Line(
            [
                Figure(f"{pair.metric} {MINUS} {pair.baseline}", order=pair.metric.casefold()),
                Figure(_column(pair.statistic).name, order=pair.statistic),
                count(pair.rows),
                over_cells(estimated(pair.mean_of_cells), pair.cells, pair.cells_in_all),
                p_value(pair.mean_of_cells),
                estimated(pair.all_rows),
                p_value(pair.all_rows),
            ],
            {"metric": pair.metric},
        )
        for pair in agreement.comparisons[:most]
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
    note, there = "", len(agreement.comparisons)
    if there > most:
        note = f"The first {most:,} of {there:,} lines are shown; --json has the figures of all."
    caption = _with_intervals("Paired differences on the rows that both scored", lines)
    return Table(caption, columns, lines, note=note)


def failures(report: ReportInput) -> list[Failures]:
    """Rows without a score, by metric and status."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: defaultdict[tuple[str, str], list[tuple[str, str, ShownText]]] = defaultdict(list)
    for row in report.rows:
        for metric, result in row.results.items():
            if result.get("score") is not None:
                continue
            key = metric, visible(str(result.get("status", "UNKNOWN"))[:_STATUS_CHARACTERS])
            if key not in counts and len(counts) == _FAILURES:
                key = metric, OTHER_FAILURES
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


def explained(agreement: AgreementReport) -> list[tuple[str, str]]:
    """Name and meaning of every statistic, with the draws that were made for its intervals."""
    written = []
    for statistic in defined_statistics(agreement):
        estimates = [
            cell.estimates[statistic]
            for metric in agreement.metrics
            for cell in metric.cells
            if statistic in cell.estimates
        ]
        draws = max((one.resamples + one.undefined for one in estimates if one.resamples), default=0)
        title, meaning = STATISTICS[statistic]
        written.append((title, f"{meaning} (interval from {draws:,} draws)" if draws else meaning))
    return written


def _column(statistic: Statistic) -> Column:
    return Column(*STATISTICS[statistic])


def _with_intervals(caption: str, lines: Sequence[Line]) -> str:
    return f"{caption}, 95 % interval below" if any(cell.interval for line in lines for cell in line.cells) else caption


def _mean(metric: MetricAgreement, statistic: Statistic) -> Figure:
    if statistic not in metric.headline:
        return Figure(UNDEFINED)
    mean, every = metric.headline[statistic], metric.cells[-1].estimates[statistic]
    return with_all_rows(over_cells(estimated(mean), mean.cells, mean.cells_in_all), every)


def _estimate(estimates: Mapping[Statistic, Estimate], statistic: Statistic) -> Figure:
    return estimated(estimates[statistic]) if statistic in estimates else Figure(UNDEFINED)
