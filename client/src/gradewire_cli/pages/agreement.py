"""The HTML page on agreement with labels."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gradewire_cli.pages import page
from gradewire_cli.pages.agreement_input import bounded, failures
from gradewire_cli.pages.agreement_tables import (
    CELL_KINDS,
    CELL_VALUES,
    DIFFERENCE_LINES,
    cell_table,
    comparison_table,
    defined_statistics,
    explanations,
    overview_table,
)
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
from gradewire_cli.pages.pictures import Album
from gradewire_cli.pages.texts import ShownText, signed, visible
from gradewire_cli.results.tables import SHOWN_PAIRS, STATISTICS, Table, estimated
from gradewire_stats.curves import metric_curves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire_cli.pages.agreement_input import ReportInput
    from gradewire_cli.pages.cases import Basis, Direction
    from gradewire_cli.pages.page import Block


# Maximum numbers of answers for each metric and direction, of cell values, and of paired differences.
_AMOUNTS: Final = (
    *((most, CELL_VALUES, DIFFERENCE_LINES) for most in (25, 15, 10, 6, 3, 1)),
    (1, 1000, 100),
    (0, 0, 0),
)
_TEXTS: Final[dict[str, str]] = tomllib.loads(
    (resources.files(__package__) / "agreement.toml").read_text(encoding="utf-8")
)
_CASE_TITLES: Final[dict[tuple[Direction, Basis], str]] = {
    ("high", "verdict"): "called right, labelled wrong",
    ("low", "verdict"): "called wrong, labelled right",
    ("high", "rank"): "ranked far too high",
    ("low", "rank"): "ranked far too low",
}
_CHARTS: Final = ("pearson", "kendall", "auc")


def write_report(path: Path, report: ReportInput, *, quiet: bool = True) -> int:
    """Write the page as one file that loads nothing from other files or the network.

    The page shows up to 25 answers for each metric and direction, and only the first 40 metrics. To stay below 1.9 MB,
    the page shows fewer answers, then fewer cells and differences. Up to 6 MB of pictures are embedded.

    Returns:
        The page's size in bytes.

    Raises:
        InputError: jinja2 is not installed, the page exceeds 1.9 MB even without answers and cells, or the file cannot
            be written.
    """
    return page.write_page(path, _pages(report, path.parent), without="answer or cell", quiet=quiet)


def render(report: ReportInput, folder: Path = Path()) -> bytes:
    """Return the page in UTF-8 with file links relative to `folder`; raise InputError like `write_report`."""
    return page.render(_pages(report, folder), without="answer or cell")


def _pages(report: ReportInput, folder: Path) -> Iterator[Page]:
    report = bounded(report)
    overview, curves = _overview(report), _curves(report)
    found = failures(report)
    failed = FailureList(found) if found else Paragraph((_TEXTS["no_failed"],))
    for answers, values, lines in _AMOUNTS:
        album = Album(report.folder, folder)
        cells, shown = cell_table(report.agreement, most_values=values), cases(report, album, most=answers)
        compared = comparison_table(report.agreement, most=lines)
        differences = [
            Section(
                "differences", ("Paired differences",), [ShownTable("t-differences", compared)], link=("Differences",)
            )
        ]
        yield Page(
            title=f"Agreement with human labels: {visible(report.source)}",
            heading=("Agreement with human labels",),
            lead=(ShownText(visible(report.source)), f", {report.created}: {_size(report)}"),
            sections=[
                overview,
                Section("cells", ("By data set, model and group",), [_cells(report, cells)], link=("By cell",)),
                *(differences if compared.rows or compared.note else []),
                curves,
                *_classes(report),
                _disagreements(report, shown),
                Section("failed", ("Failed rows",), [failed]),
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
        overview_chart(report.agreement, statistic, STATISTICS[statistic]["on_pages"])
        for statistic in _CHARTS
        if statistic in statistics
    ]
    drawn = [chart for chart in charts if chart is not None]
    explained = Terms("explained", explanations(report.agreement))
    blocks: list[Block] = [
        Terms("facts", _facts(report)),
        *page.notes(report.notes),
        *([Charts(drawn)] if drawn else []),
        ShownTable("t-overview", overview_table(report.agreement)),
        Details("What the columns mean", [explained, Paragraph((_TEXTS["columns"],))]),
    ]
    return Section("overview", ("Overview",), blocks)


def _facts(report: ReportInput) -> list[tuple[str, str]]:
    labels = sorted(Counter(report.judged.labels.tolist()).items())
    counts = {"Labelled rows": len(report.rows)}
    counts |= {"Skipped: no label": report.unlabelled} if report.unlabelled else {}
    counts |= {"Skipped: unreadable label": report.unreadable} if report.unreadable else {}
    counts |= {f"Label {label:g}": rows for label, rows in labels[:12]}
    other = [("Other labels", f"{len(labels) - 12} values")] if len(labels) > 12 else []
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
        yield "Cohen's kappa, more pairs", f"{more}, not shown"


def _cells(report: ReportInput, cells: Table) -> ShownTable:
    kinds = _kinds(report)
    values = {kind: _sorted({filters.get(kind, "") for filters in cells.filters}) for kind in kinds}
    boxes = [Selection(kind, CELL_KINDS[kind], values[kind]) for kind in kinds]
    return ShownTable("t-cells", cells, [Selection("metric", "Metric", list(report.judged.scores)), *boxes])


def _kinds(report: ReportInput) -> list[str]:
    again = all(row.group in {"", row.dataset} for row in report.rows)
    return [kind for kind in CELL_KINDS if kind != "group" or not again]


def _sorted(names: set[str]) -> list[str]:
    return sorted(names - {""}, key=lambda name: (name.casefold(), name))


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
                    roc or Paragraph((_TEXTS["no_roc"],), "note"),
                    calibration or Paragraph((_TEXTS["no_calibration"],), "note"),
                ]
            )
        )
    blocks.insert(0, Paragraph((_TEXTS["curves"],)))
    return Section("curves", ("Scores, ROC and calibration",), blocks, link=("Curves",))


def _disagreements(report: ReportInput, shown: Cases) -> Section:
    boxes = [
        Selection(kind, CELL_KINDS[kind], _sorted({getattr(case.row, kind) for case in shown.cases}))
        for kind in _kinds(report)
    ]
    listed = CaseList(shown, list(report.judged.scores), _CASE_TITLES, boxes)
    blocks: list[Block] = [Paragraph((_TEXTS["cases"].format(most=shown.most),)), listed]
    return Section("cases", ("The worst disagreements",), blocks, link=("Disagreements",))


def _classes(report: ReportInput) -> list[Section]:
    """Return a section with the classes of wrong verdicts and the proposed flags, or nothing without any."""
    if not report.classes:
        return []
    tables = [ShownTable(f"t-classes-{number}", table) for number, table in enumerate(report.classes)]
    blocks: list[Block] = [Paragraph((_TEXTS["classes"],)), *tables]
    return [Section("classes", ("Wrong verdicts and doubtful questions",), blocks, link=("Classes",))]


def _reproduce(report: ReportInput) -> Section:
    # Go backwards, because the first row's identifier must win.
    results = (item for row in reversed(report.rows) for item in row.results.items())
    known = {metric: str(result["line"]) for metric, result in results if result.get("line")}
    how = (
        "An identifier contains the metric, version, parameters and the digest of the weights. ",
        Code("gradewire score --metrics"),
        f" accepts identifiers unchanged. Seed of the bootstrap: {report.agreement.seed}.",
    )
    lines = page.lines((metric, known.get(metric, "")) for metric in report.judged.scores)
    return Section("reproduce", ("Reproduce",), [Paragraph(how), lines])
