"""Cuts a report to what a page can hold: the number of metrics, and the length of names."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gradewire.agreement.result_tables import CellAgreement
from gradewire.report.input import ReportInput
from gradewire.report.texts import MAX_NAME_CHARACTERS, cut

MAX_METRICS = 40
# Sentences of the headline list places by their names, which come as they are.
_NOTE_CHARACTERS = 1000
NO_NAME = "(none)"
# Levels at which a cell without the name has rows that have none; at the others the name is of no matter.
_NAMED = {"dataset": {"cell", "dataset"}, "model": {"cell", "model"}, "group": {"group"}}


def bounded(report: ReportInput) -> ReportInput:
    """The same report with names fit to be shown, and without what lies beyond the first 40 metrics.

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
    """The shown form of each name; names that begin alike are numbered, so that none stands for two."""
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
