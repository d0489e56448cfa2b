"""The agreement page's input, shortened to fit on a page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradewire_cli.pages.texts import MAX_NAME_CHARACTERS, ShownText, cut, normal_form, shown, visible
from gradewire_cli.results.tables import Table
from gradewire_stats.agreement.report import AgreementReport, CellAgreement
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.annotators import AnnotatorAgreement

MAX_METRICS = 40
_NOTE_CHARACTERS = 1000
NO_NAME = "(none)"
# Levels at which an empty name means rows without this name. At other levels, an empty name means all rows.
_NAMED = {"dataset": {"cell", "dataset"}, "model": {"cell", "model"}, "group": {"group"}}
_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 160
_STATUS_CHARACTERS = 40
_FAILURES = 60
OTHER_FAILURES = "other statuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A labelled row with every metric's result.

    Attributes:
        references: All references in the order that metrics saw.
        picture: The question's picture, as a path, an http(s) URL, a data URI or a name, or "".
        labels: Each annotator's label if there are several annotators. None means a missing label.
        flags: The row's flags, and the flags that rules propose, with the reasons.
        classes: The classes of wrong verdicts, given or proposed, by metric.
    """

    id: str
    question: str
    references: Sequence[str]
    prediction: str
    label: float
    picture: str = ""
    labels: Sequence[float | None] = ()
    dataset: str = ""
    model: str = ""
    group: str = ""
    flags: Sequence[str] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """A run with its labels.

    Attributes:
        unlabelled: Number of skipped rows without a label.
        unreadable: Number of skipped rows with an unreadable label.
        annotators: Agreement among annotators, or None without several annotators.
        classes: Tables of the wrong verdicts' classes and of the proposed flags.
        folder: Folder of the pictures that rows name by path. None means that the page reads no files.
    """

    source: str
    created: str
    rows: Sequence[ReportRow]
    judged: JudgedRows
    agreement: AgreementReport
    unlabelled: int = 0
    unreadable: int = 0
    annotators: AnnotatorAgreement | None = None
    classes: Sequence[Table] = ()
    notes: Sequence[str] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.judged.labels):
            raise ValueError(f"{len(self.rows)} rows but {len(self.judged.labels)} labels. Pass one label per row")


def bounded(report: ReportInput) -> ReportInput:
    """Return the report with its first 40 metrics only, and with printable, distinct names of at most 80 characters.

    If only some rows have a data set or model, the other rows get "(none)".
    """
    scores = list(report.judged.scores)
    metrics = shown_names(scores[:MAX_METRICS])
    cells = [cell for metric in report.agreement.metrics for cell in metric.cells]
    names = {
        kind: shown_names([*(getattr(row, kind) for row in report.rows), *(getattr(cell, kind) for cell in cells)])
        for kind in _NAMED
    }
    for kind in ("dataset", "model"):
        if len(names[kind]) > 1:
            names[kind][""] = NO_NAME
    agreement = replace(
        report.agreement,
        metrics=[
            replace(metric, metric=metrics[metric.metric], cells=[_named(cell, names) for cell in metric.cells])
            for metric in report.agreement.metrics
            if metric.metric in metrics
        ],
        comparisons=[
            replace(pair, metric=metrics[pair.metric], baseline=metrics[pair.baseline])
            for pair in report.agreement.comparisons
            if pair.metric in metrics and pair.baseline in metrics
        ],
    )
    judged = replace(
        report.judged,
        scores={metrics[metric]: column for metric, column in report.judged.scores.items() if metric in metrics},
        verdicts={metrics[metric]: column for metric, column in report.judged.verdicts.items() if metric in metrics},
    )
    rows = [
        replace(
            row,
            dataset=names["dataset"][row.dataset],
            model=names["model"][row.model],
            group=names["group"][row.group],
            classes={metrics[metric]: text for metric, text in row.classes.items() if metric in metrics},
            results={metrics[metric]: result for metric, result in row.results.items() if metric in metrics},
        )
        for row in report.rows
    ]
    left_out = [f"The first {MAX_METRICS} of {len(scores)} metrics are shown."] if len(scores) > MAX_METRICS else []
    notes = [cut(note, _NOTE_CHARACTERS) for note in report.notes]
    return replace(report, rows=rows, judged=judged, agreement=agreement, notes=[*notes, *left_out])


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """Return a short form of each name. Forms with equal beginnings get numbers and stay distinct."""
    found: dict[str, str] = {"": ""}
    taken = {"", NO_NAME}
    repeated: Counter[str] = Counter()
    for name in dict.fromkeys(names):
        if not name:
            continue
        shown = beginning = cut(name, MAX_NAME_CHARACTERS)
        while shown in taken:
            repeated[beginning] += 1
            shown = f"{beginning} ({repeated[beginning] + 1})"
        taken.add(shown)
        found[name] = shown
    return found


def _named(cell: CellAgreement, names: Mapping[str, Mapping[str, str]]) -> CellAgreement:
    shown: dict[str, Any] = {
        kind: names[kind][getattr(cell, kind)] if cell.level in levels else "" for kind, levels in _NAMED.items()
    }
    return replace(cell, **shown)


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed rows of one metric and status, with a few examples (id, message, prediction)."""

    metric: str
    status: str
    rows: int
    examples: Sequence[tuple[str, str, ShownText]]


def failures(report: ReportInput) -> list[Failures]:
    """Return the rows without a score, by metric and status."""
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
