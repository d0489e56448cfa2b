"""Score a labelled file, or read its scores, for `agree`, `bench` and `calibrate`."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, get_args

import click

from gradewire_cli.options.common import OUTPUT_FILE, Command, quiet_option, seed_option
from gradewire_cli.options.connection import ConnectionOptions, connection_of
from gradewire_cli.options.help import option, stacked
from gradewire_cli.options.metrics import MetricOptions, metric_options_of
from gradewire_cli.problems import one_line_errors, tell
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.progress import progress
from gradewire_cli.rows.input_file import InputFile, input_file, labelled_official_options
from gradewire_cli.scoring.class_judging import check_judge, judge_classes
from gradewire_cli.scoring.labelled_rows import EvaluatorLabels, LabelledRows, label_named, with_stored_scores
from gradewire_cli.scoring.labels_file import LabelsFile, labels_file_of, labels_file_options
from gradewire_cli.scoring.plan import resolve_plan, scoring_options, single_metric, without_all
from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow
from gradewire_stats.consensus import LabelRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from gradewire.transport import Transport


RESAMPLES = 5000


def draw_options(*, resamples: int) -> Callable[[Command], Command]:
    """Return a decorator that adds --resamples (with the default `resamples`), --seed and --quiet."""
    return stacked(option("--resamples", type=click.IntRange(min=100), default=resamples), seed_option(0), quiet_option)


def labelled_options(*, resamples: int) -> Callable[[Command], Command]:
    """Return a decorator that adds options for rows, scores and labels, and `draw_options`."""
    return stacked(
        labelled_official_options,
        option("--where", multiple=True),
        option("--scores", type=OUTPUT_FILE, multiple=True),
        labels_file_options,
        option("--labels", type=click.Choice(get_args(LabelRule))),
        option("--without-flag", "without_flags", multiple=True),
        draw_options(resamples=resamples),
    )


against_option = option("--against")


class Draws(TypedDict):
    """The bootstrap arguments that gradewire_stats functions accept."""

    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRun:
    """Options for a run over labelled rows: input, metrics, connection, labels and bootstrap.

    Attributes:
        scores: Outputs of earlier runs to read instead of scoring.
        labels: Rule that combines annotators' labels. None means the row's label, or the annotators' mean if the row
            has no label.
        against: The metric that replaces annotators, or "" if annotators labelled the rows.
        labels_file: The file with the labels, or None if the rows contain the labels.
        classes_by_judge: True if a judge names the classes of wrong verdicts that rules leave open.
    """

    source: InputFile
    metrics: MetricOptions
    connection: ConnectionOptions
    scores: Sequence[Path]
    labels: LabelRule | None
    without_flags: frozenset[str]
    resamples: int
    seed: int
    quiet: bool
    against: str = ""
    labels_file: LabelsFile | None = None
    classes_by_judge: bool = False

    @property
    def draws(self) -> Draws:
        """The bootstrap arguments."""
        return {"resamples": self.resamples, "seed": self.seed}

    def collect(
        self,
        transport: Transport | None,
        *,
        keeps_rows: bool = False,
        check: Callable[[Sequence[str]], object] = lambda _: None,
    ) -> LabelledRows:
        """Score the labelled rows or read their scores; before scoring, call `check` with the metric labels."""
        labels = None if self.labels_file is None else self.labels_file.read()
        if labels is not None:
            labels.check(self.source)
        rows = LabelledRows(
            rule=self.labels,
            without_flags=self.without_flags,
            keeps_rows=keeps_rows,
            against=EvaluatorLabels(self.against) if self.against else None,
            from_file=labels,
        )
        with one_line_errors():
            if self.scores:
                for row, output in with_stored_scores(rows.labelled(self.source.open_with_rows().rows), self.scores):
                    rows.add(row, output)
            else:
                asyncio.run(self._score(rows, transport, check))
            if self.classes_by_judge:
                asyncio.run(self._judge_classes(rows, transport))
        return rows

    async def _judge_classes(self, rows: LabelledRows, transport: Transport | None) -> None:
        async with self.connection.open(transport) as client:
            await judge_classes(client, rows.wrong, self.metrics.judge, self.connection, quiet=self.quiet)

    def check_outputs(self, outputs: Iterable[tuple[str, Path | None]]) -> None:
        """Raise InputError if an output cannot be written or is also an input.

        `outputs` are pairs of an option and a file.
        """
        read = self.source.named_paths | {f"--scores {path}": path for path in self.scores}
        if self.labels_file is not None:
            read["--add" if self.labels_file.adds else "--labels-file"] = self.labels_file.path
        check_outputs(outputs, read)

    def _labels_to_compare(self, labels: Sequence[str]) -> list[str]:
        own = label_named(labels, self.against, "--against") if self.against else ""
        return [label for label in labels if label != own]

    async def _score(
        self, rows: LabelledRows, transport: Transport | None, check: Callable[[Sequence[str]], object]
    ) -> None:
        opened = self.source.open_with_rows()
        tell(opened.notes)
        began = time.monotonic()

        def take(batch: Sequence[ScoredRow]) -> None:
            for scored in batch:
                rows.add(scored.row, scored.output)

        async with self.connection.open(transport) as client:
            plan = await resolve_plan(
                client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=self.quiet
            )
            check(self._labels_to_compare(plan.chosen.labels))
            if self.classes_by_judge:
                await check_judge(client, self.metrics.judge)
            scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s)
            with progress("scoring", self.source.count(), quiet=self.quiet) as shown:
                await scorer.score(rows.labelled(opened.rows), take, shown)
            rows.server_version = (await client.models()).server_version
        tell(opened.late_notes)
        if not self.quiet:
            click.echo(
                f"{len(rows)} rows scored in {time.monotonic() - began:.1f} s by {self.connection.description}",
                err=True,
            )


labelled_run_options = stacked(scoring_options, labelled_options(resamples=RESAMPLES), against_option)


def labelled_run_of(
    options: Mapping[str, Any], metrics: MetricOptions | None = None, connection: ConnectionOptions | None = None
) -> LabelledRun:
    """Parse the options for a `LabelledRun`. `metrics` and `connection` replace the parsed values."""
    against = options.get("against") or ""
    if against and options["labels"]:
        raise click.UsageError("--labels combines annotators' labels and cannot be used with --against")
    joins = bool(options.get("labels_file") or options.get("add"))
    if against and joins:
        raise click.UsageError("--against replaces the labels, so it cannot be used with --labels-file. Leave one out")
    metrics = metrics or metric_options_of(options)
    if against and not options["scores"]:
        metrics = _with_evaluator(metrics, against)
    connection = connection or connection_of(options)
    source = input_file(options, needed=("references", "prediction", *_needed(against=bool(against), joins=joins)))
    return LabelledRun(
        source=source,
        metrics=metrics,
        connection=connection,
        without_flags=frozenset(options["without_flags"]),
        against=against,
        labels_file=labels_file_of(options, source),
        classes_by_judge=options.get("error_classes") == "judge",
        **{name: options[name] for name in ("scores", "labels", "resamples", "seed", "quiet")},
    )


def _needed(*, against: bool, joins: bool) -> Sequence[str]:
    """Return the fields that only labels need."""
    if joins:
        return ("id",)
    return () if against else ("label",)


def _with_evaluator(metrics: MetricOptions, against: str) -> MetricOptions:
    written = str(metrics.metrics)
    named, asked = single_metric(against, written, "--against")
    if asked == (named,) and written == without_all(written):
        raise click.UsageError(f"--against {against}: there is no other metric to compare. Name one with --metrics")
    return metrics if named in asked else replace(metrics, metrics=f"{written},{against}")


def described_run(run: LabelledRun, rows: LabelledRows) -> dict[str, Any]:
    """Return the run's file, rows, labels and draws as JSON values."""
    return {
        "file": run.source.name,
        "where": {column: sorted(values) for column, values in run.source.options.where.items()},
        "against": None
        if rows.against is None
        else {
            "metric": rows.against.label,
            "line": rows.against.tally.line,
            "statuses": dict(rows.against.tally.statuses),
            "has_verdicts": rows.against.has_verdicts,
            "left_out": rows.against.left_out,
        },
        "labels": {
            "rule": run.labels or "own",
            **(
                {}
                if rows.from_file is None
                else {"file": rows.from_file.path, "labels_without_a_row": rows.from_file.without_row}
            ),
            "unlabelled_rows": rows.unlabelled,
            "unlabelled_flags": dict(sorted(rows.unlabelled_flags.items())),
            "unreadable": rows.unreadable,
            "rows_without_annotators": rows.alone,
        },
        "flags": {
            "rows": dict(sorted(rows.flags.items())),
            "without": sorted(run.without_flags),
            "left_out": rows.flagged_out,
            "proposed": rows.proposed,
        },
        "bootstrap": described_draws(run.resamples, run.seed, unit="question"),
    }


def described_draws(resamples: int, seed: int, *, unit: str) -> dict[str, Any]:
    """Return the intervals' bootstrap settings as JSON values. `unit` names what is resampled."""
    return {"resamples": resamples, "seed": seed, "confidence": 0.95, "unit": unit}
