"""`gradewire score`: scores the answers of a file."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from gradewire.cli.input.files import ALIAS_HELP, InputFile, input_file, input_options
from gradewire.cli.input.records import STDIN
from gradewire.cli.options.connection import Connection, connection_of, connection_options
from gradewire.cli.options.judges import judge_options, tell_about_judges, with_prompts
from gradewire.cli.options.metrics import metric_options, metrics_help, plan_of, with_all_metrics
from gradewire.cli.output.clashes import refuse_clashes
from gradewire.cli.output.results_file import ResultsFile, count_results, encode_row, files_of
from gradewire.cli.output.summary import Summary
from gradewire.cli.output.terminal import number, progress
from gradewire.cli.problems import (
    EXIT_INTERRUPTED,
    EXIT_ROWS_FAILED,
    InputError,
    exit_codes,
    one_line_errors,
    silence_stdout,
)
from gradewire.cli.run.file_corpus import refuse_part_of_a_request, with_file_corpus
from gradewire.cli.run.pipeline import Run, ScoredRow
from gradewire.cli.score.summary_text import print_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gradewire.cli.input.rows import Row
    from gradewire.cli.options.plan import ScorePlan
    from gradewire.transport import Transport

# Room for the longest status.
_MIN_CELL_COLUMNS = 17

FailOn = Literal["failure", "no-score", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output options.

    Attributes:
        path: File for the rows; None: standard output.
        resume: Go on with the file.
        overwrite: Begin it anew.
        table: Rows on standard output as a table in place of JSONL.
        quiet: No progress and no summary.
    """

    path: Path | None
    resume: bool
    overwrite: bool
    table: bool
    quiet: bool


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
@input_options
@metric_options
@judge_options
@connection_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows here (JSONL).")
@click.option("--resume", is_flag=True, help="Go on with --out where an earlier run stopped; retries what timed out.")
@click.option("--overwrite", is_flag=True, help="Begin --out anew.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "table"]),
    default="jsonl",
    show_default=True,
    help="How rows look on standard output.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["failure", "no-score", "never"]),
    default="failure",
    show_default=True,
    help="Exit 1 on rows that failed, on rows without a score (empty predictions too), or never.",
)
@click.option("--quiet", is_flag=True, help="No progress, no summary.")
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
        refuse_clashes(files_of(out), "--out", {"the input": source.path})
    job = _ScoreJob(source, plan_of(options), connection_of(options), output)
    try:
        with one_line_errors():
            asyncio.run(job.run(transport=ctx.obj))
    except KeyboardInterrupt:
        way_on = f"; {count_results(out)} rows are in {out}, go on with --resume" if out and out.is_file() else ""
        click.echo(f"interrupted{way_on}", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    failures = {"failure": job.summary.failed_rows, "no-score": job.summary.unscored_rows, "never": 0}
    if failures[fail_on]:
        ctx.exit(EXIT_ROWS_FAILED)


class _ScoreJob:
    """One run of the command."""

    def __init__(self, source: InputFile, plan: ScorePlan, connection: Connection, output: Output) -> None:
        self.summary = Summary()
        self._source = source
        self._plan = plan
        self._connection = connection
        self._output = output
        self._synthetic = 0

    async def run(self, *, transport: Transport | None) -> None:
        opened = self._source.open()
        plan = self._plan.with_default_synthetic(present=opened.has_synthetic)
        began = time.monotonic()
        out = self._output.path
        there = [path for path in files_of(out)[:2] if path.exists()] if out else []
        if there and not (self._output.resume or self._output.overwrite):
            raise InputError(f"{there[0]} is there already: give --resume to go on with it, or --overwrite")
        with contextlib.ExitStack() as stack:
            results = stack.enter_context(ResultsFile(out)) if out else None
            async with self._connection.client(transport) as client:
                plan = await with_all_metrics(client, plan, reads_twice=self._source.path != STDIN)
                plan = with_prompts(plan)
                await tell_about_judges(client, plan)
                plan = await with_file_corpus(client, self._source, plan, quiet=self._output.quiet)
                if out and self._output.resume:
                    refuse_part_of_a_request(plan, self._source, out)
                known = results.waiting if results else lambda _: None
                run = Run(client, plan, known=known, deadline_s=self._connection.deadline_s)
                await run.begin()
                needs_total = self._output.resume or not self._output.quiet
                total = self._source.count() if needs_total else None
                rows = self._rows(opened.rows, results, run, total)
                shown = stack.enter_context(
                    progress(
                        "scoring",
                        total,
                        quiet=self._output.quiet,
                        rows_on_stdout=results is None,
                        already=self.summary.rows,
                    )
                )
                before = self.summary.rows
                async with contextlib.aclosing(run.score(rows)) as batches:
                    async for batch in batches:
                        self._write(batch, results, run)
                        shown.done(self.summary.rows)
            left = results.finish() if results else 0
        if out and left:
            click.echo(
                f"{left} earlier results fit no row of the input any more: they stay in {files_of(out)[1]}", err=True
            )
        if not self._output.quiet:
            print_summary(
                self.summary,
                command=self._reproduce(run),
                place=self._connection.place,
                scored_rows=self.summary.rows - before,
                wall_s=time.monotonic() - began,
            )
            if run.retries.rows:
                click.echo(f"sent again: {run.retries.rows} rows, {run.retries.scored} of them were answered", err=True)
            if self._synthetic and plan.synthetic == "none" and self._plan.synthetic is None:
                click.echo(
                    f"synthetic answers: not used, though {self._synthetic} rows have some (--synthetic inline)",
                    err=True,
                )

    def _rows(self, rows: Iterator[Row], results: ResultsFile | None, run: Run, total: int | None) -> Iterator[Row]:
        rows = self._watched(rows)
        if results is None:
            return rows
        if not self._output.resume:
            results.create()
            return rows
        return itertools.chain(results.resume(rows, run.lines, self.summary.add, input_rows=total), rows)

    def _watched(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self._synthetic += bool(row.item and row.item.get("synthetic_answers"))
            yield row

    def _write(self, batch: Sequence[ScoredRow], results: ResultsFile | None, run: Run) -> None:
        if results is not None:
            results.write([scored.output for scored in batch])
        else:
            try:
                self._print(batch, run)
            except BrokenPipeError:
                raise
            except OSError as error:
                silence_stdout()
                raise InputError(
                    f"standard output: {error.strerror or error}; with --out FILE, --resume goes on from what is there"
                ) from error
        for scored in batch:
            self.summary.add(scored.output, scored.scores)

    def _print(self, batch: Sequence[ScoredRow], run: Run) -> None:
        if self._output.table:
            if not self.summary.rows:
                click.echo(_table_line("id", [f"{label:>{_MIN_CELL_COLUMNS}}" for label in run.lines]))
            for scored in batch:
                cells = [_cell(label, result) for label, result in scored.output["scores"].items()]
                click.echo(_table_line(scored.row.id, cells))
        else:
            sys.stdout.buffer.write(b"".join(encode_row(scored.output) for scored in batch))
            sys.stdout.buffer.flush()

    def _reproduce(self, run: Run) -> str:
        # A metric that could not be computed at all has no line.
        lines = [line for line in run.lines.values() if line]
        if not lines:
            return ""
        prompts = itertools.chain(*(("--prompt", str(given.path)) for given in self._plan.prompts))
        words = [*self._source.arguments, "--metrics", ",".join(lines), *prompts, *self._connection.arguments]
        return shlex.join(["gradewire", "score", *words])


def _cell(label: str, result: Mapping[str, Any]) -> str:
    columns = max(_MIN_CELL_COLUMNS, len(label))
    return f"{number(result['score']) if result['score'] is not None else result['status']:>{columns}}"


def _table_line(identifier: str, cells: Iterable[str]) -> str:
    printable = identifier.encode(errors="replace").decode()
    return f"{printable[:24]:<24} {' '.join(cells)}"
