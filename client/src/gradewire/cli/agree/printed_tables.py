"""Agreement as tables: all rows, then data sets, models and groups, each in tables of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.cli.output.names import ALL_ROWS, CELLS_MEAN, TITLES, names_of
from gradewire.tables import Table, Value, bare, cells_mean, count, differing, estimated, of_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.agreement import AgreementReport, CellAgreement, MetricAgreement
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.agreement.result_tables import Level


def agreement_tables(
    report: AgreementReport,
    statistics: Sequence[Statistic],
    levels: Sequence[Level],
    *,
    details: bool,
    intervals: bool,
) -> Iterator[Table]:
    """The headline figures, a table for each statistic and level, and paired differences.

    One metric alone, and with `details` each of several, has a table for each level with all statistics; with
    `intervals` the figures of several metrics side by side have theirs.
    """
    metrics = report.metrics
    yield from _one_metric(metrics[0], statistics) if len(metrics) == 1 else _all_rows(metrics, statistics)
    places = places_by_level(metrics[0], levels)
    if len(metrics) > 1:
        for statistic in statistics:
            for title, chosen in places.items():
                yield _side_by_side(metrics, statistic, title, chosen, intervals=intervals)
    if details or len(metrics) == 1:
        for metric in metrics:
            yield from (_in_full(metric, statistics, title, chosen) for title, chosen in places.items())
    yield from _comparisons(report)


def places_by_level(metric: MetricAgreement, levels: Sequence[Level]) -> dict[str, list[int]]:
    """Places of the metric's cells by what these have in common ("data set and model", "group"), in the order found.

    A level that would repeat the cells is not computed: with one model under test the cells are the data sets. A single
    cell is all rows, and is left out.
    """
    there = {cell.level for cell in metric.cells}
    wanted = set(levels)
    if wanted & {"dataset", "model"} and not there & {"dataset", "model"}:
        wanted.add("cell")
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(metric.cells[:-1]):
        if cell.level in wanted:
            places.setdefault(cell.level, []).append(place)
    titles = {"cell": _told_apart_by(metric), "dataset": "data set", "model": "model", "group": "group"}
    return {titles[level]: chosen for level, chosen in places.items()}


def _told_apart_by(metric: MetricAgreement) -> str:
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    named = {"data set": any(cell.dataset for cell in cells), "model": any(cell.model for cell in cells)}
    return " and ".join(name for name, is_named in named.items() if is_named)


def _one_metric(metric: MetricAgreement, statistics: Sequence[Statistic]) -> Iterator[Table]:
    """A line for each statistic: as narrow as a terminal may be."""
    every, cells = metric.cells[-1], _finest(metric)
    several = cells > 1
    yield Table(
        f"{metric.metric}: {every.rows} rows, {every.failed} failed",
        ["", ALL_ROWS, *([f"mean of {cells} cells"] if several else [])],
        [
            [
                TITLES[statistic],
                estimated(every.estimates[statistic]),
                *([cells_mean(metric.headline[statistic])] if several else []),
            ]
            for statistic in statistics
        ],
    )


def _all_rows(metrics: Sequence[MetricAgreement], statistics: Sequence[Statistic]) -> Iterator[Table]:
    """All metrics over all rows, and as mean of the cells."""
    heads = [TITLES[statistic] for statistic in statistics]
    yield Table(
        "All rows",
        ["metric", "rows", "failed", *heads],
        [_figures_over(metric.metric, metric.cells[-1], statistics) for metric in metrics],
    )
    if (cells := _finest(metrics[0])) > 1:
        yield Table(
            f"Mean of {cells} cells (data set and model), or of those in which the figure is defined",
            ["metric", *heads],
            [[metric.metric, *(cells_mean(metric.headline[name]) for name in statistics)] for metric in metrics],
        )


def _side_by_side(
    metrics: Sequence[MetricAgreement], statistic: Statistic, title: str, chosen: Sequence[int], *, intervals: bool
) -> Table:
    """A statistic of all metrics in the chosen cells."""
    written = estimated if intervals else bare
    return Table(
        f"{TITLES[statistic]} by {title}",
        ["metric", *names_of([metrics[0].cells[place] for place in chosen], between="\n")],
        [
            [metric.metric, *(written(metric.cells[place].estimates[statistic]) for place in chosen)]
            for metric in metrics
        ],
    )


def _in_full(metric: MetricAgreement, statistics: Sequence[Statistic], title: str, chosen: Sequence[int]) -> Table:
    """All statistics of a metric in the chosen cells, a line for each."""
    cells = [metric.cells[place] for place in chosen]
    return Table(
        f"{metric.metric} by {title}",
        ["", "rows", "failed", *(TITLES[statistic] for statistic in statistics)],
        [_figures_over(name, cell, statistics) for name, cell in zip(names_of(cells), cells, strict=True)],
    )


def _comparisons(report: AgreementReport) -> Iterator[Table]:
    """Paired differences, over all rows and, where there are several cells, as mean of these."""
    defined = [found for found in report.comparisons if not math.isnan(found.all_rows.value)]
    if not defined:
        return
    several = _finest(report.metrics[0]) > 1
    yield Table(
        "Paired differences, on the rows that both scored",
        ["", "", "rows", ALL_ROWS, *([CELLS_MEAN] if several else [])],
        [
            [
                f"{found.metric} minus {found.baseline}",
                TITLES[found.statistic],
                count(found.rows),
                differing(found.all_rows),
                *([of_cells(differing(found.mean_of_cells), found.cells, found.cells_in_all)] if several else []),
            ]
            for found in defined
        ],
        heads=2,
    )


def _finest(metric: MetricAgreement) -> int:
    return sum(cell.level == "cell" for cell in metric.cells)


def _figures_over(name: str, cell: CellAgreement, statistics: Sequence[Statistic]) -> list[Value | str]:
    figures = (estimated(cell.estimates[statistic]) for statistic in statistics)
    return [name, count(cell.rows), count(cell.failed), *figures]
