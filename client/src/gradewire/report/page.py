"""Renders and writes the page that shows agreement, within its size."""

from collections import Counter
from pathlib import Path
from typing import Any

from gradewire.agreement.annotators.labels import SHOWN_PAIRS
from gradewire.agreement.curves.shapes import metric_curves
from gradewire.report import charts, tables
from gradewire.report.bounded import bounded
from gradewire.report.cases import Cases, cases
from gradewire.report.figures import estimated
from gradewire.report.input import ReportInput
from gradewire.report.pictures import Album
from gradewire.report.rendering import page_assets, template_of
from gradewire.report.tables import Table
from gradewire.report.texts import visible
from gradewire.report.worst import Basis, Direction

MAX_BYTES = 1_900_000
# Answers shown for each metric and direction, figures of cells, and paired differences: the first of these with which
# the page is small enough.
_AMOUNTS = (
    *((most, tables.CELL_FIGURES, tables.DIFFERENCE_LINES) for most in (25, 15, 10, 6, 3, 1)),
    (1, 1000, 100),
    (0, 0, 0),
)
_LINE_CHARACTERS = 2000
_DISAGREEMENTS: dict[tuple[Direction, Basis], str] = {
    ("high", "verdict"): "called right, labelled wrong",
    ("low", "verdict"): "called wrong, labelled right",
    ("high", "rank"): "ranked far too high",
    ("low", "rank"): "ranked far too low",
}
_INTERVAL_CHARTS = ("pearson", "kendall", "auc")


class ReportTooLargeError(ValueError):
    """Even the smallest page of these rows is too large."""


def write_report(path: Path, report: ReportInput) -> int:
    """Writes the page: one file that loads nothing, from other files or from a network.

    It shows up to 25 answers for each metric and direction, fewer where the page would grow beyond 1.9 MB, and then
    says so; then fewer cells and differences. Longer texts are cut, with their length beside them; names at 80
    characters; the first 40 metrics are shown. Pictures that stand in the rows or in `report.folder` are a part of the
    page, up to 6 MB of them beside the rest; to others there are links.

    Args:
        path: File to write; one that is there is replaced.
        report: What to show.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        ReportTooLargeError: It would be larger than 1.9 MB with no answer and no cell.
        OSError: The file cannot be written.
    """
    page = render(report, path.parent)
    path.write_bytes(page)
    return len(page)


def render(report: ReportInput, folder: Path = Path()) -> bytes:
    """The page in UTF-8, for this folder, from where its links to files lead; raises as `write_report`."""
    template = template_of("report.html")
    report = bounded(report)
    common = _content(report) | page_assets(("common.js", "report.js"), ("report.css",))
    for answers, figures, differences in _AMOUNTS:
        album = Album(report.folder, folder)
        cells, shown = tables.cells(report.agreement, figures=figures), cases(report, album, most=answers)
        amounts = {
            "cells": cells,
            "shown": shown,
            "comparisons": tables.comparisons(report.agreement, most=differences),
        }
        page = template.render(common, **amounts, **_choices(report, cells, shown)).encode(errors="replace")
        if len(page) - album.embedded_characters <= MAX_BYTES:
            return page
    raise ReportTooLargeError(f"the page would have {len(page):,} bytes without a single answer or cell")


def _content(report: ReportInput) -> dict[str, Any]:
    agreement, judged = report.agreement, report.judged
    statistics = tables.defined_statistics(agreement)
    intervals = [
        charts.interval_chart(agreement, statistic, tables.STATISTICS[statistic][0])
        for statistic in _INTERVAL_CHARTS
        if statistic in statistics
    ]
    return {
        "report": report,
        "source": visible(report.source),
        "metrics": list(judged.scores),
        "labels": [(f"{label:g}", count) for label, count in sorted(Counter(judged.labels.tolist()).items())][:12],
        "label_kinds": len(set(judged.labels.tolist())),
        "annotators": _annotators(report),
        "lines": _lines(report),
        "overview": tables.overview(agreement),
        "failures": tables.failures(report),
        "explained": tables.explained(agreement),
        "intervals": intervals,
        "curves": [_curves(metric, report) for metric in judged.scores],
        "kinds": tables.CELL_KINDS,
        "directions": {"high": "too high", "low": "too low"},
        "disagreements": _DISAGREEMENTS,
    }


def _choices(report: ReportInput, cells: Table, shown: Cases) -> dict[str, dict[str, list[str]]]:
    """What the selection boxes offer: names that stand in the table and at the answers.

    A group that is the data set under another name is not offered again.
    """
    kinds = dict.fromkeys(tables.CELL_KINDS)
    if all(row.group in {"", row.dataset} for row in report.rows):
        del kinds["group"]
    return {
        "cell_values": {kind: _sorted({line.filters.get(kind, "") for line in cells.lines}) for kind in kinds},
        "case_values": {kind: _sorted({getattr(case.row, kind) for case in shown.cases}) for kind in kinds},
    }


def _sorted(names: set[str]) -> list[str]:
    return sorted(names - {""}, key=lambda name: (name.casefold(), name))


def _curves(metric: str, report: ReportInput) -> dict[str, Any]:
    judged = report.judged
    curves = metric_curves(judged.scores[metric], judged.labels)
    return {
        "metric": metric,
        "roc": charts.roc_chart(curves.roc, judged.verdicts[metric], judged.labels) if curves.roc else None,
        "calibration": charts.calibration_chart(curves.calibration, curves.brier) if curves.calibration else None,
        "distribution": charts.distribution_chart(curves.distribution),
    }


def _annotators(report: ReportInput) -> list[tuple[str, str]]:
    found = report.annotators
    if found is None:
        return []
    figures = {f"Krippendorff's alpha, {level}": estimate for level, estimate in found.alpha.items()}
    figures |= {
        f"Cohen's kappa, annotators {pair.first} and {pair.second}, {pair.items} rows": pair.kappa
        for pair in found.pairs[:SHOWN_PAIRS]
    }
    written = {name: estimated(estimate) for name, estimate in figures.items()}
    more = len(found.pairs) - SHOWN_PAIRS
    return [
        *((name, f"{one.text} ({one.interval})" if one.interval else one.text) for name, one in written.items()),
        *([("Cohen's kappa, further pairs", f"{more}, not shown")] if more > 0 else []),
    ]


def _lines(report: ReportInput) -> list[tuple[str, str]]:
    """The line that reproduces each metric, from the first row that has it."""
    lines: dict[str, str] = {}
    for row in report.rows:
        if len(lines) == len(report.judged.scores):
            break
        lines |= {
            metric: visible(str(result["line"])[:_LINE_CHARACTERS])
            for metric, result in row.results.items()
            if metric not in lines and result.get("line")
        }
    return [(metric, lines.get(metric, "")) for metric in report.judged.scores]
