"""One run of `gradewire score`."""

import contextlib
import itertools
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from gradewire.cli.input.files import InputFile
from gradewire.cli.input.pictures import with_picture_digests
from gradewire.cli.input.record import printable
from gradewire.cli.input.rows import Row
from gradewire.cli.options.connection import Connection
from gradewire.cli.options.judge_prices import JudgePrices
from gradewire.cli.options.metrics import MetricOptions
from gradewire.cli.output.files import write_json
from gradewire.cli.output.progress import progress
from gradewire.cli.output.result_rows import encode_rows
from gradewire.cli.output.results_file import ResultsFile
from gradewire.cli.output.summary import Summary
from gradewire.cli.output.table_file import check_whole
from gradewire.cli.problems import InputError, silence_stdout
from gradewire.cli.run.file_corpus import refuse_part_of_a_request
from gradewire.cli.run.manifest_file import (
    cost_of,
    counts_of,
    digests_of,
    forget_manifest,
    metric_fields,
    output_digest,
    reading_parameters,
    save_manifest,
)
from gradewire.cli.run.plan import ScorePlan, resolve_plan
from gradewire.cli.run.row_scorer import RowScorer, ScoredRow
from gradewire.cli.score.by.collected import GroupColumn, GroupedScores
from gradewire.cli.score.by.figures import breakdowns
from gradewire.cli.score.output import Output
from gradewire.cli.summary.text import RunFigures, print_summary, summary_document
from gradewire.manifests import RunClock, RunManifest, versions
from gradewire.tables import number
from gradewire.transport import Transport

# Room for the longest status.
_MIN_CELL_COLUMNS = 17


@dataclass(slots=True)
class ScoreJob:
    """One run of the command."""

    source: InputFile
    metrics: MetricOptions
    connection: Connection
    output: Output
    prices: JudgePrices
    quiet: bool
    baseline: str | None = None
    summary: Summary = field(default_factory=Summary)
    grouped: GroupedScores = field(init=False)
    synthetic_rows: int = 0

    def __post_init__(self) -> None:
        self.grouped = GroupedScores([GroupColumn(grouping) for grouping in self.source.groupings])

    async def run(self, *, transport: Transport | None) -> None:
        """Scores the rows and tells the summary; `transport`, from tests, takes the place of the connection.

        Raises:
            click.ClickException: The file, an option or the server is not as it has to be.
        """
        opened = self.source.open()
        for note in opened.notes:
            click.echo(note, err=True)
        clock = RunClock()
        out, quiet = self.output.rows, self.quiet
        with ResultsFile(out) if out else contextlib.nullcontext() as results:
            self.output.check()
            async with self.connection.open(transport) as client:
                plan = await resolve_plan(
                    client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=quiet
                )
                self.summary.prices = self.prices if plan.judge_elsewhere or self.prices.known else None
                if out and self.output.resume:
                    refuse_part_of_a_request(plan.chosen, self.source, out, plan.pictures)
                known = results.waiting if results else lambda _: None
                scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s, known=known)
                # What is written says which picture was shown, so that --resume finds out when it is another one.
                read = with_picture_digests(opened.rows, plan.pictures if results else None)
                if self.output.is_whole:
                    self._check_whole(read, scorer.lines)
                    return
                total = self.source.count() if self.output.resume or not quiet else None
                rows = self._rows(read, results, scorer, total)
                forget_manifest(self.output.manifest)
                before = self.summary.rows
                with progress("scoring", total, quiet=quiet, rows_on_stdout=results is None, already=before) as shown:
                    await scorer.score(rows, lambda batch: self._write(batch, results, scorer), shown, already=before)
                told = self.output.summary is not None or self.output.manifest is not None
                version = (await client.models()).server_version if told else ""
            left = results.finish() if results else ""
            for note in opened.late_notes:
                click.echo(note, err=True)
            if not self.summary.rows:
                click.echo("nothing was scored: the input has no rows", err=True)
            if left:
                click.echo(left, err=True)
            figures = RunFigures(
                command=self._reproduce(scorer),
                place=self.connection.place,
                scored_rows=self.summary.rows - before,
                wall_s=clock.times().wall_s,
                notes=(*opened.notes, *opened.late_notes),
                by=breakdowns(self.grouped, self.baseline, asked=self.source.groupings_asked),
                server_version=version,
            )
            self._write_outputs(clock, figures, scorer)
        if not quiet:
            self._print_summary(figures, scorer, plan)

    def _write_outputs(self, clock: RunClock, figures: RunFigures, scorer: RowScorer) -> None:
        """Writes what is made of all rows; the rows beside a table go when nothing else needs them."""
        self.output.make_table()
        if self.output.summary is not None:
            write_json(self.output.summary, summary_document(self.summary, figures))
        if self.output.manifest is not None:
            save_manifest(self.output.manifest, self._manifest(clock, figures, scorer.lines))
        self.output.remove_rows()

    def _check_whole(self, rows: Iterator[Row], lines: Mapping[str, str]) -> None:
        """Finds that a table is of these rows, so that nothing is left to be scored; raises InputError otherwise."""
        if self.output.path is None:
            raise RuntimeError("standard output is no table")
        statuses = check_whole(self.output.path, rows, lines)
        if self.output.summary is not None and not self.output.summary.exists():
            raise InputError(
                f"--summary-json {self.output.summary}: {self.output.path} is whole, and nothing is scored that could "
                "be told: leave the option out, or score again with --overwrite"
            )
        for found in statuses:
            self.summary.count(found)
        if not self.quiet:
            click.echo(f"{self.output.path} is whole: nothing is left to score", err=True)

    def _print_summary(self, figures: RunFigures, scorer: RowScorer, plan: ScorePlan) -> None:
        print_summary(self.summary, figures)
        if scorer.retries.rows:
            click.echo(
                f"sent again: {scorer.retries.rows} rows, {scorer.retries.scored} of them were answered", err=True
            )
        if self.synthetic_rows and plan.synthetic == "none" and self.metrics.synthetic is None:
            click.echo(
                f"synthetic answers: not used, though {self.synthetic_rows} rows have some (--synthetic inline)",
                err=True,
            )

    def _manifest(self, clock: RunClock, figures: RunFigures, lines: Mapping[str, str]) -> RunManifest:
        return RunManifest(
            command="score",
            versions=versions(figures.server_version),
            place=figures.place,
            **metric_fields(lines),
            inputs=digests_of(self.source.named_paths.values()),
            output=output_digest(self.output.path),
            parameters=reading_parameters(self.source),
            counts=counts_of(self.summary, scored_now=figures.scored_rows),
            cost=cost_of(self.summary, self.summary.prices),
            times=clock.times(),
            machine=clock.machine(),
            reproduce=figures.command,
            notes=figures.notes,
        )

    def _rows(
        self, rows: Iterator[Row], results: ResultsFile | None, scorer: RowScorer, total: int | None
    ) -> Iterator[Row]:
        rows = self._watched(rows)
        if results is None:
            return rows
        return results.left(rows, scorer.lines, self._kept, resume=self.output.resume, input_rows=total)

    def _kept(self, row: Row, output: Mapping[str, Any]) -> None:
        """Takes in a row that an earlier run scored."""
        self.summary.add(output, row=row)
        self.grouped.add(row, output)

    def _watched(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.synthetic_rows += bool(row.item and row.item.get("synthetic_answers"))
            yield row

    def _write(self, batch: Sequence[ScoredRow], results: ResultsFile | None, scorer: RowScorer) -> None:
        if results is not None:
            results.write([scored.output for scored in batch])
        else:
            try:
                self._print(batch, scorer)
            except BrokenPipeError:
                raise
            except OSError as error:
                silence_stdout()
                raise InputError(
                    f"standard output: {error.strerror or error}; with --out FILE, --resume goes on from what is there"
                ) from error
        for scored in batch:
            self.summary.add(scored.output, scored.scores, row=scored.row)
            self.grouped.add(scored.row, scored.output)

    def _print(self, batch: Sequence[ScoredRow], scorer: RowScorer) -> None:
        if self.output.printed_table:
            if not self.summary.rows:
                click.echo(_table_line("id", [f"{label:>{_MIN_CELL_COLUMNS}}" for label in scorer.lines]))
            for scored in batch:
                cells = [_cell(label, result) for label, result in scored.output["scores"].items()]
                click.echo(_table_line(scored.row.id, cells))
        else:
            sys.stdout.buffer.write(encode_rows([scored.output for scored in batch], first=not self.summary.rows))
            sys.stdout.buffer.flush()

    def _reproduce(self, scorer: RowScorer) -> str:
        # A metric that could not be computed at all has no line.
        lines = [line for line in scorer.lines.values() if line]
        if not lines:
            return ""
        prompts = itertools.chain(*(("--prompt", str(given.path)) for given in self.metrics.prompts))
        words = [*self.source.arguments, "--metrics", ",".join(lines), *prompts, *self.connection.arguments]
        return shlex.join(["gradewire", "score", *words])


def _cell(label: str, result: Mapping[str, Any]) -> str:
    columns = max(_MIN_CELL_COLUMNS, len(label))
    return f"{number(result['score']) if result['score'] is not None else result['status']:>{columns}}"


def _table_line(identifier: str, cells: Iterable[str]) -> str:
    return f"{printable(identifier)[:24]:<24} {' '.join(cells)}"
