"""The page that shows agreement with labels, and its tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gradewire_cli.pages import page
from gradewire_cli.pages.agreement_input import bounded, failures
from gradewire_cli.pages.cases import Cases, cases
from gradewire_cli.pages.charts import calibration_chart, distribution_chart, overview_chart, roc_chart
from gradewire_cli.pages.page import (
    CaseList,
    Charts,
    Code,
    Details,
    FailureList,
    Heading,
    Page,
    Paragraph,
    Section,
    Selection,
    ShownTable,
    Terms,
)
from gradewire_cli.pages.texts import MINUS, Album, ShownText, signed, visible
from gradewire_cli.results.tables import UNDEFINED, Cell, Table, Value, count, estimated, p_of
from gradewire_stats.annotators import SHOWN_PAIRS
from gradewire_stats.curves import metric_curves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.pages.agreement_input import ReportInput
    from gradewire_cli.pages.cases import Basis, Direction
    from gradewire_cli.pages.page import Block
    from gradewire_stats.agreement_statistics import Statistic
    from gradewire_stats.agreement_table import AgreementReport, CellAgreement, MetricAgreement
    from gradewire_stats.bootstrap import Estimate


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
# Values in the table of cells, and lines of one metric there; lines of the paired differences.
CELL_VALUES = 6000
_CELL_LINES = 200
DIFFERENCE_LINES = 300
_P = "two-sided, from the same draws"

# Answers shown for each metric and direction, values of cells, and paired differences: the first of these with which
# the page is small enough.
_AMOUNTS: Final = (
    *((most, CELL_VALUES, DIFFERENCE_LINES) for most in (25, 15, 10, 6, 3, 1)),
    (1, 1000, 100),
    (0, 0, 0),
)
_CASE_TITLES: Final[dict[tuple[Direction, Basis], str]] = {
    ("high", "verdict"): "called right, labelled wrong",
    ("low", "verdict"): "called wrong, labelled right",
    ("high", "rank"): "ranked far too high",
    ("low", "rank"): "ranked far too low",
}
_CHARTS: Final = ("pearson", "kendall", "auc")
_COLUMNS: Final = (
    "Failed rows have no score: they are counted and enter no figure. A dash stands where a statistic is not defined. "
    "Intervals are 95 % percentile intervals over draws of whole questions."
)
_HOW_TO_READ_CURVES: Final = (
    "Rows labelled right are drawn solid in blue, those labelled wrong hatched in orange. A score is not a probability "
    "unless it was calibrated: the dashed diagonal shows where one would lie."
)
_NO_ROC: Final = "No ROC curve: it needs labels in [0, 1], and both right and wrong rows with a score."
_NO_CALIBRATION: Final = "No calibration curve: it needs labels in [0, 1] and rows with a score."
_CASES: Final = (
    "Answers whose verdict is not the label's side: called right and labelled wrong (“too high”), or called wrong and "
    "labelled right (“too low”). Where a metric gives no verdict, answers whose rank is far off: their places by score "
    "and by label are a quarter of the rows apart or more. Each answer says which of the two it is. Each metric shows "
    "up to {most} in each direction, those first whose rank by score is furthest from the rank of their label; rows "
    "equally bad are spread evenly over the file. Answers on which several metrics disagree with people come first."
)


def overview_table(agreement: AgreementReport) -> Table:
    """Return one line per metric: mean of its cells, for the statistics that are defined within a cell.

    Where the mean has no interval, the value over all rows stands beside it if that has one.
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
    if any(
        isinstance(cell, Value) and any("all rows" in remark for remark in cell.remarks) for row in rows for cell in row
    ):
        title += "; where the mean has no interval, the value over all rows with its 95 % interval"
    return Table(title, ["Metric", "Scored", "Failed", *_names(statistics)], rows, explained=_meanings(statistics))


def cell_table(agreement: AgreementReport, *, most_values: int = CELL_VALUES) -> Table:
    """Return one line per metric and cell; a cell is named by what its rows have in common.

    Of more cells than fit into so many values the largest are shown, the same of every metric.
    """
    statistics = defined_statistics(agreement)
    kinds = [
        kind for kind in CELL_KINDS if any(getattr(cell, kind) for metric in agreement.metrics for cell in metric.cells)
    ]
    most = min(_CELL_LINES, most_values // max(1, len(agreement.metrics) * len(statistics)))
    shown = [(metric.metric, cell) for metric in agreement.metrics for cell in _largest(metric.cells, most)]
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
        note = f"The {most:,} largest of {there:,} lines of each metric are shown; --json has the figures of all."
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


def _largest(found: Sequence[CellAgreement], most: int) -> list[CellAgreement]:
    """Return the cells with most rows, in the order they came."""
    by_size = sorted(range(len(found)), key=lambda place: -found[place].rows - found[place].failed)
    return [found[place] for place in sorted(by_size[:most])]


def comparison_table(agreement: AgreementReport, *, most: int = DIFFERENCE_LINES) -> Table:
    """Return one line per pair of metrics and statistic, the first `most`."""
    pairs, there = agreement.comparisons[:most], len(agreement.comparisons)
    rows: list[list[Cell]] = [
        [
            f"{pair.metric} {MINUS} {pair.baseline}",
            STATISTICS[pair.statistic][0],
            count(pair.rows),
            _over_cells(estimated(pair.mean_of_cells), pair.cells, pair.cells_in_all),
            p_of(pair.mean_of_cells),
            estimated(pair.all_rows),
            p_of(pair.all_rows),
        ]
        for pair in pairs
    ]
    return Table(
        _with_intervals("Paired differences on the rows that both scored", rows),
        ["Difference", "Statistic", "Rows", "Mean of cells", "p of the mean", "All rows", "p of all rows"],
        rows,
        explained={"Rows": "rows that both scored", "p of the mean": _P, "p of all rows": _P},
        filters=[{"metric": pair.metric} for pair in pairs],
        note=f"The first {most:,} of {there:,} lines are shown; --json has the figures of all." if there > most else "",
    )


def defined_statistics(agreement: AgreementReport) -> list[Statistic]:
    """Return statistics with a value anywhere, in the page's order."""
    defined = {
        statistic
        for metric in agreement.metrics
        for cell in metric.cells
        for statistic, estimate in cell.estimates.items()
        if not math.isnan(estimate.value)
    }
    return [statistic for statistic in STATISTICS if statistic in defined]


def explanations(agreement: AgreementReport) -> list[tuple[str, str]]:
    """Return name and meaning of every statistic, with the draws that were made for its intervals."""
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


def _names(statistics: Sequence[Statistic]) -> list[str]:
    return [STATISTICS[statistic][0] for statistic in statistics]


def _meanings(statistics: Sequence[Statistic]) -> dict[str, str]:
    return dict(STATISTICS[statistic] for statistic in statistics)


def _with_intervals(title: str, rows: Sequence[Sequence[Cell]]) -> str:
    there = any(isinstance(cell, Value) and cell.bounds for row in rows for cell in row)
    return f"{title}, 95 % interval below" if there else title


def _mean(metric: MetricAgreement, statistic: Statistic) -> Value:
    if statistic not in metric.headline:
        return Value(UNDEFINED)
    mean, every = metric.headline[statistic], metric.cells[-1].estimates[statistic]
    value = _over_cells(estimated(mean), mean.cells, mean.cells_in_all)
    if value.bounds or math.isnan(mean.value) or math.isnan(every.low):
        return value
    whole = estimated(every)
    beside = f"all rows {signed(whole.text)} ({' to '.join(map(signed, whole.bounds))})"
    return replace(value, remarks=(*value.remarks, beside))


def _over_cells(value: Value, cells: int, cells_in_all: int) -> Value:
    """Return a mean of cells, with the number of cells where these are not all."""
    if cells == cells_in_all or math.isnan(value.value):
        return value
    return replace(value, remarks=(*value.remarks, f"over {cells:,} of {cells_in_all:,} cells"))


def _estimate(estimates: Mapping[Statistic, Estimate], statistic: Statistic) -> Value:
    return estimated(estimates[statistic]) if statistic in estimates else Value(UNDEFINED)


def write_report(path: Path, report: ReportInput, *, quiet: bool = True) -> int:
    """Write the page: one file that loads nothing, from other files or from a network.

    It shows up to 25 answers for each metric and direction, fewer where the page would grow beyond 1.9 MB, and then
    says so; then fewer cells and differences. Longer texts are cut, with their length beside them; names at 80
    characters; the first 40 metrics are shown. Pictures that stand in the rows or in `report.folder` are a part of the
    page, up to 6 MB of them beside the rest; to others there are links.

    Args:
        path: File to write; one that is there is replaced.
        report: What to show.
        quiet: Do not print the size.

    Returns:
        Its size, bytes.

    Raises:
        InputError: jinja2 is not installed, the page would be larger than 1.9 MB with no answer and no cell, or the
            file cannot be written.
    """
    return page.write_page(path, _pages(report, path.parent), without="answer or cell", quiet=quiet)


def render(report: ReportInput, folder: Path = Path()) -> bytes:
    """Return the page in UTF-8, for this folder, from where its links to files lead; raises as `write_report`."""
    return page.render(_pages(report, folder), without="answer or cell")


def _pages(report: ReportInput, folder: Path) -> Iterator[Page]:
    report = bounded(report)
    overview, curves = _overview(report), _curves(report)
    failed = failures(report)
    for answers, values, differences in _AMOUNTS:
        album = Album(report.folder, folder)
        cells, shown = cell_table(report.agreement, most_values=values), cases(report, album, most=answers)
        compared = comparison_table(report.agreement, most=differences)
        yield Page(
            title=f"Agreement with human labels: {visible(report.source)}",
            heading=("Agreement with human labels",),
            lead=(ShownText(visible(report.source)), f", {report.created}: {_size(report)}"),
            sections=[
                overview,
                Section(
                    id="cells",
                    title=("By data set, model and group",),
                    link=("By cell",),
                    blocks=[_cells(report, cells)],
                ),
                *([_differences(compared)] if compared.rows or compared.note else []),
                curves,
                _disagreements(report, shown),
                Section(
                    id="failed",
                    title=("Failed rows",),
                    blocks=[
                        FailureList(failed) if failed else Paragraph(("None: every metric scored every labelled row.",))
                    ],
                ),
                _reproduce(report),
            ],
            embedded_characters=album.embedded_characters,
        )


def _size(report: ReportInput) -> str:
    metrics = len(report.judged.scores)
    return f"{len(report.rows):,} labelled rows, {metrics} metric{'s' if metrics != 1 else ''}"


def _overview(report: ReportInput) -> Section:
    statistics = defined_statistics(report.agreement)
    charts = [
        overview_chart(report.agreement, statistic, STATISTICS[statistic][0])
        for statistic in _CHARTS
        if statistic in statistics
    ]
    drawn = [chart for chart in charts if chart is not None]
    explained = Terms("explained", explanations(report.agreement))
    return Section(
        id="overview",
        title=("Overview",),
        blocks=[
            Terms("facts", _facts(report)),
            *page.notes(report.notes),
            *([Charts(drawn)] if drawn else []),
            ShownTable("t-overview", overview_table(report.agreement)),
            Details("What the columns mean", [explained, Paragraph((_COLUMNS,))]),
        ],
    )


def _facts(report: ReportInput) -> list[tuple[str, str]]:
    labels = sorted(Counter(report.judged.labels.tolist()).items())
    counts = {"Labelled rows": len(report.rows)}
    counts |= {"Left out: no label": report.unlabelled} if report.unlabelled else {}
    counts |= {"Left out: label unreadable": report.unreadable} if report.unreadable else {}
    counts |= {f"Label {label:g}": rows for label, rows in labels[:12]}
    other = [("Other labels", f"{len(labels) - 12} kinds")] if len(labels) > 12 else []
    return [*((name, f"{rows:,}") for name, rows in counts.items()), *other, *_annotators(report)]


def _annotators(report: ReportInput) -> Iterator[tuple[str, str]]:
    found = report.annotators
    if found is None:
        return
    figures = {f"Krippendorff's alpha, {level}": estimate for level, estimate in found.alpha.items()}
    figures |= {
        f"Cohen's kappa, annotators {pair.first} and {pair.second}, {pair.items} rows": pair.kappa
        for pair in found.pairs[:SHOWN_PAIRS]
    }
    for name, estimate in figures.items():
        value = estimated(estimate)
        interval = f" ({' to '.join(map(signed, value.bounds))})" if value.bounds else ""
        yield name, f"{signed(value.text)}{interval}"
    if (more := len(found.pairs) - SHOWN_PAIRS) > 0:
        yield "Cohen's kappa, further pairs", f"{more}, not shown"


def _cells(report: ReportInput, cells: Table) -> ShownTable:
    kinds = _kinds(report)
    values = {kind: _sorted({filters.get(kind, "") for filters in cells.filters}) for kind in kinds}
    boxes = [Selection(kind, CELL_KINDS[kind], values[kind]) for kind in kinds]
    return ShownTable("t-cells", cells, [Selection("metric", "Metric", list(report.judged.scores)), *boxes])


def _kinds(report: ReportInput) -> list[str]:
    """Return what rows are told apart by; a group that is the data set under another name is not offered again."""
    again = all(row.group in {"", row.dataset} for row in report.rows)
    return [kind for kind in CELL_KINDS if kind != "group" or not again]


def _sorted(names: set[str]) -> list[str]:
    return sorted(names - {""}, key=lambda name: (name.casefold(), name))


def _differences(compared: Table) -> Section:
    return Section(
        id="differences",
        title=("Paired differences",),
        link=("Differences",),
        blocks=[ShownTable("t-differences", compared)],
    )


def _curves(report: ReportInput) -> Section:
    judged = report.judged
    blocks: list[Block] = []
    for metric, scores in judged.scores.items():
        found = metric_curves(scores, judged.labels)
        roc = roc_chart(metric, found.roc, judged.verdicts[metric], judged.labels) if found.roc else None
        calibration = calibration_chart(metric, found.calibration, found.brier) if found.calibration else None
        blocks.append(Heading((ShownText(metric),)))
        blocks.append(
            Charts(
                [
                    distribution_chart(metric, found.distribution) or Paragraph(("No row has a score.",), "note"),
                    roc or Paragraph((_NO_ROC,), "note"),
                    calibration or Paragraph((_NO_CALIBRATION,), "note"),
                ]
            )
        )
    return Section(
        id="curves",
        title=("Scores, ROC and calibration",),
        link=("Curves",),
        blocks=[Paragraph((_HOW_TO_READ_CURVES,)), *blocks],
    )


def _disagreements(report: ReportInput, shown: Cases) -> Section:
    boxes = [
        Selection(kind, CELL_KINDS[kind], _sorted({getattr(case.row, kind) for case in shown.cases}))
        for kind in _kinds(report)
    ]
    return Section(
        id="cases",
        title=("The worst disagreements",),
        link=("Disagreements",),
        blocks=[
            Paragraph((_CASES.format(most=shown.most),)),
            CaseList(shown, list(report.judged.scores), _CASE_TITLES, boxes),
        ],
    )


def _reproduce(report: ReportInput) -> Section:
    known: dict[str, str] = {}
    for row in report.rows:
        if len(known) == len(report.judged.scores):
            break
        known |= {
            metric: str(result["line"])
            for metric, result in row.results.items()
            if metric not in known and result.get("line")
        }
    how = (
        "A line names metric, version, parameters and the digest of the weights; ",
        Code("gradewire score --metrics"),
        f" takes it as it is. Seed of the bootstrap: {report.agreement.seed}.",
    )
    lines = page.lines((metric, known.get(metric, "")) for metric in report.judged.scores)
    return Section(id="reproduce", title=("Reproduce",), blocks=[Paragraph(how), lines])
