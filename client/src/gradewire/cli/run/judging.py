"""What `agree` and `bench` share: options that say what is judged, and the run that brings scores beside labels."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradewire.cli.input.files import InputFile, input_file, input_options
from gradewire.cli.input.records import STDIN
from gradewire.cli.options.connection import Connection, connection_of, connection_options
from gradewire.cli.options.judges import judge_options, tell_about_judges, with_prompts
from gradewire.cli.options.labelled import labelled_options
from gradewire.cli.options.metrics import metric_options, plan_of, with_all_metrics
from gradewire.cli.output.clashes import refuse_clashes
from gradewire.cli.output.terminal import progress
from gradewire.cli.problems import one_line_errors
from gradewire.cli.run.earlier_scores import with_earlier_scores
from gradewire.cli.run.file_corpus import with_file_corpus
from gradewire.cli.run.judged_rows import JudgedColumns
from gradewire.cli.run.pipeline import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gradewire.agreement.annotators.labels import LabelRule
    from gradewire.cli.options.plan import ScorePlan
    from gradewire.transport import Transport

Command = TypeVar("Command", bound="Callable[..., Any]")

RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is judged, and how far its figures can be trusted.

    Attributes:
        source: The labelled file.
        plan: What is scored.
        connection: Where.
        scores: Outputs of earlier runs in place of a run.
        labels: Rule for several annotators; None: the row's own label, else their mean.
        without_flags: Rows with one of these flags are left out.
        resamples: Draws of the bootstrap.
        seed: Of the bootstrap.
        quiet: No progress.
    """

    source: InputFile
    plan: ScorePlan
    connection: Connection
    scores: Sequence[Path]
    labels: LabelRule | None
    without_flags: frozenset[str]
    resamples: int
    seed: int
    quiet: bool

    def collect(self, transport: Transport | None, *, keeps_rows: bool = False) -> JudgedColumns:
        """Scores the labelled rows, or reads their scores.

        Args:
            transport: From tests, in place of the connection.
            keeps_rows: Whether the rows' texts are kept.

        Raises:
            click.ClickException: The file, an option or the server is not as it has to be.
        """
        columns = JudgedColumns(rule=self.labels, without_flags=self.without_flags, keeps_rows=keeps_rows)
        with one_line_errors():
            if self.scores:
                for row, output in with_earlier_scores(columns.labelled(self.source.open().rows), self.scores):
                    columns.add(row, output)
            else:
                asyncio.run(self._score(columns, transport))
        return columns

    def refuse_clashes(self, option: str, output: Path | None) -> None:
        """Refuses an output that is read; raises InputError."""
        if output is not None:
            read = {"the input": self.source.path} | {f"--scores {path}": path for path in self.scores}
            refuse_clashes([output], option, read)

    async def _score(self, columns: JudgedColumns, transport: Transport | None) -> None:
        opened = self.source.open()
        began = time.monotonic()
        done = 0
        async with self.connection.client(transport) as client:
            plan = self.plan.with_default_synthetic(present=opened.has_synthetic)
            plan = await with_all_metrics(client, plan, reads_twice=self.source.path != STDIN)
            plan = with_prompts(plan)
            await tell_about_judges(client, plan)
            plan = await with_file_corpus(client, self.source, plan, quiet=self.quiet)
            run = Run(client, plan, deadline_s=self.connection.deadline_s)
            await run.begin()
            with progress("scoring", self.source.count(), quiet=self.quiet) as shown:
                async with contextlib.aclosing(run.score(columns.labelled(opened.rows))) as batches:
                    async for batch in batches:
                        for scored in batch:
                            columns.add(scored.row, scored.output)
                        done += len(batch)
                        shown.done(done)
        if not self.quiet:
            click.echo(f"{done} rows scored in {time.monotonic() - began:.1f} s by {self.connection.place}", err=True)


def judging_options(command: Command) -> Command:
    """Adds FILE and the options of `Judging`; `judging_of` reads them."""
    shared = (input_options, metric_options, judge_options, connection_options, labelled_options(resamples=RESAMPLES))
    for options in reversed(shared):
        command = options(command)
    return command


def judging_of(options: Mapping[str, Any]) -> Judging:
    """Reads the options of `judging_options`; others are not looked at.

    Raises:
        click.ClickException: An option cannot be understood, or two exclude each other.
    """
    return judging_by(options, plan_of(options), connection_of(options))


def judging_by(options: Mapping[str, Any], plan: ScorePlan, connection: Connection) -> Judging:
    """Reads FILE, how it is read, and `labelled_options`; others are not looked at.

    Args:
        options: Values of the command's options by name.
        plan: What is scored.
        connection: Where.

    Raises:
        click.ClickException: An option cannot be understood.
    """
    return Judging(
        source=input_file(options, needed=("references", "prediction", "label")),
        plan=plan,
        connection=connection,
        scores=options["scores"],
        labels=options["labels"],
        without_flags=frozenset(options["without_flags"]),
        resamples=options["resamples"],
        seed=options["seed"],
        quiet=options["quiet"],
    )


def what_was_judged(judging: Judging, columns: JudgedColumns) -> dict[str, Any]:
    """File, rows, labels and draws behind any figures."""
    return {
        "file": judging.source.path,
        "where": {column: sorted(values) for column, values in judging.source.options.where.items()},
        "labels": {
            "rule": judging.labels or "own",
            "unlabelled_rows": columns.unlabelled,
            "unreadable": columns.unreadable,
            "rows_without_annotators": columns.alone,
        },
        "flags": {
            "rows": dict(sorted(columns.flags.items())),
            "without": sorted(judging.without_flags),
            "left_out": columns.flagged_out,
        },
        "bootstrap": {
            "resamples": judging.resamples,
            "seed": judging.seed,
            "confidence": 0.95,
            "unit": "question",
        },
    }
