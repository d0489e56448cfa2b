"""Prints a summary on stderr."""

import importlib.metadata
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import click

from gradewire.cli.input.grouping import written
from gradewire.cli.input.record import printable
from gradewire.cli.output.figures import number
from gradewire.cli.output.progress import rows_per_second
from gradewire.cli.output.summary import MetricTally, Summary
from gradewire.cli.output.tables import FigureTable, print_figures, print_table
from gradewire.cli.summary.remarks import remarks


class Breakdown(Protocol):
    """Figures by the values of columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """By which the rows are told apart."""
        ...

    def document(self) -> Mapping[str, Any]:
        """All figures, for a file."""
        ...

    def tables(self) -> Iterable[FigureTable]:
        """The same for people."""
        ...

    def notes(self) -> Iterable[str]:
        """What should be known of them, in sentences."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What is told of a run beside its scores.

    Attributes:
        command: What gives the same scores again; empty where there are none.
        place: Where the scoring was done.
        server_version: Version of gradewire there; "" where nobody asked.
        scored_rows: Rows of this run.
        wall_s: Seconds that this run took.
        notes: What people should know of the input's cells, in sentences.
        by: Figures by the values of columns.
    """

    command: str
    place: str
    scored_rows: int
    wall_s: float
    notes: Sequence[str] = ()
    by: Sequence[Breakdown] = ()
    server_version: str = ""


def summary_document(summary: Summary, run: RunFigures) -> dict[str, Any]:
    """The summary for --summary-json: figures of all rows, those of earlier runs included; NaN becomes null."""
    return {
        "rows": summary.rows,
        "failed_rows": summary.failed_rows,
        "unscored_rows": summary.unscored_rows,
        "metrics": {label: _figures(tally) for label, tally in summary.metrics.items()},
        "by": {written(found.columns): found.document() for found in run.by},
        "texts": dict(summary.texts),
        "stages_s": dict(summary.seconds),
        "run": {"command": run.command, "place": run.place, "server_version": run.server_version}
        | {"scored_rows": run.scored_rows, "wall_s": run.wall_s, "notes": list(run.notes)},
        "gradewire_version": importlib.metadata.version("gradewire"),
    }


def _figures(tally: MetricTally) -> dict[str, Any]:
    return {
        "line": tally.line,
        "scored": len(tally.scores),
        "mean": tally.mean,
        "interval_95": tally.interval(),
        "share_right": tally.share_right,
        "verdicts": tally.verdicts.total(),
        "uncertain": tally.uncertain,
        "share_right_certain": tally.share_right_certain,
        "mean_empty_as_wrong": tally.mean_empty_as_wrong,
        "statuses": dict(tally.statuses),
        "warnings": dict(tally.warnings),
    } | ({} if tally.cascade is None else {"cascade": tally.cascade.document()})


def _print_means(summary: Summary) -> None:
    lines = []
    for label, tally in summary.metrics.items():
        bounds = tally.interval()
        lines.append(
            [
                label,
                str(len(tally.scores)),
                number(tally.mean),
                f"{number(bounds[0])} to {number(bounds[1])}" if bounds else "-",
                number(tally.share_right),
                number(tally.mean_empty_as_wrong),
                _counted(tally.failures) or "none",
            ]
        )
    columns = ["metric", "scored", "mean", "95 % interval", "share\nright", "empty\nas wrong", "without\nscore"]
    print_table(f"{summary.rows} rows", columns, lines, stream=sys.stderr)


def _print_groups(by: Sequence[Breakdown]) -> None:
    for breakdown in by:
        print_figures(breakdown.tables(), stream=sys.stderr)
        for note in breakdown.notes():
            click.echo(printable(note), err=True)


def print_summary(summary: Summary, run: RunFigures) -> None:
    """Prints the summary of all rows, those of earlier runs included."""
    _print_means(summary)
    _print_groups(run.by)
    for labels, text in _notes(summary):
        click.echo(printable(f"{', '.join(labels)}: {text}"), err=True)
    for remark in remarks(summary):
        click.echo(printable(remark), err=True)
    for label, tally in summary.metrics.items():
        if tally.judge is not None and (said := tally.judge.text(summary.prices)):
            click.echo(printable(f"{label}: {said}"), err=True)
        for line in tally.cascade.lines() if tally.cascade is not None else ():
            click.echo(printable(f"{label}: {line}"), err=True)
        if tally.uncertain:
            click.echo(f"{printable(label)}: {_told_uncertain(tally)}", err=True)
    rate = run.scored_rows / run.wall_s if run.wall_s else 0.0
    click.echo(f"{run.scored_rows} rows in {run.wall_s:.1f} s ({rows_per_second(rate)}) by {run.place}", err=True)
    if texts := sum(summary.texts.values()):
        found = ", ".join(
            f"{summary.texts[name]} {words}"
            for name, words in (
                ("memory", "in memory"),
                ("disk", "on disk"),
                ("redis", "in Redis"),
                ("joined", "shared with other rows"),
                ("computed", "encoded"),
            )
            if summary.texts[name]
        )
        click.echo(f"{texts} texts: {found}", err=True)
    if waited_s := sum(summary.seconds.values()):
        shares = ", ".join(f"{name} {seconds / waited_s:.0%}" for name, seconds in summary.seconds.items())
        click.echo(f"rows waited for: {shares} (shared work counted for each row)", err=True)
    if run.command:
        click.echo(f"the same again: {run.command}", err=True)


def _told_uncertain(tally: MetricTally) -> str:
    judged = tally.verdicts.total()
    told = f"{tally.uncertain} of {judged} verdicts are uncertain ({tally.uncertain / judged:.1%}): have them looked at"
    return (
        told if tally.uncertain == judged else f"{told}; share right of the others {number(tally.share_right_certain)}"
    )


def _notes(summary: Summary) -> list[tuple[list[str], str]]:
    """Failures and warnings, each once, with all metrics of which it holds."""
    labels: dict[str, list[str]] = {}
    for label, tally in summary.metrics.items():
        texts = [
            f"{status}, for instance {identifier}: {message or 'no message'}"
            for status, (identifier, message) in tally.examples.items()
        ]
        if tally.warnings:
            texts.append(f"warnings: {_counted(tally.warnings)}")
        for text in texts:
            labels.setdefault(text, []).append(label)
    return [(named, text) for text, named in labels.items()]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
