"""One run of `gradewire compare`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.choosing.judge_chooser import JudgeChooser
from gradewire.cli.choosing.opening import open_chooser
from gradewire.cli.choosing.pair_file import PairFile, choose_all
from gradewire.cli.choosing.pairs import AnswerPair
from gradewire.cli.compare.conditions import check_names
from gradewire.cli.compare.input.collected import Collected
from gradewire.cli.compare.input.matching import Duplicates, Matching, Rule, match
from gradewire.cli.compare.input.scored import AnswerFiles
from gradewire.cli.compare.input.sides import sides_of
from gradewire.cli.compare.input.stored import read_outputs
from gradewire.cli.compare.manifests import SideManifest, manifest_of
from gradewire.cli.compare.result import CompareResult, Drawing, compare_side
from gradewire.cli.compare.runs import read_summary, runs_beside
from gradewire.cli.output.progress import progress
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.cli.choosing.choosers import Chooser, Chosen
    from gradewire.cli.compare.input.sides import Side
    from gradewire.cli.compare.outputs import Outputs
    from gradewire.cli.input.files import InputFile
    from gradewire.cli.options.connection import Connection
    from gradewire.cli.options.metrics import MetricOptions
    from gradewire.comparison.conditions import Condition
    from gradewire.metric_types import Compare
    from gradewire.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOptions:
    """Which sides are compared, and how their rows are matched.

    Attributes:
        models: Models that are compared; empty: files are, or all models of a single file.
        names: What files are called; empty: by their names.
        baseline: Name of the baseline; None: the first side.
        rule: By what rows are matched.
        duplicates: What becomes of rows that answer one question.
        summaries: Summaries of outputs, in the order of the files; empty for none.
    """

    models: Sequence[str]
    names: Sequence[str]
    baseline: str | None
    rule: Rule
    duplicates: Duplicates
    summaries: Sequence[Path]


@dataclass(slots=True, kw_only=True)
class CompareJob:
    """One run of the command.

    Attributes:
        stored: Whether the files are outputs of `gradewire score`; else their answers are scored.
        by: Chooser; None: the first metric.
        comparison: The same where it is a judge that is shown both answers; None where it is a metric.
    """

    source: InputFile
    stored: bool
    metrics: MetricOptions
    connection: Connection
    sides: SideOptions
    by: str | None
    comparison: Compare | None
    conditions: Sequence[Condition]
    drawing: Drawing
    outputs: Outputs
    quiet: bool

    def run(self, transport: Transport | None) -> CompareResult:
        """Scores the answers or reads their scores, has the pairs chosen, and computes all figures.

        Args:
            transport: From tests: takes the place of the connection.

        Raises:
            click.ClickException: A file, an option or the server is not as it has to be.
        """
        self.outputs.check()
        has_synthetic = False
        if self.stored:
            collected = read_outputs(self.source)
        else:
            opened = self.source.open()
            for note in opened.notes:
                click.echo(note, err=True)
            collected, has_synthetic = Collected(list(opened.rows)), opened.has_synthetic
            for note in opened.late_notes:
                click.echo(note, err=True)
        sides, left_out = sides_of(
            collected.rows,
            self.source.paths,
            models=self.sides.models,
            names=self.sides.names,
            baseline=self.sides.baseline,
        )
        self._check_groupings(collected)
        matchings = [
            match(sides[0], side, rule=self.sides.rule, duplicates=self.sides.duplicates) for side in sides[1:]
        ]
        chooser, chosen, run = asyncio.run(self._choose(collected, matchings, transport, has_synthetic=has_synthetic))
        manifests = self._manifests(sides, collected, run)
        by_side: dict[str, list[Chosen]] = {}
        for pair, choice in chosen:
            by_side.setdefault(pair.model_b, []).append((pair, choice))
        return CompareResult(
            chooser=chooser.name,
            identity=chooser.identity,
            manifests=manifests,
            sides=[
                compare_side(
                    matching,
                    by_side[matching.candidate.name],
                    chooser,
                    manifests,
                    self.source.groupings,
                    self.drawing,
                )
                for matching in matchings
            ],
            drawing=self.drawing,
            notes=[*left_out, *collected.notes],
        )

    def _check_groupings(self, collected: Collected) -> None:
        """Refuses columns that no file has; raises InputError."""
        for column in self.source.options.grouped_by:
            if not any(row.grouping.get(column) for row in collected.rows):
                way_out = ": gradewire score --keep-columns keeps columns beside the scores" if self.stored else ""
                raise InputError(f"--group-by {column}: no row has a value of it{way_out}")

    async def _choose(
        self,
        collected: Collected,
        matchings: Sequence[Matching],
        transport: Transport | None,
        *,
        has_synthetic: bool,
    ) -> tuple[Chooser, list[Chosen], Mapping[str, Any]]:
        """The chooser, all pairs with their choices, and what is known of a server that scored."""
        if self.stored:
            chooser = self._chooser(_shared_labels(collected, matchings), collected)
            return chooser, await self._chosen(collected, matchings, chooser), {}
        async with self.connection.open(transport) as client:
            await self._score(client, collected, matchings, has_synthetic=has_synthetic)
            version = (await client.models()).server_version
            chooser = await self._opened(client, collected)
            chosen = await self._chosen(collected, matchings, chooser)
        run = {
            "gradewire_version": importlib.metadata.version("gradewire"),
            "server_version": version,
            "place": self.connection.place,
        }
        return chooser, chosen, run

    async def _score(
        self, client: AsyncClient, collected: Collected, matchings: Sequence[Matching], *, has_synthetic: bool
    ) -> None:
        answers = AnswerFiles(
            source=self.source,
            metrics=self.metrics,
            deadline_s=self.connection.deadline_s,
            kept=self.outputs.scores,
            resume=self.outputs.resume,
            quiet=self.quiet,
        )
        paired = {row.index for matching in matchings for pair in matching.pairs for row in pair}
        rows = [row for row in collected.rows if row.index in paired]
        await answers.score(
            client,
            collected,
            rows,
            has_synthetic=has_synthetic,
            check=lambda labels: self._check_chooser(labels, collected),
        )

    def _check_chooser(self, labels: Sequence[str], collected: Collected) -> None:
        """Refuses a chooser or a condition that names what there is not; raises InputError."""
        if self.comparison is None:
            self._chooser(labels, collected)
        else:
            check_names(self.conditions, labels, self.comparison.name)

    async def _opened(self, client: AsyncClient, collected: Collected) -> Chooser:
        if self.comparison is None:
            return self._chooser(list(collected.lines[""]), collected)
        return await JudgeChooser.open(
            client,
            self.comparison,
            self.comparison.name,
            pictures=self.source.folder,
            deadline_s=self.connection.deadline_s,
        )

    def _chooser(self, labels: Sequence[str], collected: Collected) -> Chooser:
        lines = next(iter(collected.lines.values()), {})
        chooser = open_chooser(self.by, labels=labels, lines=lines, tie_margin=self.drawing.tie_margin)
        check_names(self.conditions, labels, chooser.name)
        return chooser

    async def _chosen(self, collected: Collected, matchings: Sequence[Matching], chooser: Chooser) -> list[Chosen]:
        shown_from = self.source.folder if self.comparison is not None and self.comparison.image else None
        pairs = [pair.with_picture_digests(shown_from) for pair in _pairs(collected, matchings)]
        with contextlib.ExitStack() as stack:
            file: PairFile | None = None
            if self.outputs.pairs is not None:
                file = stack.enter_context(PairFile(self.outputs.pairs, chooser.identity))
                file.open(resume=self.outputs.resume)
            shown = stack.enter_context(progress("comparing", len(pairs), quiet=self.quiet))
            chosen = await choose_all(pairs, chooser, file, anew=self.comparison is None, done=shown.done)
            if file is not None:
                file.finish()
        return chosen

    def _manifests(
        self, sides: Sequence[Side], collected: Collected, run: Mapping[str, Any]
    ) -> dict[str, SideManifest]:
        summaries: dict[str, Mapping[str, Any]] = {}
        if self.sides.summaries:
            if len(self.sides.summaries) != len(self.source.paths):
                raise click.UsageError(
                    f"--summary: give one for each of the {len(self.source.paths)} files, in their order"
                )
            for path, summary in zip(self.source.paths, self.sides.summaries, strict=True):
                summaries[path] = read_summary(summary, path, collected.lines[path])
        elif self.stored:
            # With --where the rows are not all of the file's.
            rows = {} if self.source.options.where else Counter(row.file for row in collected.rows)
            beside, notes = runs_beside({path: collected.lines[path] for path in self.source.paths}, rows)
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
    """Metrics of which all sides have results.

    Raises:
        InputError: There is none.
    """
    rows = [matchings[0].baseline.rows[0], *(matching.candidate.rows[0] for matching in matchings)]
    sides = [collected.results[row.index] for row in rows]
    shared = [label for label in sides[0] if all(label in side for side in sides)]
    if not shared:
        listed = "; ".join(", ".join(side) for side in sides)
        raise InputError(f"the outputs share no metric ({listed}): score them with the same --metrics")
    return shared
