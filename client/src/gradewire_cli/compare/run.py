"""Run `gradewire compare` and write its files."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.compare.earlier_outputs import SideManifest, manifest_of, read_outputs, read_summary, runs_of_outputs
from gradewire_cli.compare.result import CompareResult, Drawing, compare_side
from gradewire_cli.compare.sides import Collected, Matching, Side, match, sides_of
from gradewire_cli.options.common import OUTPUT_FILE, rare_resume_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError, tell
from gradewire_cli.results.journal import Journal, refuse_existing
from gradewire_cli.results.progress import progress
from gradewire_cli.results.resumable_output import ResultsFile
from gradewire_cli.results.tables import all_tables_option, html_option, table_file_options
from gradewire_cli.rows.columns import are_of_output
from gradewire_cli.rows.row import Row, with_picture_digests
from gradewire_cli.scoring.choosers import JudgeChooser, MetricChooser
from gradewire_cli.scoring.corpus import refuse_part_of_a_request
from gradewire_cli.scoring.labelled_rows import label_named
from gradewire_cli.scoring.pair_engine import AnswerPair, Chooser, Chosen, PairEngine, results_of
from gradewire_cli.scoring.plan import resolve_plan
from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.metrics import Compare
    from gradewire.transport import Transport
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.metrics import MetricOptions
    from gradewire_cli.rows.input_file import InputFile


output_options = stacked(
    option("--out", type=OUTPUT_FILE), rare_resume_options, html_option, all_tables_option, table_file_options
)


def scores_beside(pairs: Path | None) -> Path | None:
    """Return PAIRS.scores.jsonl, a file next to --out, in the format that `gradewire score --out` writes."""
    return pairs.with_name(f"{pairs.stem}.scores.jsonl") if pairs else None


def resume_hint(pairs: Path | None) -> str:
    """Return the message after an interrupt."""
    if pairs is None:
        return "interrupted"
    return f"interrupted. Finished work is in {pairs} and {scores_beside(pairs)}. Continue with --resume"


@dataclass(slots=True, kw_only=True)
class CompareJob:
    """A run of the command.

    Attributes:
        stored: True if the files are outputs of `gradewire score`, False if they contain answers to score.
        comparison: The judge's comparison that --by names, or None if --by names a metric.
        only_labels: Metrics to compare of outputs; empty for all.
        journal: The file of pairs during the run, or None without --out.
    """

    options: Mapping[str, Any]
    source: InputFile
    stored: bool
    metrics: MetricOptions
    connection: ConnectionOptions
    comparison: Compare | None
    drawing: Drawing
    only_labels: Sequence[str] = ()
    journal: Journal | None = field(default=None, init=False)

    def run(self, transport: Transport | None) -> CompareResult:
        """Score the answers or read their scores, choose the better answers, and compute all values."""
        pairs = self.options["out"]
        with Journal(pairs) if pairs else contextlib.nullcontext() as self.journal:
            if not (self.options["resume"] or self.options["overwrite"]):
                refuse_existing(pairs, scores_beside(pairs))
            return self._run(transport)

    def _run(self, transport: Transport | None) -> CompareResult:
        if self.stored:
            collected = read_outputs(self.source)
            if self.only_labels:
                collected.keep_only(self.only_labels)
        else:
            opened = self.source.open()
            if are_of_output(opened.columns):
                raise InputError(
                    f"{self.source.name} is a table of gradewire score, and outputs are compared as JSONL. Run: "
                    "gradewire score --keep-columns all --out FILE.jsonl"
                )
            tell(opened.notes)
            collected = Collected(list(opened.rows), has_synthetic=opened.has_synthetic)
            tell(opened.late_notes)
        chosen_sides = {name: self.options[name] for name in ("models", "names", "baseline")}
        sides, left_out = sides_of(collected.rows, self.source.paths, **chosen_sides)
        self._check_groupings(collected)
        how = {name: self.options[name] for name in ("rule", "duplicates")}
        matchings = [match(sides[0], side, **how) for side in sides[1:]]
        chooser, chosen, run = asyncio.run(self._choose(collected, matchings, transport))
        manifests = self._manifests(sides, collected, run)
        by_side: defaultdict[str, list[Chosen]] = defaultdict(list)
        for pair, choice in chosen:
            by_side[pair.model_b].append((pair, choice))
        groupings, drawing = self.source.groupings, self.drawing
        return CompareResult(
            chooser=chooser.name,
            identity=chooser.identity,
            manifests=manifests,
            sides=[
                compare_side(each, by_side[each.candidate.name], chooser, manifests, groupings, drawing)
                for each in matchings
            ],
            drawing=self.drawing,
            notes=[*left_out, *collected.notes],
        )

    def _check_groupings(self, collected: Collected) -> None:
        for column in self.source.options.grouped_by:
            if not any(row.grouping.get(column) for row in collected.rows):
                way_out = ". Keep columns with gradewire score --keep-columns" if self.stored else ""
                raise InputError(f"--group-by {column}: no row has a value in this column{way_out}")

    async def _choose(
        self, collected: Collected, matchings: Sequence[Matching], transport: Transport | None
    ) -> tuple[Chooser, list[Chosen], Mapping[str, Any]]:
        if self.stored:
            chooser = self._chooser(_shared_labels(collected, matchings), collected)
            return chooser, await self._chosen(collected, matchings, chooser), {}
        async with self.connection.open(transport) as client:
            await self._score(client, collected, matchings)
            version = (await client.models()).server_version
            chooser = await self._opened(client, collected)
            chosen = await self._chosen(collected, matchings, chooser)
        run = {
            "gradewire_version": importlib.metadata.version("gradewire"),
            "server_version": version,
            "place": self.connection.description,
        }
        return chooser, chosen, run

    async def _score(self, client: AsyncClient, collected: Collected, matchings: Sequence[Matching]) -> None:
        quiet, kept, resume = self.options["quiet"], scores_beside(self.options["out"]), self.options["resume"]
        has_synthetic = collected.has_synthetic
        plan = await resolve_plan(client, self.metrics, self.source, has_synthetic=has_synthetic, quiet=quiet)
        if self.comparison is None:
            self._chooser(plan.chosen.labels, collected)
        else:
            self._check_conditions(plan.chosen.labels, self.comparison.name)
        paired = {row.index for matching in matchings for pair in matching.pairs for row in pair}
        rows = [row for row in collected.rows if row.index in paired]

        def take(row: Row, output: Mapping[str, Any]) -> None:
            collected.results[row.index] = results_of(output)

        def take_batch(batch: Sequence[ScoredRow]) -> None:
            if results is not None:
                results.write([scored.output for scored in batch])
            collected.results.update((scored.row.index, results_of(scored.output)) for scored in batch)

        with ResultsFile(kept) if kept else contextlib.nullcontext() as results:
            if kept and resume:
                refuse_part_of_a_request(plan.chosen, self.source, kept, plan.pictures)
            known = results.waiting if results else lambda _: None
            scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s, known=known)
            collected.lines[""] = scorer.lines
            read = with_picture_digests(iter(rows), plan.pictures)
            waiting = results.left(read, scorer.lines, take, resume=resume) if results else read
            already = len(collected.results)
            with progress("scoring", len(rows), quiet=quiet, already=already) as shown:
                await scorer.score(waiting, take_batch, shown, already=already)
            if results is not None and (left := results.finish()):
                click.echo(left, err=True)

    async def _opened(self, client: AsyncClient, collected: Collected) -> Chooser:
        by, deadline_s = self.comparison, self.connection.deadline_s
        if by is None:
            return self._chooser(list(collected.lines[""]), collected)
        return await JudgeChooser.open(client, by, by.name, pictures=self.source.folder, deadline_s=deadline_s)

    def _chooser(self, labels: Sequence[str], collected: Collected) -> Chooser:
        lines = next(iter(collected.lines.values()), {})
        by = self.options["by"]
        label = labels[0] if by is None else label_named(labels, by, "--by")
        self._check_conditions(labels, label)
        return MetricChooser(label, lines.get(label, ""), self.drawing.tie_margin)

    def _check_conditions(self, labels: Sequence[str], chooser: str) -> None:
        for condition in self.options["conditions"]:
            condition.label(labels, chooser)

    async def _chosen(self, collected: Collected, matchings: Sequence[Matching], chooser: Chooser) -> list[Chosen]:
        shown_from = self.source.folder if self.comparison is not None and self.comparison.image else None
        pairs = [pair.with_picture_digests(shown_from) for pair in _pairs(collected, matchings)]
        engine = PairEngine(chooser, self.journal)
        engine.open(resume=self.options["resume"], again=self.comparison is None)
        with progress("comparing", len(pairs), quiet=self.options["quiet"]) as shown:
            chosen = await engine.judge(pairs, done=lambda: shown(engine.judged, ""))
        engine.finish(chosen)
        return chosen

    def _manifests(
        self, sides: Sequence[Side], collected: Collected, run: Mapping[str, Any]
    ) -> dict[str, SideManifest]:
        summaries: dict[str, Mapping[str, Any]] = {}
        if given := self.options["summaries"]:
            if len(given) != len(self.source.paths):
                raise click.UsageError(
                    f"--summary: name {len(self.source.paths)} summaries, one for each FILE, in the order of the FILEs"
                )
            for path, summary in zip(self.source.paths, given, strict=True):
                summaries[path] = read_summary(summary, path, collected.lines[path])
        elif self.stored:
            # With --where, the number of rows differs from the manifest's.
            rows = {} if self.source.options.where else Counter(row.file for row in collected.rows)
            beside, notes = runs_of_outputs({path: collected.lines[path] for path in self.source.paths}, rows)
            summaries |= beside
            collected.notes += notes
        return {side.name: manifest_of(side, collected, summaries.get(side.rows[0].file, run)) for side in sides}


def _pairs(collected: Collected, matchings: Sequence[Matching]) -> list[AnswerPair]:
    matched = [(matching, pair) for matching in matchings for pair in matching.pairs]
    return [
        AnswerPair(
            index=index,
            model_a=matching.baseline.name,
            model_b=matching.candidate.name,
            a=collected.answer(one),
            b=collected.answer(other),
        )
        for index, (matching, (one, other)) in enumerate(matched)
    ]


def _shared_labels(collected: Collected, matchings: Sequence[Matching]) -> list[str]:
    rows = [matchings[0].baseline.rows[0], *(matching.candidate.rows[0] for matching in matchings)]
    sides = [collected.results[row.index] for row in rows]
    shared = [label for label in sides[0] if all(label in side for side in sides)]
    if not shared:
        listed = "; ".join(", ".join(side) for side in sides)
        raise InputError(f"the outputs share no metric ({listed}). Score them with the same --metrics")
    return shared
