"""The command `gradewire score`."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from gradewire.errors import needed_by
from gradewire_cli.options.common import (
    OUTPUT_FILE,
    FailOn,
    check_resume,
    choice_option,
    everyday_quiet_option,
    fail_on_option,
    grouping_options,
    resume_options,
)
from gradewire_cli.options.connection import ConnectionOptions, connection_of
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.options.judge import JudgePrices, prices_of, prices_option
from gradewire_cli.options.metrics import MetricOptions, metric_options_of, metrics_help
from gradewire_cli.problems import (
    InputError,
    UnreachableError,
    exit_on_interrupt,
    one_line_errors,
    silence_stdout,
    tell,
)
from gradewire_cli.results.groups import (
    Breakdown,
    GroupColumn,
    GroupedScores,
    ModelScores,
    breakdowns,
    check_baseline,
    check_comparable,
    require_baseline,
)
from gradewire_cli.results.journal import check_outputs, files_of, refuse_existing
from gradewire_cli.results.manifest import RunManifest
from gradewire_cli.results.manifest_entries import (
    RunClock,
    cost_of,
    counts_of,
    digests_of,
    forget_manifest,
    manifest_path_of,
    metric_fields,
    output_digest,
    reading_parameters,
    row_output_options,
    save_manifest,
    versions,
)
from gradewire_cli.results.progress import progress
from gradewire_cli.results.results_table import check_whole, is_table, part_of, write_table
from gradewire_cli.results.resumable_output import ResultsFile, count_results, encode_rows, may_pass, read_results
from gradewire_cli.results.summary import RunFacts, Summary, print_summary, summary_document
from gradewire_cli.results.table_formats import write_json
from gradewire_cli.results.tables import number
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.input_file import InputFile, input_file, official_options
from gradewire_cli.rows.row import Row, with_picture_digests
from gradewire_cli.score.dry_run import DryRun
from gradewire_cli.scoring.corpus import refuse_part_of_a_request
from gradewire_cli.scoring.plan import ScorePlan, resolve_plan, scoring_options
from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gradewire.transport import Transport
    from gradewire_cli.pages.scores import ReportAnswers

output_options = stacked(
    option("--out", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True), show_default="standard output"),
    resume_options,
    choice_option("--format", "format_", among=("jsonl", "table")),
    option("--report", type=OUTPUT_FILE),
    *row_output_options,
    fail_on_option,
    everyday_quiet_option,
)
_MIN_CELL_COLUMNS = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output options.

    Attributes:
        path: The file that --out names, or None for standard output.
        rows: The JSONL file for rows. If `path` is a table, `rows` is a file next to it.
        manifest: The manifest's path, or None if rows go to standard output and no manifest is requested.
        report: The HTML page's path, or None without --report.
    """

    path: Path | None
    rows: Path | None
    resume: bool
    overwrite: bool
    printed_table: bool
    summary: Path | None
    manifest: Path | None = None
    report: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Parse `output_options`; raise click.ClickException if they are invalid."""
        as_table = options["format_"] == "table"
        path: Path | None = None if str(options["out"]) == STDIN else options["out"]
        check_resume(options, path)
        if path is not None and as_table:
            raise click.UsageError("--format table prints to standard output. Leave out --out")
        rows = part_of(path) if path is not None and is_table(path) else path
        return cls(
            path=path,
            rows=rows,
            resume=options["resume"],
            overwrite=options["overwrite"],
            printed_table=as_table,
            summary=options["summary_json"],
            manifest=manifest_path_of(options["manifest"], path, options["summary_json"]),
            report=options["report"],
        )

    @property
    def written(self) -> list[tuple[str, Path | None]]:
        """Files that may be written or removed, with their options."""
        rows = [] if self.rows is None else [*files_of(self.rows)]
        out = [("--out", path) for path in (self.path, *rows)]
        return [*out, ("--summary-json", self.summary), ("--manifest", self.manifest), ("--report", self.report)]

    def check(self) -> None:
        """Raise InputError if a file would be overwritten."""
        if not (self.overwrite or self.resume):
            refuse_existing(self.path, self.rows)

    @property
    def is_whole(self) -> bool:
        """True with --resume if the table exists and no rows of an unfinished run are next to it."""
        if self.path is None or self.rows is None or not self.resume:
            return False
        return self.path != self.rows and self.path.exists() and not any(map(Path.exists, files_of(self.rows)[:2]))

    def make_table(self) -> None:
        """Write the requested table from the finished rows; raise InputError on failure."""
        if self.path is not None and self.rows is not None and self.path != self.rows:
            write_table(self.path, self.rows)

    def remove_rows(self) -> None:
        """Remove the JSONL next to a table, unless a later run can retry some of the rows."""
        if self.rows is None or self.path == self.rows:
            return
        if any(may_pass(result) for _, result in read_results(self.rows)):
            click.echo(f"kept {self.rows}, because --resume uses it to retry rows without an answer", err=True)
        else:
            self.rows.unlink()

    def resume_hint(self, end: str = "interrupted") -> str:
        """Return the message for a run that was stopped; `end` says how."""
        if self.rows is None or not self.rows.is_file():
            return end
        return f"{end}; {count_results(self.rows)} rows are in {self.rows}. Continue with --resume"


@dataclass(slots=True)
class ScoreJob:
    """One run of the command."""

    source: InputFile
    metrics: MetricOptions
    connection: ConnectionOptions
    output: Output
    prices: JudgePrices
    quiet: bool
    baseline: str | None = None
    summary: Summary = field(default_factory=Summary)
    grouped: GroupedScores = field(init=False)
    models: ModelScores = field(default_factory=ModelScores)
    synthetic_rows: int = 0
    answers: ReportAnswers | None = None

    def __post_init__(self) -> None:
        self.grouped = GroupedScores([GroupColumn(grouping) for grouping in self.source.groupings])

    async def run(self, *, transport: Transport | None) -> None:
        """Score the rows and print the summary. `transport` replaces the connection."""
        opened = self.source.open_with_rows()
        tell(opened.notes)
        clock = RunClock()
        out, quiet = self.output.rows, self.quiet
        with ResultsFile(out) if out else contextlib.nullcontext() as results:
            self.output.check()
            async with self.connection.open(transport) as client:
                plan = await resolve_plan(
                    client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=quiet
                )
                self.summary.prices = self.prices if plan.judge_elsewhere or self.prices.are_known else None
                if out and self.output.resume:
                    refuse_part_of_a_request(plan.chosen, self.source, out, plan.pictures)
                known = results.waiting if results else lambda _: None
                scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s, known=known)
                # The output records each picture's digest, so that --resume notices changed pictures.
                read = with_picture_digests(opened.rows, plan.pictures if results else None)
                if self.output.is_whole:
                    self._check_finished_table(read, scorer.lines)
                    return
                total = self.source.count() if self.output.resume or not quiet else None
                rows = self._rows(read, results, scorer, total)
                forget_manifest(self.output.manifest)
                before = self.summary.rows
                try:
                    with progress(
                        "scoring", total, quiet=quiet, rows_on_stdout=results is None, already=before
                    ) as shown:
                        await scorer.score(
                            rows, lambda batch: self._write(batch, results, scorer), shown, already=before
                        )
                except UnreachableError as error:  # the judge, without which nothing is left to score
                    if results and not self.summary.rows:
                        results.discard_if_empty()
                        raise
                    raise UnreachableError(self.output.resume_hint(error.message)) from None
                is_kept = self.output.summary is not None or self.output.manifest is not None
                version = (await client.models()).server_version if is_kept else ""
            left = results.finish() if results else ""
            tell(opened.late_notes)
            if left:
                click.echo(left, err=True)
            require_baseline(self.grouped.columns, self.baseline)
            facts = RunFacts(
                command=self._reproduce(scorer),
                location=self.connection.description,
                scored_rows=self.summary.rows - before,
                wall_s=clock.times().wall_s,
                notes=(*opened.notes, *opened.late_notes),
                by=self._breakdowns(),
                server_version=version,
                reported=scorer.judges.reported,
                columns=self.source.columns_read(opened.columns),
            )
            self._write_outputs(clock, facts, scorer)
        if not quiet:
            self._print_summary(facts, scorer, plan)

    def _write_outputs(self, clock: RunClock, facts: RunFacts, scorer: RowScorer) -> None:
        self.output.make_table()
        if self.output.summary is not None:
            write_json(self.output.summary, summary_document(self.summary, facts))
        if self.output.manifest is not None:
            save_manifest(self.output.manifest, self._manifest(clock, facts, scorer.lines))
        if self.output.report is not None and self.answers is not None:
            self.answers.write(self.output.report, self.summary, facts, self.source.short_name)
        self.output.remove_rows()

    def _check_finished_table(self, rows: Iterator[Row], lines: Mapping[str, str]) -> None:
        if self.output.path is None:
            raise RuntimeError("standard output is not a table")
        statuses = check_whole(self.output.path, rows, lines)
        for option_, path in (("--summary-json", self.output.summary), ("--report", self.output.report)):
            if path is not None and not path.exists():
                raise InputError(
                    f"{option_} {path}: {self.output.path} is complete, so this run scores nothing to summarize. Leave "
                    "the option out, or score again with --overwrite"
                )
        for found in statuses:
            self.summary.count(found)
        if not self.quiet:
            click.echo(f"{self.output.path} is complete, so there is nothing left to score", err=True)

    def _print_summary(self, facts: RunFacts, scorer: RowScorer, plan: ScorePlan) -> None:
        print_summary(self.summary, facts)
        if scorer.retries.rows:
            click.echo(
                f"retried {scorer.retries.rows} rows, and {scorer.retries.scored} of them now have an answer", err=True
            )
        if self.synthetic_rows and plan.synthetic == "none" and self.metrics.synthetic is None:
            click.echo(
                f"the synthetic answers of {self.synthetic_rows} rows are unused. To use them, add --synthetic inline",
                err=True,
            )

    def _manifest(self, clock: RunClock, facts: RunFacts, lines: Mapping[str, str]) -> RunManifest:
        return RunManifest(
            command="score",
            versions=versions(facts.server_version),
            place=facts.location,
            **metric_fields(lines),
            inputs=digests_of(self.source.named_paths.values()),
            output=output_digest(self.output.path),
            parameters=reading_parameters(self.source),
            counts=counts_of(self.summary, scored_now=facts.scored_rows),
            cost=cost_of(self.summary),
            times=clock.times(),
            machine=clock.machine(),
            reproduce=facts.command,
            notes=facts.notes,
        )

    def _rows(
        self, rows: Iterator[Row], results: ResultsFile | None, scorer: RowScorer, total: int | None
    ) -> Iterator[Row]:
        rows = self._watched(rows)
        if results is None:
            return rows
        return results.left(rows, scorer.lines, self._take_resumed, resume=self.output.resume, input_rows=total)

    def _take_resumed(self, row: Row, output: Mapping[str, Any]) -> None:
        self.summary.add(output, row=row)
        self._count(row, output)

    def _count(self, row: Row, output: Mapping[str, Any]) -> None:
        self.grouped.add(row, output)
        if not self.source.groupings_requested:
            self.models.add(row, output)
        if self.answers is not None:
            self.answers.add(row, output)

    def _breakdowns(self) -> list[Breakdown]:
        found = breakdowns(self.grouped, self.baseline, requested=self.source.groupings_requested)
        by_model = self.models.breakdown()
        return found if by_model is None else [*found, by_model]

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
                    f"standard output: {error.strerror or error}. With --out FILE you can continue a run with --resume"
                ) from error
        for scored in batch:
            self.summary.add(scored.output, scored.scores, row=scored.row)
            self._count(scored.row, scored.output)

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
        if not any(scorer.lines.values()):
            return ""
        metrics = self.metrics.arguments(scorer.lines.values())
        return shlex.join(["gradewire", "score", *self.source.arguments, *metrics, *self.connection.arguments])


def _report_answers() -> ReportAnswers:
    """Return an empty collection for --report; raise MissingExtra before any row is scored if a package is missing."""
    with needed_by("--report", "gradewire[agree]"):
        import jinja2  # noqa: F401, PLC0415 - optional

        from gradewire_cli.pages.scores import ReportAnswers  # noqa: PLC0415 - numpy is optional
    return ReportAnswers()


def _cell(label: str, result: Mapping[str, Any]) -> str:
    columns = max(_MIN_CELL_COLUMNS, len(label))
    return f"{number(result['score']) if result['score'] is not None else result['status']:>{columns}}"


def _table_line(identifier: str, cells: Iterable[str]) -> str:
    return f"{printable(identifier)[:24]:<24} {' '.join(cells)}"


@command("score", failed_rows="some rows have no score (see --fail-on)", metrics=metrics_help())
@scoring_options
@official_options
@grouping_options
@output_options
@prices_option
@option("--dry-run", is_flag=True)
@click.pass_context
def score_command(ctx: click.Context, /, *, fail_on: FailOn, quiet: bool, dry_run: bool, **options: Any) -> None:
    """Score the answers in one or more FILEs: JSONL, JSON, CSV, TSV, Parquet, Arrow, or - for standard input.

    Write one row per answer, in input order: {"id", "index", "scores": {metric: {"score", "status", …}}, …}. With
    --out, rows go to a .jsonl, .csv, .tsv or .parquet file. If a row cannot be scored, its status says why.
    """
    output = Output.of(options)
    source, prices = input_file(options), prices_of(options)
    if dry_run:
        if output.resume:
            raise click.UsageError("--dry-run estimates all rows and cannot be combined with --resume")
        with exit_on_interrupt(lambda: "interrupted"), one_line_errors():
            estimate = DryRun(source, metric_options_of(options), prices, connection_of(options))
            asyncio.run(estimate.run(ctx.obj))
        return
    check_outputs(output.written, source.named_paths)
    job = ScoreJob(
        source, metric_options_of(options), connection_of(options), output, prices, quiet, options["baseline"]
    )
    with exit_on_interrupt(output.resume_hint), one_line_errors():
        check_comparable(source)
        job.answers = _report_answers() if output.report is not None else None
        check_baseline(source, options["baseline"])
        asyncio.run(job.run(transport=ctx.obj))
    if job.summary.fails(fail_on):
        ctx.exit(ExitCode.FAILED)
