"""One run of `gradewire bulk`."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.bulk.assembling import Assembly, output_exists, remove_output
from gradewire.cli.bulk.identity import check_same, input_digests, save_run, saved_run
from gradewire.cli.bulk.parts import FOLDER_MANIFEST, RUN_NAME, PartId, check_place
from gradewire.cli.bulk.pipeline import run_parts
from gradewire.cli.bulk.ray_session import cores_by_machine, import_ray, ray_session
from gradewire.cli.bulk.reading import FileEnd, file_readers
from gradewire.cli.bulk.records import RunTally
from gradewire.cli.bulk.stopping import finishing_on_interrupt
from gradewire.cli.bulk.worker import WorkerSetup
from gradewire.cli.input.record import printable
from gradewire.cli.output.files import write_json
from gradewire.cli.output.metric_lines import with_lines
from gradewire.cli.output.progress import progress
from gradewire.cli.output.summary import Summary
from gradewire.cli.problems import InputError
from gradewire.cli.run.file_corpus import takes_corpus
from gradewire.cli.run.manifest_file import cost_of, counts_of, metric_fields, output_digest, reading_parameters
from gradewire.cli.run.plan import resolve_plan
from gradewire.cli.run.row_scorer import RowScorer
from gradewire.cli.summary.text import RunFigures, print_summary, summary_document
from gradewire.cli.url_keys import shown_url, without_keys
from gradewire.manifests import RunClock, RunCounts, RunManifest, versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire import AsyncClient
    from gradewire.cli.bulk.options import BulkOutput, Cluster
    from gradewire.cli.input.files import InputFile
    from gradewire.cli.options.connection import Connection
    from gradewire.cli.options.judge_prices import JudgePrices
    from gradewire.cli.options.metrics import MetricOptions
    from gradewire.cli.run.plan import ScorePlan
    from gradewire.manifests import InputDigest


class StoppedError(click.ClickException):
    """The user asked the run to stop, and what was in work is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run computes, as the server says it.

    Attributes:
        plan: What is asked of every row.
        lines: What reproduces each metric, by label.
        server_version: Version of gradewire there.
    """

    plan: ScorePlan
    lines: Mapping[str, str]
    server_version: str


@dataclass(slots=True, kw_only=True)
class BulkJob:
    """One run of the command."""

    source: InputFile
    metrics: MetricOptions
    connection: Connection
    output: BulkOutput
    cluster: Cluster
    prices: JudgePrices
    quiet: bool
    summary: Summary = field(default_factory=Summary)
    tally: RunTally = field(default_factory=RunTally)
    clock: RunClock = field(default_factory=RunClock)
    notes: list[str] = field(default_factory=list)

    async def ask(self) -> Asked:
        """Resolves the metrics, with an engine or a connection that is closed before workers open theirs.

        Raises:
            click.ClickException: The input or an option is not as it has to be.
            GradewireError: The server is not there, or cannot compute what is asked.
        """
        self._check_output()
        opened = self.source.open()
        self.notes += opened.notes
        for note in opened.notes:
            click.echo(note, err=True)
        async with self.connection.open() as client:
            plan = await resolve_plan(
                client, self.metrics, self.source, has_synthetic=opened.has_synthetic, quiet=self.quiet
            )
            _refuse_request_corpora(plan)
            return await self._asked(client, plan)

    async def _asked(self, client: AsyncClient, plan: ScorePlan) -> Asked:
        scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s)
        return Asked(plan=plan, lines=scorer.lines, server_version=(await client.models()).server_version)

    def run(self, asked: Asked) -> None:
        """Scores all parts that are not there, makes the output of them, and tells the summary.

        Raises:
            click.ClickException: Ray, the input, an option or the server is not as it has to be; or parts are missing.
            StoppedError: The user asked it to stop.
        """
        self.summary.prices = self.prices if asked.plan.judge_elsewhere or self.prices.known else None
        rows_by_file = [self.source.count_file(number) for number in range(len(self.source.paths))]
        inputs = input_digests(self.source)
        with self.output.store.held():
            self._check_output()  # another run may have ended since
            if self._is_whole():
                self._check_whole(asked, inputs)
                return
            found = self._begin(asked, inputs)
            ends = self._score(asked, rows_by_file, found)
            self._end(asked, inputs, ends)

    def _check_output(self) -> None:
        import_ray()  # fails before anything is computed where Ray is missing
        output, store = self.output, self.output.store
        there = [
            place
            for place, is_there in (
                (output.output, not output.is_folder and output_exists(output.output)),
                # Of a run that ended before its first part nothing can be lost.
                (store.place, bool(store.parts()) or FOLDER_MANIFEST in store.names()),
            )
            if is_there
        ]
        if output.resume:
            return
        if there and not output.overwrite:
            raise InputError(f"{there[0]} is there already: give --resume to go on with it, or --overwrite")
        check_place(store)

    def _is_whole(self) -> bool:
        """Whether a run that goes on has nothing to go on with but an output."""
        output = self.output
        return output.resume and not output.is_folder and not output.store.names() and output_exists(output.output)

    def _check_whole(self, asked: Asked, inputs: list[InputDigest]) -> None:
        """Finds that the output is of this run, so that nothing is left to be scored; raises InputError otherwise."""
        output, (folder, name) = self.output.output, self.output.manifest_place
        before = saved_run(folder, name)
        if before is None:
            raise InputError(
                f"{output} is whole, so that nothing is left to resume, and {name}, which says what it was made with, "
                "is not there: give another OUTPUT, or --overwrite"
            )
        now = self._described(asked, inputs, RunCounts(rows=0))
        check_same(output, before, now)
        there = output_digest(self.output.file)
        if before.output is not None and there is not None and before.output.sha256 != there.sha256:
            raise InputError(f"{output} has changed since {name} was written: give another OUTPUT, or --overwrite")
        self.summary.failed_rows, self.summary.unscored_rows = before.counts.failed, before.counts.unscored
        if not self.quiet:
            click.echo(f"{shown_url(output)} is whole: nothing is left to score", err=True)

    def _begin(self, asked: Asked, inputs: list[InputDigest]) -> dict[PartId, bool]:
        """The parts that are there and stand; what they are made with is written first."""
        store = self.output.store
        now = self._described(asked, inputs, RunCounts(rows=0))
        if self.output.resume and (before := saved_run(store)) is not None:
            check_same(store.place, before, now)
        else:
            if self.output.overwrite:
                store.empty()
                if not self.output.is_folder:
                    remove_output(self.output.output)
            save_run(store, now)
        folder, name = self.output.manifest_place
        folder.remove(name)
        store.forget_stop()
        return store.parts()

    def _score(self, asked: Asked, rows_by_file: list[int], found: dict[PartId, bool]) -> dict[int, FileEnd]:
        part_rows = self._part_rows(asked)
        readers = file_readers(self.source, rows_by_file, part_rows, found, asked.plan.pictures)
        setup = WorkerSetup(
            connection=self.connection,
            plan=asked.plan,
            lines=asked.lines,
            store=self.output.store,
            unanswered=frozenset(part for part, answered in found.items() if not answered),
        ).absolute()
        total = sum(rows_by_file) if not self.source.options.where else None
        # Whole parts but for the last of each file, which the readers tell in the end.
        already = min(sum(found.values()) * part_rows, sum(rows_by_file))
        ends: dict[int, FileEnd] = {}
        here = self.connection.server is None and not asked.plan.judge_elsewhere
        own_judge = here and bool(asked.plan.chosen.asks_judge)
        with (
            # Ray takes signals of its own, so ours come after it.
            ray_session(self.cluster.address, _cores()) as ray,
            finishing_on_interrupt(self.output.store) as stopping,
            progress("scoring", total, quiet=self.quiet, already=already) as shown,
        ):
            share = self.cluster.divided(cores_by_machine(ray), own_judge=own_judge)
            if self.connection.server is None:
                setup = replace(setup, connection=replace(setup.connection, engine_threads=share.threads))
            for item in run_parts(ray, readers, setup, workers=share.workers, cores_per_worker=share.reserved):
                if isinstance(item, FileEnd):
                    ends[item.file] = item
                    continue
                self.tally.add(item)
                if item.error and not stopping.is_set():
                    self.output.store.ask_to_stop()
                note = f"{self.tally.failed} failed" if self.tally.failed else ""
                shown.done(already + self.tally.rows, note)
        self.output.store.forget_stop()
        if self.tally.first_problem is not None:
            problem = self.tally.first_problem.problem()
            raise type(problem)(f"{self.tally.first_problem.error}: {self.way_on()}")
        if stopping.is_set():
            raise StoppedError(f"interrupted; {self.way_on()}")
        return ends

    def way_on(self) -> str:
        """How to go on, as a sentence."""
        if RUN_NAME not in self.output.store.names():
            return "nothing was written"
        return f"{len(self.output.store.parts())} parts are in {self.output.store.shown}, go on with --resume"

    def _end(self, asked: Asked, inputs: list[InputDigest], ends: dict[int, FileEnd]) -> None:
        store, found = self.output.store, self.output.store.parts()
        assembly = Assembly(store=store, found=found, ends=ends)
        assembly.check(lambda row: self.summary.add(with_lines(row, asked.lines)))
        self.tally.tell(self.summary)
        if not self.output.is_folder:
            assembly.write(self.output.output)
        figures = RunFigures(
            command=self._reproduce(asked),
            place=self.connection.place,
            scored_rows=self.tally.scored,
            wall_s=self.clock.times().wall_s,
            notes=self.notes,
            server_version=asked.server_version,
        )
        if self.output.summary is not None:
            write_json(self.output.summary, summary_document(self.summary, figures))
        counts = counts_of(self.summary, scored_now=self.tally.scored)
        manifest = replace(
            self._described(asked, inputs, counts),
            cost=cost_of(self.summary, self.summary.prices),
            output=output_digest(self.output.file),
            results=self._results(),
        )
        folder, name = self.output.manifest_place
        save_run(folder, replace(manifest, reproduce=figures.command), name)
        if not self.output.is_folder and all(found.values()):
            store.remove_all()
        elif not all(found.values()):
            click.echo(f"rows without an answer stay in {store.shown}: --resume scores them again", err=True)
        if not self.quiet:
            print_summary(self.summary, figures)

    def _described(self, asked: Asked, inputs: list[InputDigest], counts: RunCounts) -> RunManifest:
        return RunManifest(
            command="bulk",
            versions=versions(asked.server_version),
            place=self.connection.place,
            **metric_fields(asked.lines),
            inputs=inputs,
            parameters={**reading_parameters(self.source), "part_rows": self._part_rows(asked)},
            counts=counts,
            times=self.clock.times(),
            machine=self.clock.machine(),
            notes=self.notes,
        )

    def _results(self) -> dict[str, Any]:
        return {
            "workers": len(self.tally.cpu_s),
            "workers_cpu_s": sum(self.tally.cpu_s.values()),
            "worker_rss_bytes": max(self.tally.rss_bytes.values(), default=0),
        }

    def _part_rows(self, asked: Asked) -> int:
        return self.cluster.rows_of_a_part(judged=bool(asked.plan.chosen.asks_judge))

    def _reproduce(self, asked: Asked) -> str:
        lines = [line for line in asked.lines.values() if line]
        prompts = [word for given in self.metrics.prompts for word in ("--prompt", str(given.path))]
        read = [*self.source.arguments, *self.source.where_arguments]
        words = [*map(without_keys, read), shown_url(self.output.output), "--metrics", ",".join(lines), *prompts]
        return printable(shlex.join(["gradewire", "bulk", *words, *self.connection.arguments]))


def _refuse_request_corpora(plan: ScorePlan) -> None:
    for metric in plan.chosen.metrics:
        if takes_corpus(metric) and "request" in {getattr(metric, "corpus", None), getattr(metric, "idf", None)}:
            raise InputError(
                f"{metric.name}: corpus=request counts the rows that are scored together, and bulk scores them in "
                "parts: write corpus=prepared (bertscore: idf=prepared)"
            )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
