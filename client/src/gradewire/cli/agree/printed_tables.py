"""Agreement as tables: all metrics in brief, then by cell, and each metric in full where that is asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.agreement.annotators.labels import SHOWN_PAIRS
from gradewire.cli.output.figure_names import ALL_ROWS, CELLS_MEAN, TITLES, names_of
from gradewire.cli.output.tables import FigureTable, cells_mean, differing, estimated, number, of_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.agreement import AgreementReport, CellAgreement, MetricAgreement
    from gradewire.agreement.annotators.labels import AnnotatorAgreement
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.agreement.result_tables import Level
    from gradewire.cli.agree.result import AgreementResult


def agreement_tables(
    report: AgreementReport,
    statistics: Sequence[Statistic],
    levels: Sequence[Level],
    *,
    details: bool,
    intervals: bool,
) -> Iterator[FigureTable]:
    """Metrics side by side, each metric in full, and paired differences; one metric alone has its full table at once.

    With `details` each of several metrics has its full table, too; with `intervals` their figures by cell have theirs.
    """
    if len(report.metrics) > 1:
        yield from _brief_tables(report, statistics, levels, intervals=intervals)
    if details or len(report.metrics) == 1:
        yield from (_detail_table(metric, statistics, levels) for metric in report.metrics)
    yield from _comparison_tables(report)


def _brief_tables(
    report: AgreementReport, statistics: Sequence[Statistic], levels: Sequence[Level], *, intervals: bool
) -> Iterator[FigureTable]:
    """All metrics: over all rows and as mean of the cells with intervals, then each statistic cell by cell."""
    heads = [TITLES[statistic] for statistic in statistics]
    finest = sum(cell.level == "cell" for cell in report.metrics[0].cells)
    yield FigureTable(
        "All rows",
        ["metric", "rows", "failed", *heads],
        [_figures_over(metric.metric, metric.cells[-1], statistics) for metric in report.metrics],
    )
    if finest < 2:
        return
    yield FigureTable(
        f"Mean of {finest} cells (data set and model), or of those in which the figure is defined",
        ["metric", *heads],
        [[metric.metric, *(cells_mean(metric.headline[name]) for name in statistics)] for metric in report.metrics],
    )
    shown = [cells_of(metric, levels) for metric in report.metrics]
    for statistic in statistics:
        figures = [[cell.estimates[statistic] for cell in cells] for cells in shown]
        yield FigureTable(
            f"{TITLES[statistic]} by cell",
            ["metric", *names_of(shown[0], between="\n")],
            [
                [metric.metric, *(estimated(each) if intervals else number(each.value) for each in found)]
                for metric, found in zip(report.metrics, figures, strict=True)
            ],
        )


def _detail_table(metric: MetricAgreement, statistics: Sequence[Statistic], levels: Sequence[Level]) -> FigureTable:
    """One metric: a row a cell, with intervals."""
    shown = [*cells_of(metric, levels), metric.cells[-1]]
    rows = [_figures_over(name, cell, statistics) for name, cell in zip(names_of(shown), shown, strict=True)]
    if sum(cell.level == "cell" for cell in metric.cells) > 1:
        rows.append([CELLS_MEAN, "", "", *(cells_mean(metric.headline[statistic]) for statistic in statistics)])
    return FigureTable(metric.metric, ["", "rows", "failed", *(TITLES[statistic] for statistic in statistics)], rows)


def _comparison_tables(report: AgreementReport) -> Iterator[FigureTable]:
    """Paired differences, over all rows and, where there are several cells, as mean of these."""
    defined = [found for found in report.comparisons if not math.isnan(found.all_rows.value)]
    if not defined:
        return
    several = sum(cell.level == "cell" for cell in report.metrics[0].cells) > 1
    yield FigureTable(
        "Paired differences, on the rows that both scored",
        ["", "", "rows", ALL_ROWS, *([CELLS_MEAN] if several else [])],
        [
            [
                f"{found.metric} minus {found.baseline}",
                TITLES[found.statistic],
                str(found.rows),
                differing(found.all_rows),
                *([of_cells(differing(found.mean_of_cells), found.cells, found.cells_in_all)] if several else []),
            ]
            for found in defined
        ],
    )


def metric_lines(found: AgreementResult, statistics: Sequence[Statistic]) -> Iterator[str]:
    """Lines below the tables: what reproduces each metric, what failed or is undefined, how far annotators agree."""
    for metric in found.report.metrics:
        yield found.labelled.tallies[metric.metric].told(metric.metric)
    for metric in found.report.metrics:
        yield from _undefined(metric, statistics)
    yield from abstention_lines(found)
    if found.annotators is not None:
        alphas = ", ".join(f"{level} {estimated(alpha)}" for level, alpha in found.annotators.alpha.items())
        yield (
            f"annotators: {found.annotators.items} rows with at least two of up to {found.annotators.annotators}; "
            f"Krippendorff's alpha {alphas}; Cohen's kappa {_kappas(found.annotators)}"
            f"{_draws_of_rows(found.annotators)}"
        )


def abstention_lines(found: AgreementResult) -> Iterator[str]:
    """A line for each metric with uncertain verdicts: how many, and the accuracy of the others and of all."""
    for label in found.rows.verdicts:
        if (told := found.abstention(label)) is not None:
            yield (
                f"{label}: {told.uncertain} of {told.judged} verdicts are uncertain "
                f"({told.uncertain / told.judged:.1%}); accuracy {number(told.accuracy_certain)} of the others, "
                f"{number(told.accuracy)} of all"
            )


def _kappas(annotators: AnnotatorAgreement) -> str:
    """Kappa of the pairs of columns with the most rows, and how many more pairs there are."""
    if not annotators.pairs:
        return "of no pair"
    shown = ", ".join(
        f"{estimated(pair.kappa)} of annotators {pair.first} and {pair.second} ({pair.items} rows)"
        for pair in annotators.pairs[:SHOWN_PAIRS]
    )
    more = len(annotators.pairs) - SHOWN_PAIRS
    return f"{shown} and {more} more" if more > 0 else shown


def _draws_of_rows(annotators: AnnotatorAgreement) -> str:
    figures = (*annotators.alpha.values(), *(pair.kappa for pair in annotators.pairs))
    made = {each.resamples + each.undefined for each in figures if each.resamples}
    return f"; {max(made)} draws of rows" if made else ""


def _undefined(metric: MetricAgreement, statistics: Sequence[Statistic]) -> Iterator[str]:
    """In how many cells which statistics are not defined, because scores or labels are all alike there."""
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    counts = {statistic: sum(math.isnan(cell.estimates[statistic].value) for cell in cells) for statistic in statistics}
    # A metric without verdicts has no accuracy anywhere: nothing is left out of a mean.
    listed = ", ".join(
        f"{TITLES[statistic]} in {count} of {len(cells)} cells"
        for statistic, count in counts.items()
        if 0 < count < len(cells)
    )
    if listed:
        yield f"{metric.metric}: not defined, and not in the cells' mean: {listed}"


def cells_of(metric: MetricAgreement, levels: Sequence[Level]) -> list[CellAgreement]:
    """The cells of these levels, without the one of all rows.

    A level that would repeat the cells is not computed: with one model under test the cells are the data sets.
    """
    there = {cell.level for cell in metric.cells}
    wanted = set(levels)
    if wanted & {"dataset", "model"} and not there & {"dataset", "model"}:
        wanted.add("cell")
    return [cell for cell in metric.cells if cell.level in wanted and cell.level != "all"]


def _figures_over(name: str, cell: CellAgreement, statistics: Sequence[Statistic]) -> list[str]:
    return [name, str(cell.rows), str(cell.failed), *(estimated(cell.estimates[statistic]) for statistic in statistics)]
