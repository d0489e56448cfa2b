"""`gradewire score`: scores the answers of a file."""

import asyncio
import contextlib
import itertools
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import click

from gradewire.cli.input.columns import Row
from gradewire.cli.input.files import ALIAS_HELP, InputFile, input_file
from gradewire.cli.input.records import printable
from gradewire.cli.options.connection import Connection, connection_of
from gradewire.cli.options.group import OUTPUT_FILE, choice_option
from gradewire.cli.options.metrics import MetricOptions, metric_options_of, metrics_help
from gradewire.cli.output.figures import number
from gradewire.cli.output.overwrite_guard import refuse_overwriting
from gradewire.cli.output.progress import progress
from gradewire.cli.output.results_file import ResultsFile, count_results, encode_row, files_of
from gradewire.cli.output.summary import Summary
from gradewire.cli.problems import (
    EXIT_ROWS_FAILED,
    InputError,
    exit_codes,
    exit_on_interrupt,
    one_line_errors,
    silence_stdout,
)
from gradewire.cli.run.file_corpus import refuse_part_of_a_request
from gradewire.cli.run.plan import resolve_plan, scoring_options
from gradewire.cli.run.row_scorer import RowScorer, ScoredRow
from gradewire.cli.score.summary_text import print_summary
from gradewire.transport import Transport

# Room for the longest status.
_MIN_CELL_COLUMNS = 17

FailOn = Literal["failure", "no-score", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output options; without a path, rows go to standard output, as a table or as JSONL."""

    path: Path | None
    resume: bool
    overwrite: bool
    table: bool
    quiet: bool

    def way_on(self) -> str:
        """The line that is printed where the user interrupts."""
        if self.path is None or not self.path.is_file():
            return "interrupted"
        return f"interrupted; {count_results(self.path)} rows are in {self.path}, go on with --resume"


@click.command(
    "score",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire score answers.jsonl --out scores.jsonl
  gradewire score answers.jsonl --out scores.jsonl --resume
  gradewire score vqa.csv --map prediction=model_output --metrics smile:fast,exact_match --format table
  gradewire score answers.parquet --server 127.0.0.1:50051 --metrics 'smile:v1/1?sentence_weight=0.5'
  gradewire score answers.jsonl --metrics 'bertscore?layer=5&measure=recall,bleu,bleu?max_ngram=2'
  gradewire score captions.jsonl --metrics 'meteor,cider?corpus=prepared'
  gradewire score answers.jsonl --metrics all --out scores.jsonl
  gradewire score answers.jsonl --metrics smile,lave --judge qwen2.5-coder-1.5b-instruct --out scores.jsonl
  gradewire score vqa.jsonl --metrics 'lave?mode=rationale' --prompt mine.toml --out scores.jsonl
  cat answers.jsonl | gradewire score - --quiet | jq .scores.smile.score

{metrics_help()}

What counts a prepared corpus (cider, idf=prepared) counts the references of FILE, unless --reference-set or
reference_set=NAME names another set.

{exit_codes(failed_rows="some rows have no score (see --fail-on)")}""",
)
@scoring_options
@click.option("--out", type=OUTPUT_FILE, help="Write the rows here (JSONL).")
@click.option(
    "--resume", is_flag=True, help="Continue --out where an earlier run stopped; rows that timed out are tried again."
)
@click.option("--overwrite", is_flag=True, help="Replace --out.")
@choice_option("--format", "format_", among=("jsonl", "table"), about="Format of the rows on standard output.")
@choice_option(
    "--fail-on",
    among=("failure", "no-score", "never"),
    about="Exit 1 on rows that failed, on rows without a score (empty predictions too), or never.",
)
@click.option("--quiet", is_flag=True, help="Show no progress and no summary.")
@click.pass_context
def score_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    format_: str,
    fail_on: FailOn,
    quiet: bool,
    **options: Any,
) -> None:
    """Score the answers of FILE: JSONL, JSON, CSV or Parquet; - reads standard input.

    Rows are written in the order of the file, each as {"id", "index", "scores": {metric: {"score", "status", …}}, …}.
    A row that cannot be scored has a status in place of a score; the others are scored all the same.
    """
    if resume and overwrite:
        raise click.UsageError("--resume and --overwrite exclude each other: leave one out")
    if out is None and (resume or overwrite):
        raise click.UsageError("--resume and --overwrite need --out FILE")
    if out is not None and format_ == "table":
        raise click.UsageError("--format table is for standard output: leave out --out")
    output = Output(path=out, resume=resume, overwrite=overwrite, table=format_ == "table", quiet=quiet)
    source = input_file(options)
    if out is not None:
        refuse_overwriting([("--out", path) for path in files_of(out)], {"the input": source.path})
    job = _ScoreJob(source, metric_options_of(options), connection_of(options), output)
    with exit_on_interrupt(output.way_on), one_line_errors():
        asyncio.run(job.run(transport=ctx.obj))
    failures = {"failure": job.summary.failed_rows, "no-score": job.summary.unscored_rows, "never": 0}
    if failures[fail_on]:
        ctx.exit(EXIT_ROWS_FAILED)


@dataclass(slots=True)
class _ScoreJob:
    """One run of the command."""

    source: InputFile
    metrics: MetricOptions
    connection: Connection
    output: Output
    summary: Summary = field(default_factory=Summary)
    synthetic_rows: int = 0

    async def run(self, *, transport: Transport | None) -> None:
        opened = self.source.open()
        began = time.monotonic()
        out, quiet = self.output.path, self.output.quiet
        there = [path for path in files_of(out)[:2] if path.exists()] if out else []
        if there and not (self.output.resume or self.output.overwrite):
            raise InputError(f"{there[0]} is there already: give --resume to go on with it, or --overwrite")
        with contextlib.ExitStack() as stack:
            results = stack.enter_context(ResultsFile(out)) if out else None
            async with self.connection.client(transport) as client:
                plan = await resolve_plan(
                    client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=quiet
                )
                if out and self.output.resume:
                    refuse_part_of_a_request(plan.chosen, self.source, out)
                known = results.waiting if results else lambda _: None
                scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s, known=known)
                total = self.source.count() if self.output.resume or not quiet else None
                rows = self._rows(opened.rows, results, scorer, total)
                before = self.summary.rows
                shown = stack.enter_context(
                    progress("scoring", total, quiet=quiet, rows_on_stdout=results is None, already=before)
                )
                await scorer.score(rows, lambda batch: self._write(batch, results, scorer), shown, already=before)
            left = results.finish() if results else 0
        if out and left:
            click.echo(
                f"{left} earlier results fit no row of the input any more: they stay in {files_of(out)[1]}", err=True
            )
        if quiet:
            return
        print_summary(
            self.summary,
            command=self._reproduce(scorer),
            place=self.connection.place,
            scored_rows=self.summary.rows - before,
            wall_s=time.monotonic() - began,
        )
        if scorer.retries.rows:
            click.echo(
                f"sent again: {scorer.retries.rows} rows, {scorer.retries.scored} of them were answered", err=True
            )
        if self.synthetic_rows and plan.synthetic == "none" and self.metrics.synthetic is None:
            click.echo(
                f"synthetic answers: not used, though {self.synthetic_rows} rows have some (--synthetic inline)",
                err=True,
            )

    def _rows(
        self, rows: Iterator[Row], results: ResultsFile | None, scorer: RowScorer, total: int | None
    ) -> Iterator[Row]:
        rows = self._watched(rows)
        if results is None:
            return rows
        if not self.output.resume:
            results.create()
            return rows
        return itertools.chain(results.resume(rows, scorer.lines, self.summary.add, input_rows=total), rows)

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
            self.summary.add(scored.output, scored.scores)

    def _print(self, batch: Sequence[ScoredRow], scorer: RowScorer) -> None:
        if self.output.table:
            if not self.summary.rows:
                click.echo(_table_line("id", [f"{label:>{_MIN_CELL_COLUMNS}}" for label in scorer.lines]))
            for scored in batch:
                cells = [_cell(label, result) for label, result in scored.output["scores"].items()]
                click.echo(_table_line(scored.row.id, cells))
        else:
            sys.stdout.buffer.write(b"".join(encode_row(scored.output) for scored in batch))
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
