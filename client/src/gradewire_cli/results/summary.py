"""Summarize a run, as text and JSON: means with intervals, failures by reason, and notes."""

from __future__ import annotations

import importlib.metadata
import itertools
import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from gradewire._common_failures import OF_FIELDS
from gradewire.metrics import Correctness, Smile
from gradewire.results import MetricScore, ScoreWarning, Status
from gradewire_cli.options.common import FailOn, written
from gradewire_cli.problems import tell
from gradewire_cli.results.progress import rows_per_second
from gradewire_cli.results.tables import (
    UNDEFINED,
    Cell,
    Table,
    Value,
    count,
    measured,
    number,
    print_table,
    print_tables,
)
from gradewire_cli.results.tallies import CascadeTally, JudgeTally, MetricTally, asks_judge, is_cascade
from gradewire_cli.rows.formats import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.results.groups import Breakdown
    from gradewire_cli.rows.row import Row

# Minimum share of uncertain verdicts for the hint on --level. It is about a quarter on rows like those of the fit.
_MANY_UNCERTAIN = 0.4
# Minimum gap between a mean and the share of right answers that causes a note.
_FAR = 0.05


@dataclass(slots=True)
class Summary:
    """Statistics of all metrics over the rows so far.

    Attributes:
        failed_rows: Number of rows with at least one failure. An empty prediction is not a failure.
        unscored_rows: Number of rows that lack at least one score.
        texts: Number of strings that this run encoded or found in a cache, by source, without strings for judges.
        seconds: Seconds that this run's rows spent in each stage. Shared work counts fully for each row.
    """

    rows: int = 0
    failed_rows: int = 0
    unscored_rows: int = 0
    metrics: dict[str, MetricTally] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    prices: JudgePrices | None = None

    def count(self, statuses: AbstractSet[str]) -> None:
        """Count a row with these statuses."""
        self.rows += 1
        self.failed_rows += bool(statuses - {Status.OK, Status.EMPTY_PREDICTION})
        self.unscored_rows += bool(statuses - {Status.OK})

    def fails(self, on: FailOn) -> bool:
        """Return True if the command fails under this value of --fail-on."""
        return {"failure": self.failed_rows, "no-score": self.unscored_rows, "never": 0}[on] > 0

    def add(
        self, output: Mapping[str, Any], scores: Mapping[str, MetricScore] | None = None, *, row: Row | None = None
    ) -> None:
        """Count an output row. `scores` contains the row's costs if this run scored the row."""
        self.count({result["status"] for result in output["scores"].values()})
        for label, result in output["scores"].items():
            tally = self.metrics.get(label)
            if tally is None:
                judge = JudgeTally() if asks_judge(label) else None
                cascade = CascadeTally() if is_cascade(label) else None
                tally = self.metrics[label] = MetricTally(judge=judge, cascade=cascade)
            tally.add(label, result, identifier=output["id"], row=row)
            if tally.judge is not None:
                tally.judge.add(result, (scores or {}).get(label))
        for label, score in (scores or {}).items():
            if asks_judge(label):
                continue
            hits, timing = score.cache_hits, score.timing
            for name in ("memory", "disk", "redis", "joined", "computed"):
                self.texts[name] += getattr(hits, name)
            for name in ("queue", "cache", "tokenize", "inference"):
                self.seconds[name] += getattr(timing, f"{name}_s")


def result_notes(summary: Summary) -> Iterator[str]:
    """Yield notes on means that are far from the share of right answers, and on thresholds that were not fitted.

    There are none beside `correctness`, whose verdicts answer the question that the other metrics leave open.
    """
    if _has_correctness(summary):
        return
    misleading = [
        f"{label} calls {tally.share_right:.1%} of the rows right, but its mean is {tally.mean:.3f}"
        for label, tally in summary.metrics.items()
        # The comparison is False for NaN (no verdicts).
        if abs(tally.mean - tally.share_right) > _FAR
    ]
    if misleading:
        yield (
            f"a mean is not a share of right answers: {'; '.join(misleading)}. Read the share right instead, or score "
            f"{Correctness.name}, whose mean is a probability"
        )
    for label, tally in summary.metrics.items():
        if tally.warnings[ScoreWarning.UNCALIBRATED] and tally.line:
            yield (
                f"{label} is {ScoreWarning.UNCALIBRATED}, because its threshold was not fitted to this encoder and "
                f"sentence weight. {tally.fit_hint}"
            )
        elif _has_general_threshold(tally):
            yield (
                f"{label} calls scores of 2/3 or more right, as its paper does, because no threshold was fitted to "
                f"this encoder. {tally.fit_hint}"
            )


def level_hint(tally: MetricTally) -> str:
    """Return a sentence on --level if many verdicts of `correctness` are uncertain, otherwise ""."""
    judged = tally.verdicts.total()
    if not _is_probability(tally) or not judged or tally.uncertain < _MANY_UNCERTAIN * judged:
        return ""
    return (
        "If these rows are far from the rows of the fit, label about 50 and run: "
        f"gradewire calibrate FILE --metric {Correctness.name} --level"
    )


def _has_correctness(summary: Summary) -> bool:
    return any(_is_probability(tally) and tally.verdicts for tally in summary.metrics.values())


def _is_probability(tally: MetricTally) -> bool:
    return tally.line.partition("?")[0].partition("/")[0] == Correctness.name


def _has_general_threshold(tally: MetricTally) -> bool:
    name, _, parameters = tally.line.partition("?")
    is_smile = name.partition("/")[0].partition(":")[0] == Smile.name
    return is_smile and bool(tally.verdicts) and "&threshold=" not in f"&{parameters}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run's command, place, times and notes, for the summary.

    Attributes:
        command: The command that reproduces the scores, or "" without scores.
        server_version: The server's gradewire version, or "" if unknown.
        reported: Failures that were printed during the run.
        columns: A sentence on the columns of the input and on the columns that are read.
    """

    command: str
    location: str
    scored_rows: int
    wall_s: float
    notes: Sequence[str] = ()
    by: Sequence[Breakdown] = ()
    server_version: str = ""
    reported: AbstractSet[str] = frozenset()
    columns: str = ""


def summary_document(summary: Summary, run: RunFacts) -> dict[str, Any]:
    """Return the summary of all rows for --summary-json. Values may be NaN."""
    return {
        "rows": summary.rows,
        "failed_rows": summary.failed_rows,
        "unscored_rows": summary.unscored_rows,
        "metrics": {label: _metric_values(tally) for label, tally in summary.metrics.items()},
        "by": {written(found.columns): found.document() for found in run.by},
        "texts": dict(summary.texts),
        "stages_s": dict(summary.seconds),
        "run": {"command": run.command, "place": run.location, "server_version": run.server_version}
        | {"scored_rows": run.scored_rows, "wall_s": run.wall_s, "notes": list(run.notes)},
        "gradewire_version": importlib.metadata.version("gradewire"),
    }


def _metric_values(tally: MetricTally) -> dict[str, Any]:
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


def mean_text(tally: MetricTally) -> str:
    """Return the mean, after its number of rows if less than half of the rows have a score."""
    few = 2 * len(tally.scores) < tally.rows and not math.isnan(tally.mean)
    return f"{len(tally.scores)} of {tally.rows} rows: {number(tally.mean)}" if few else number(tally.mean)


def summary_table(summary: Summary) -> Table:
    """Return each metric's mean, share of right answers and counts as a table."""
    columns: dict[str, Callable[[MetricTally], Value]] = {
        "scored": lambda tally: count(len(tally.scores)),
        "mean": lambda tally: Value(mean_text(tally), tally.mean),
        "95 % interval": lambda tally: Value(_interval_text(tally.interval())),
        "share\nright": lambda tally: measured(tally.share_right),
        "rows\nUNCERTAIN": lambda tally: count(tally.uncertain) if tally.verdicts else Value(UNDEFINED),
    }
    if any(tally.statuses[Status.EMPTY_PREDICTION] for tally in summary.metrics.values()):
        columns["empty\nas wrong"] = lambda tally: measured(tally.mean_empty_as_wrong)
    columns["without\nscore"] = lambda tally: Value(_counted(tally.failures) or "none")
    lines: list[list[Cell]] = [
        [label, *(of(tally) for of in columns.values())] for label, tally in summary.metrics.items()
    ]
    return Table(f"{summary.rows} rows", ["metric", *columns], lines)


def _print_means(summary: Summary) -> None:
    table = summary_table(summary)
    print_table(table.title, table.columns, [list(map(str, row)) for row in table.rows], stream=sys.stderr)


def _interval_text(bounds: tuple[float, float] | None) -> str:
    return f"{number(bounds[0])} to {number(bounds[1])}" if bounds else "-"


def print_summary(summary: Summary, run: RunFacts) -> None:
    """Print the summary of all rows, including rows from earlier runs."""
    _print_means(summary)
    for breakdown in run.by:
        print_tables(breakdown.tables(), stream=sys.stderr)
        tell(map(printable, breakdown.notes()))
    failures = (f"{', '.join(labels)}: {text}" for labels, text in _failures_and_warnings(summary, run))
    tell(map(printable, itertools.chain(failures, result_notes(summary))))
    for label, tally in summary.metrics.items():
        if tally.judge is not None and (said := tally.judge.text(summary.prices)):
            click.echo(printable(f"{label}: {said}"), err=True)
        for line in tally.cascade.lines() if tally.cascade is not None else ():
            click.echo(printable(f"{label}: {line}"), err=True)
        if tally.uncertain:
            click.echo(f"{printable(label)}: {uncertain_text(tally)}", err=True)
    rate = run.scored_rows / run.wall_s if run.wall_s else 0.0
    click.echo(f"{run.scored_rows} rows in {run.wall_s:.1f} s ({rows_per_second(rate)}) by {run.location}", err=True)
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
        click.echo(f"time by stage: {shares} (shared work counts for each row)", err=True)
    if run.command:
        click.echo(f"reproduce: {run.command}", err=True)


def uncertain_text(tally: MetricTally) -> str:
    """Return a sentence on a metric's uncertain verdicts, with the way on."""
    judged = tally.verdicts.total()
    text = f"{tally.uncertain} of {judged} verdicts are uncertain ({tally.uncertain / judged:.1%}). Review them"
    others = f"The share of right answers among the other verdicts is {number(tally.share_right_certain)}"
    return ". ".join(filter(None, [text, others if tally.uncertain < judged else "", level_hint(tally)]))


def _failures_and_warnings(summary: Summary, run: RunFacts) -> list[tuple[list[str], str]]:
    labels: dict[str, list[str]] = {}
    # UNCERTAIN has a column of its own.
    elsewhere = {ScoreWarning.UNCERTAIN, *([ScoreWarning.UNCALIBRATED] if _has_correctness(summary) else [])}
    for label, tally in summary.metrics.items():
        texts = [
            _failure_text(tally, status, run.columns)
            for status, (_, message) in tally.examples.items()
            if message not in run.reported
        ]
        if tally.lacks_judge:
            texts.append(
                f"no mean, because {len(tally.scores)} of {tally.rows} rows needed no judge, and the judge graded none"
            )
        if shown := {warning: count for warning, count in tally.warnings.items() if warning not in elsewhere}:
            texts.append(f"warnings: {_counted(shown)}")
        for text in texts:
            labels.setdefault(text, []).append(label)
    return [(named, text) for text, named in labels.items()]


def _failure_text(tally: MetricTally, status: str, columns: str) -> str:
    identifier, message = tally.examples[status]
    if tally.common_failure != status:
        return f"{status}, for example id {identifier}: {message or 'no message'}"
    hint = f". {columns}" if status in OF_FIELDS and columns else ""
    return f"warning: all {tally.rows} rows fail for the same reason: {status}: {message}{hint}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
