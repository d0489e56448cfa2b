"""The input of the page of agreement, cut to what a page can hold, and its rows without a score."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradewire_cli.pages.texts import MAX_NAME_CHARACTERS, ShownText, cut, normal_form, shown, visible
from gradewire_stats.agreement.report import AgreementReport, CellAgreement
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.annotators import AnnotatorAgreement

MAX_METRICS = 40
# Sentences of the headline list places by their names, which come as they are.
_NOTE_CHARACTERS = 1000
NO_NAME = "(none)"
# Levels at which a cell without the name has rows that have none; at the others the name is of no matter.
_NAMED = {"dataset": {"cell", "dataset"}, "model": {"cell", "model"}, "group": {"group"}}
_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 160
_STATUS_CHARACTERS = 40
_FAILURES = 60
OTHER_FAILURES = "other statuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A labelled row with what every metric said of it.

    Attributes:
        id: As the output of the run calls it.
        references: All of them, in the order the metrics saw.
        picture: What the question is about, as the row names it: a path, an http(s) URL, a data URI, any other name; ""
            without one.
        labels: Label of each annotator where there are several; None for one who gave none.
        group: Further name by which rows are grouped.
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
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """A run with its labels.

    Attributes:
        source: What was scored, as the headline says it.
        created: Date for the headline; the report reads no clock.
        judged: The columns that `agreement` was computed from.
        annotators: Agreement of the annotators with one another; None where there are not several.
        folder: Folder of the file of rows, in which pictures are looked up that rows name by a path; None: nowhere.
    """

    source: str
    created: str
    rows: Sequence[ReportRow]
    judged: JudgedRows
    agreement: AgreementReport
    unlabelled: int = 0
    unreadable: int = 0
    annotators: AnnotatorAgreement | None = None
    notes: Sequence[str] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.judged.labels):
            raise ValueError(f"{len(self.rows)} rows beside {len(self.judged.labels)} labels: they belong together")


def bounded(report: ReportInput) -> ReportInput:
    """Return the same report with names fit to be shown, and without what lies beyond the first 40 metrics.

    A name may come as a megabyte, hold controls, or be missing in some rows only. It leaves with at most 80 characters,
    distinct where names were distinct; rows without a data set or model where others have one get "(none)". A note says
    how many metrics were left out.
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
            results={metrics[metric]: result for metric, result in row.results.items() if metric in metrics},
        )
        for row in report.rows
    ]
    left_out = [f"The first {MAX_METRICS} of {len(scores)} metrics are shown."] if len(scores) > MAX_METRICS else []
    notes = [cut(note, _NOTE_CHARACTERS) for note in report.notes]
    return replace(report, rows=rows, judged=judged, agreement=agreement, notes=[*notes, *left_out])


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shown form of each name; names that begin alike are numbered, so that none stands for two."""
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
    """Failed rows of one metric and status, with a few examples (id, message, prediction)."""

    metric: str
    status: str
    rows: int
    examples: Sequence[tuple[str, str, ShownText]]


def failures(report: ReportInput) -> list[Failures]:
    """Return rows without a score, by metric and status."""
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
