"""The agreement page's tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gradewire_cli.pages.texts import MINUS, signed
from gradewire_cli.results.tables import STATISTICS, UNDEFINED, Cell, Table, Value, count, estimated, p_of
from gradewire_stats.agreement.statistics import ALL_STATISTICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire_stats.agreement.report import AgreementReport, CellAgreement, MetricAgreement
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.bootstrap import Estimate


CELL_KINDS = {"dataset": "Data set", "model": "Model", "group": "Group"}
# maximum numbers
CELL_VALUES = 6000
_CELL_LINES = 200
DIFFERENCE_LINES = 300
_P = "two-sided, from the same draws"


def overview_table(agreement: AgreementReport) -> Table:
    """Return a table with each metric's means over cells.

    If only the value over all rows has an interval, add this value.
    """
    statistics = [
        statistic
        for statistic in defined_statistics(agreement)
        if any(
            not math.isnan(metric.headline[statistic].value)
            for metric in agreement.metrics
            if statistic in metric.headline
        )
    ]
    rows: list[list[Cell]] = [
        [
            metric.metric,
            count(metric.cells[-1].rows),
            count(metric.cells[-1].failed),
            *(_mean(metric, statistic) for statistic in statistics),
        ]
        for metric in agreement.metrics
    ]
    title = _with_intervals("Agreement of each metric with the labels: mean of the cells", rows)
    if any(isinstance(cell, Value) and any("all rows" in note for note in cell.notes) for row in rows for cell in row):
        title += "; if the mean has no interval, also the value over all rows with its 95 % interval"
    return Table(title, ["Metric", "Scored", "Failed", *_names(statistics)], rows, explained=_meanings(statistics))


def cell_table(agreement: AgreementReport, *, most_values: int = CELL_VALUES) -> Table:
    """Return a table with a line for each metric and cell (a data set, model or group).

    If the table would exceed `most_values` values, show only the largest cells. They are the same for every metric.
    """
    statistics = defined_statistics(agreement)
    kinds = [
        kind for kind in CELL_KINDS if any(getattr(cell, kind) for metric in agreement.metrics for cell in metric.cells)
    ]
    most = min(_CELL_LINES, most_values // max(1, len(agreement.metrics) * len(statistics)))
    shown = [(metric.metric, cell) for metric in agreement.metrics for cell in _largest_in_order(metric.cells, most)]
    rows: list[list[Cell]] = [
        [
            metric,
            *(getattr(cell, kind) or "all" for kind in kinds),
            count(cell.rows),
            count(cell.failed),
            *(_estimate(cell.estimates, statistic) for statistic in statistics),
        ]
        for metric, cell in shown
    ]
    there = max((len(metric.cells) for metric in agreement.metrics), default=0)
    note = ""
    if there > most:
        note = f"The {most:,} largest of {there:,} lines of each metric are shown. Use --json for all values."
    heads = ["Metric", *(CELL_KINDS[kind] for kind in kinds)]
    return Table(
        _with_intervals("One line for each metric and cell", rows),
        [*heads, "Scored", "Failed", *_names(statistics)],
        rows,
        heads=len(heads),
        explained=_meanings(statistics),
        filters=[{"metric": metric, **{kind: getattr(cell, kind) for kind in kinds}} for metric, cell in shown],
        note=note,
    )


def _largest_in_order(found: Sequence[CellAgreement], most: int) -> list[CellAgreement]:
    by_size = sorted(range(len(found)), key=lambda place: -found[place].rows - found[place].failed)
    return [found[place] for place in sorted(by_size[:most])]


def comparison_table(agreement: AgreementReport, *, most: int = DIFFERENCE_LINES) -> Table:
    """Return a table with at most `most` lines, each for a pair of metrics and a statistic."""
    pairs, there = agreement.comparisons[:most], len(agreement.comparisons)
    rows: list[list[Cell]] = [
        [
            f"{pair.metric} {MINUS} {pair.baseline}",
            STATISTICS[pair.statistic]["on_pages"],
            count(pair.rows),
            _with_number_of_cells(estimated(pair.mean_of_cells), pair.cells, pair.cells_in_all),
            p_of(pair.mean_of_cells),
            estimated(pair.all_rows),
            p_of(pair.all_rows),
        ]
        for pair in pairs
    ]
    return Table(
        _with_intervals("Paired differences on the rows that both metrics scored", rows),
        ["Difference", "Statistic", "Rows", "Mean of cells", "p of the mean", "All rows", "p of all rows"],
        rows,
        explained={"Rows": "rows that both metrics scored", "p of the mean": _P, "p of all rows": _P},
        filters=[{"metric": pair.metric} for pair in pairs],
        note=f"The first {most:,} of {there:,} lines are shown. Use --json for all values." if there > most else "",
    )


def defined_statistics(agreement: AgreementReport) -> list[Statistic]:
    """Return the statistics that are defined in at least one cell, in the page's order."""
    defined = {
        statistic
        for metric in agreement.metrics
        for cell in metric.cells
        for statistic, estimate in cell.estimates.items()
        if not math.isnan(estimate.value)
    }
    return [statistic for statistic in ALL_STATISTICS if statistic in defined]


def explanations(agreement: AgreementReport) -> list[tuple[str, str]]:
    """Return every statistic's name and meaning, with the number of draws for its intervals."""
    written = []
    for statistic in defined_statistics(agreement):
        estimates = [
            cell.estimates[statistic]
            for metric in agreement.metrics
            for cell in metric.cells
            if statistic in cell.estimates
        ]
        draws = max((one.resamples + one.undefined for one in estimates if one.resamples), default=0)
        title, meaning = STATISTICS[statistic]["on_pages"], STATISTICS[statistic]["meaning"]
        written.append((title, f"{meaning} (interval from {draws:,} draws)" if draws else meaning))
    return written


def _names(statistics: Sequence[Statistic]) -> list[str]:
    return [STATISTICS[statistic]["on_pages"] for statistic in statistics]


def _meanings(statistics: Sequence[Statistic]) -> dict[str, str]:
    return {STATISTICS[statistic]["on_pages"]: STATISTICS[statistic]["meaning"] for statistic in statistics}


def _with_intervals(title: str, rows: Sequence[Sequence[Cell]]) -> str:
    there = any(isinstance(cell, Value) and cell.bounds for row in rows for cell in row)
    return f"{title}, 95 % interval below" if there else title


def _mean(metric: MetricAgreement, statistic: Statistic) -> Value:
    if statistic not in metric.headline:
        return Value(UNDEFINED)
    mean, every = metric.headline[statistic], metric.cells[-1].estimates[statistic]
    value = _with_number_of_cells(estimated(mean), mean.cells, mean.cells_in_all)
    if value.bounds or math.isnan(mean.value) or math.isnan(every.low):
        return value
    whole = estimated(every)
    beside = f"all rows {signed(whole.text)} ({' to '.join(map(signed, whole.bounds))})"
    return replace(value, notes=(*value.notes, beside))


def _with_number_of_cells(value: Value, cells: int, cells_in_all: int) -> Value:
    if cells == cells_in_all or math.isnan(value.value):
        return value
    return replace(value, notes=(*value.notes, f"over {cells:,} of {cells_in_all:,} cells"))


def _estimate(estimates: Mapping[Statistic, Estimate], statistic: Statistic) -> Value:
    return estimated(estimates[statistic]) if statistic in estimates else Value(UNDEFINED)
