"""`gradewire bulk`: score large inputs on Ray."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.bulk.options import BulkOutput, bulk_options, divided, usual_part_rows
from gradewire_cli.bulk.output import (
    Assembly,
    check_same,
    input_digests,
    output_exists,
    remove_output,
    save_run,
    saved_run,
)
from gradewire_cli.bulk.parts import FOLDER_MANIFEST, RUN_NAME, PartId, PartStore, check_parts_folder
from gradewire_cli.bulk.pipeline import FileEnd, cores_by_machine, file_readers, import_ray, ray_session, run_parts
from gradewire_cli.bulk.worker import RunTally, WorkerSetup
from gradewire_cli.options.connection import ConnectionOptions, connection_of, connection_options
from gradewire_cli.options.help import command, option
from gradewire_cli.options.judge import JudgePrices, judge_options, prices_of, prices_option
from gradewire_cli.options.metrics import MetricOptions, cascade_options, metric_options, metric_options_of
from gradewire_cli.problems import InputError, exit_on_interrupt, one_line_errors, redacted, redacted_url, tell
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.manifest import InputDigest, RunCounts, RunManifest
from gradewire_cli.results.manifest_entries import (
    RunClock,
    cost_of,
    counts_of,
    metric_fields,
    output_digest,
    reading_parameters,
    usable_cores,
    versions,
)
from gradewire_cli.results.progress import progress
from gradewire_cli.results.resumable_output import with_lines
from gradewire_cli.results.summary import RunFacts, Summary, print_summary, summary_document
from gradewire_cli.results.table_formats import write_json
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.input_file import InputFile, column_options, input_file
from gradewire_cli.scoring.plan import ScorePlan, resolve_plan
from gradewire_cli.scoring.row_scorer import RowScorer
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.options.common import FailOn


@contextlib.contextmanager
def finishing_on_interrupt(store: PartStore) -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets.

    After the first signal, no new part starts. The second signal interrupts the run.
    """
    requested = threading.Event()

    def request(*_: Any) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()
        click.echo("finishing the running parts. Press Ctrl-C again to stop immediately", err=True)
        store.request_stop()

    # Only the main thread can handle signals.
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM) if is_main}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StoppedError(click.ClickException):
    """Raised when the user has stopped the run and the running parts are written."""


@dataclass(slots=True, kw_only=True)
class BulkJob:
    """A run of the command. `resolve` sets `plan`, `lines` (metric identifiers by label) and `server_version`."""

    source: InputFile
    metrics: MetricOptions
    connection: ConnectionOptions
    output: BulkOutput
    prices: JudgePrices
    quiet: bool
    summary: Summary = field(default_factory=Summary)
    tally: RunTally = field(default_factory=RunTally)
    clock: RunClock = field(default_factory=RunClock)
    notes: list[str] = field(default_factory=list)
    plan: ScorePlan = field(init=False)
    lines: Mapping[str, str] = field(init=False)
    server_version: str = field(init=False)

    async def resolve(self) -> None:
        """Resolve the metrics with a temporary engine or connection."""
        self._check_output()
        opened = self.source.open_with_rows()
        self.notes += opened.notes
        tell(opened.notes)
        async with self.connection.open() as client:
            self.plan = await resolve_plan(
                client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=self.quiet
            )
            _refuse_request_corpora(self.plan)
            self.lines = (await RowScorer.open(client, self.plan, deadline_s=self.connection.deadline_s)).lines
            self.server_version = (await client.models()).server_version

    def run(self) -> None:
        """Score all missing parts, assemble the output, and print the summary.

        Raises:
            click.ClickException: Ray, the input, an option or the server is unusable, or parts are missing.
            StoppedError: The user stopped the run.
        """
        self.summary.prices = self.prices if self.plan.judge_elsewhere or self.prices.are_known else None
        rows_by_file = [self.source.count_file(number) for number in range(len(self.source.paths))]
        inputs = input_digests(self.source)
        with self.output.store.held():
            self._check_output()
            if self._is_complete_without_parts():
                self._check_same_run(inputs)
                return
            found = self._describe_run_and_list_parts(inputs)
            ends = self._score(rows_by_file, found)
            self._end(inputs, ends)

    def _check_output(self) -> None:
        import_ray()  # fails early if Ray is missing
        output, store, there = self.output, self.output.store, ""
        if not output.is_folder and output_exists(output.output):
            there = output.output
        elif store.parts() or FOLDER_MANIFEST in store.names():
            there = store.path_or_url
        if output.options["resume"]:
            return
        if there and not output.options["overwrite"]:
            raise InputError(f"{there} exists. Use --resume to continue it, or --overwrite")
        check_parts_folder(store)

    def _is_complete_without_parts(self) -> bool:
        output = self.output
        return (
            output.options["resume"]
            and not output.is_folder
            and not output.store.names()
            and output_exists(output.output)
        )

    def _check_same_run(self, inputs: list[InputDigest]) -> None:
        output, (folder, name) = self.output.output, self.output.manifest_path
        before = saved_run(folder, name)
        if before is None:
            raise InputError(
                f"{output} is complete, but its manifest {name} is missing. The output may be from another run. Use "
                "another OUTPUT, or --overwrite"
            )
        now = self._described(inputs, RunCounts(rows=0))
        check_same(output, before, now)
        there = output_digest(self.output.file)
        if before.output is not None and there is not None and before.output.sha256 != there.sha256:
            raise InputError(f"{output} has changed since {name} was written. Use another OUTPUT, or --overwrite")
        self.summary.failed_rows, self.summary.unscored_rows = before.counts.failed, before.counts.unscored
        if not self.quiet:
            click.echo(f"{redacted_url(output)} is complete, so nothing is left to score", err=True)

    def _describe_run_and_list_parts(self, inputs: list[InputDigest]) -> dict[PartId, bool]:
        store = self.output.store
        now = self._described(inputs, RunCounts(rows=0))
        if self.output.options["resume"] and (before := saved_run(store)) is not None:
            check_same(store.path_or_url, before, now)
        else:
            if self.output.options["overwrite"]:
                store.empty()
                if not self.output.is_folder:
                    remove_output(self.output.output)
            save_run(store, now)
        folder, name = self.output.manifest_path
        folder.remove(name)
        store.forget_stop()
        return store.parts()

    def _score(self, rows_by_file: list[int], found: dict[PartId, bool]) -> dict[int, FileEnd]:
        part_rows = self._part_rows()
        readers = file_readers(self.source, rows_by_file, part_rows, found, self.plan.pictures)
        setup = WorkerSetup(
            connection=self.connection,
            plan=self.plan,
            lines=self.lines,
            store=self.output.store,
            unanswered=frozenset(part for part, answered in found.items() if not answered),
        ).absolute()
        total = sum(rows_by_file) if not self.source.options.where else None
        already = min(sum(found.values()) * part_rows, sum(rows_by_file))
        ends: dict[int, FileEnd] = {}
        here = self.connection.server is None and not self.plan.judge_elsewhere
        own_judge = here and bool(self.plan.chosen.asks_judge)
        with (
            # Ray installs signal handlers, so install ours afterwards.
            ray_session(self.output.options["ray_address"], usable_cores()) as ray,
            finishing_on_interrupt(self.output.store) as stopping,
            progress("scoring", total, quiet=self.quiet, already=already) as shown,
        ):
            given = {name: self.output.options[name] for name in ("workers", "threads")}
            share = divided(cores_by_machine(ray), **given, own_judge=own_judge)
            if self.connection.server is None:
                setup = replace(setup, connection=replace(setup.connection, engine_threads=share.threads))
            for item in run_parts(ray, readers, setup, workers=share.workers, cores_per_worker=share.reserved):
                if isinstance(item, FileEnd):
                    ends[item.file] = item
                    continue
                self.tally.add(item)
                if item.error and not stopping.is_set():
                    self.output.store.request_stop()
                shown(already + self.tally.rows, f"{self.tally.failed} failed" if self.tally.failed else "")
        self.output.store.forget_stop()
        if self.tally.first_problem is not None:
            problem = self.tally.first_problem.problem()
            raise type(problem)(f"{self.tally.first_problem.error}. {self.resume_hint()}")
        if stopping.is_set():
            raise StoppedError(f"interrupted. {self.resume_hint()}")
        return ends

    def resume_hint(self) -> str:
        """Return a sentence that tells the user how to continue."""
        if RUN_NAME not in self.output.store.names():
            return "Nothing was written"
        return f"{len(self.output.store.parts())} parts are in {self.output.store.display_name}. Continue with --resume"

    def _end(self, inputs: list[InputDigest], ends: dict[int, FileEnd]) -> None:
        store, found = self.output.store, self.output.store.parts()
        assembly = Assembly(store=store, parts=found, ends=ends)
        assembly.check(lambda row: self.summary.add(with_lines(row, self.lines)))
        self.tally.report(self.summary)
        if not self.output.is_folder:
            assembly.write(self.output.output)
        figures = RunFacts(
            command=self._reproduce(),
            location=self.connection.description,
            scored_rows=self.tally.scored,
            wall_s=self.clock.times().wall_s,
            notes=self.notes,
            server_version=self.server_version,
        )
        if (path := self.output.options["summary_json"]) is not None:
            write_json(path, summary_document(self.summary, figures))
        counts = counts_of(self.summary, scored_now=self.tally.scored)
        manifest = replace(
            self._described(inputs, counts),
            cost=cost_of(self.summary),
            output=output_digest(self.output.file),
            results={
                "workers": len(self.tally.cpu_s),
                "workers_cpu_s": sum(self.tally.cpu_s.values()),
                "worker_rss_bytes": max(self.tally.rss_bytes.values(), default=0),
            },
        )
        folder, name = self.output.manifest_path
        save_run(folder, replace(manifest, reproduce=figures.command), name)
        if not self.output.is_folder and all(found.values()):
            store.remove_all()
        elif not all(found.values()):
            click.echo(f"{store.display_name} contains unanswered rows. Score them again with --resume", err=True)
        if not self.quiet:
            print_summary(self.summary, figures)

    def _described(self, inputs: list[InputDigest], counts: RunCounts) -> RunManifest:
        return RunManifest(
            command="bulk",
            versions=versions(self.server_version),
            place=self.connection.description,
            **metric_fields(self.lines),
            inputs=inputs,
            parameters={**reading_parameters(self.source), "part_rows": self._part_rows()},
            counts=counts,
            times=self.clock.times(),
            machine=self.clock.machine(),
            notes=self.notes,
        )

    def _part_rows(self) -> int:
        given: int | None = self.output.options["part_rows"]
        return given or usual_part_rows(judged=bool(self.plan.chosen.asks_judge))

    def _reproduce(self) -> str:
        files = map(redacted, [*self.source.arguments, *self.source.where_arguments])
        written = redacted_url(self.output.output)
        words = [*files, written, *self.metrics.arguments(self.lines.values()), *self.connection.arguments]
        return printable(shlex.join(["gradewire", "bulk", *words]))


def _refuse_request_corpora(plan: ScorePlan) -> None:
    for metric in plan.chosen.metrics:
        if "request" in {getattr(metric, "corpus", None), getattr(metric, "idf", None)}:
            raise InputError(
                f"{metric.name}: corpus=request uses only one request's rows, but bulk scores rows in parts. Use "
                "corpus=prepared (bertscore: idf=prepared)"
            )


@command("bulk", failed_rows="some rows have no score (see --fail-on)")
@click.argument("paths", metavar="INPUT... OUTPUT", nargs=-1, required=True)
@column_options
@option("--where", multiple=True)
@metric_options
@judge_options
@cascade_options
@connection_options
@bulk_options
@prices_option
@click.pass_context
def bulk_command(ctx: click.Context, /, *, paths: Sequence[str], fail_on: FailOn, quiet: bool, **options: Any) -> None:
    """Score the answers in large INPUTs on Ray Data, and write each row to OUTPUT exactly once, even after failures.

    Each worker runs its own engine, or is a client of --server. Options and scores are the same as in gradewire score.
    The command needs the extra ray.
    """
    if len(paths) < 2:
        raise click.UsageError("name at least one INPUT, then the OUTPUT")
    if STDIN in paths:
        raise InputError("bulk reads INPUT repeatedly, which standard input does not allow. Save the input to a file")
    output = BulkOutput.of(paths[-1], options)
    source = input_file({**options, "files": paths[:-1]})
    check_outputs(output.written, source.named_paths)
    job = BulkJob(
        source=source,
        metrics=metric_options_of(options),
        connection=connection_of(options),
        output=output,
        prices=prices_of(options),
        quiet=quiet,
    )
    with exit_on_interrupt(lambda: f"interrupted. {job.resume_hint()}"), one_line_errors():
        try:
            asyncio.run(job.resolve())
            job.run()
        except StoppedError as stopped:
            click.echo(stopped.format_message(), err=True)
            ctx.exit(ExitCode.INTERRUPTED)
    if job.summary.fails(fail_on):
        ctx.exit(ExitCode.FAILED)
