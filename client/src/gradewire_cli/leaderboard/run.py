"""One run of `gradewire leaderboard`: reads its files and has the pairs judged that are not judged yet."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from gradewire_cli.leaderboard.judging import Answers, PairJudging, Sampling, texts_digest
from gradewire_cli.leaderboard.reading import holds_pairs
from gradewire_cli.leaderboard.verdicts import Verdicts
from gradewire_cli.problems import InputError
from gradewire_cli.results.journal import Journal, refuse_existing
from gradewire_cli.results.progress import progress
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.records import read_file
from gradewire_cli.scoring.choosers import JudgeChooser, MetricChooser, comparison_of, is_comparison
from gradewire_cli.scoring.pairs import PairEngine
from gradewire_cli.scoring.plan import judge_name, judge_remarks, resolve_plan
from gradewire_cli.scoring.row_scorer import RowScorer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.transport import Transport
    from gradewire_cli.leaderboard.result import RatingOptions
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.metrics import MetricOptions
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.scoring.pairs import Chooser
    from gradewire_stats.comparison.paired_rows import TieMargin


@dataclass(slots=True, kw_only=True)
class LeaderboardRun:
    """Files, and how the answers in them are judged.

    Attributes:
        source: All files; those of answers are read by its options.
        names: Columns of pairs.
        metrics: What chooses.
        tie_margin: Of a metric.
        connection: Where it is asked.
        out: Where judged pairs are kept; None keeps none.
        resume: Whether it is gone on with.
        overwrite: Whether it may be replaced.
        sampling: When enough pairs are judged; None judges all.
        options: Of the ratings.
        quiet: Show no progress.
        notes: What is to be told of the run.
        by: What chose; "" where nothing was to be judged.
    """

    source: InputFile
    names: Mapping[str, Sequence[str]]
    metrics: MetricOptions
    tie_margin: TieMargin
    connection: ConnectionOptions
    out: Path | None
    resume: bool
    overwrite: bool
    sampling: Sampling | None
    options: RatingOptions
    quiet: bool
    notes: list[str] = field(default_factory=list)
    by: str = ""

    def split(self) -> tuple[InputFile | None, InputFile | None]:
        """The files of pairs and those of answers; None for none.

        A file whose first row that can be read has columns for two models is of pairs, and so is standard input.

        Raises:
            InputError: A file cannot be read.
        """
        pairs = [path for path in self.source.paths if path == STDIN or self._holds_pairs(path)]
        answers = [path for path in self.source.paths if path not in pairs]
        parts = [replace(self.source, paths=tuple(paths)) if paths else None for paths in (pairs, answers)]
        return parts[0], parts[1]

    def _holds_pairs(self, path: str) -> bool:
        records = read_file(path, self.source.reading)
        return holds_pairs(next((each.fields for each in records if each.fields is not None), {}), self.names)

    def way_on(self) -> str:
        """The line that is printed where the user interrupts."""
        if self.out is None or not self.out.is_file():
            return "interrupted"
        return f"interrupted; judged pairs are in {self.out}, go on with --resume"

    async def verdicts(self, transport: Transport | None) -> Verdicts:
        """All judged pairs, after those that were to be judged are.

        Raises:
            click.ClickException: A file, an option or the server is not as it has to be.
            GradewireError: The server went away.
        """
        pairs, answers = self.split()
        recorded = Verdicts.read(pairs.records(), self.names) if pairs else Verdicts()
        if answers is None:
            if self.out is not None or self.sampling is not None:
                raise click.UsageError("--out and --target-width are for files of answers: FILE has judged pairs alone")
            return recorded
        found = Answers.read(answers)
        recorded.left_out.counts.update(found.left_out.counts)
        recorded.left_out.first |= found.left_out.first
        with Journal(self.out) if self.out else contextlib.nullcontext() as journal:
            if not (self.resume or self.overwrite):
                refuse_existing(self.out)
            async with self.connection.open(transport) as client:
                chooser = await self._chooser(client, answers, found)
                return await self._judged(found, recorded, PairEngine(chooser, journal, texts_digest))

    async def _chooser(self, client: AsyncClient, source: InputFile, answers: Answers) -> Chooser:
        """What --by names."""
        text = str(self.metrics.metrics)
        if is_comparison(text):
            return await self._judge(client, text, source, answers)
        if self.sampling is not None:
            raise click.UsageError("--target-width is for judges: a metric scores each answer once, and pairs are free")
        plan = await resolve_plan(client, self.metrics, source, has_synthetic=answers.has_synthetic, quiet=self.quiet)
        if len(plan.chosen.labels) != 1:
            raise InputError(f"--by {text}: name one metric that chooses")
        scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s)
        (label,) = plan.chosen.labels
        return MetricChooser(label, scorer.lines[label], self.tie_margin, scorer)

    async def _judge(self, client: AsyncClient, text: str, source: InputFile, answers: Answers) -> JudgeChooser:
        by = comparison_of(text, self.metrics.judge, self.metrics.prompts)
        for line in judge_remarks(await client.models(), {judge_name(by)}):
            click.echo(line, err=True)
        if by.image:
            answers.show_pictures(source.folder)
        return await JudgeChooser.open(client, by, text, pictures=source.folder, deadline_s=self.connection.deadline_s)

    async def _judged(self, answers: Answers, recorded: Verdicts, engine: PairEngine) -> Verdicts:
        judging = PairJudging(answers=answers, recorded=recorded, engine=engine, options=self.options)
        judging.open(resume=self.resume)
        full = answers.pool(judging.models).pairs
        # With a width to reach nobody knows how many pairs it takes.
        total = full if self.sampling is None else self.sampling.most
        with progress("judging", total, quiet=self.quiet, already=judging.before) as shown:
            if self.sampling is None:
                await judging.all_pairs(shown)
            else:
                await judging.until(self.sampling, shown)
        engine.finish()
        self.by = str(engine.chooser.identity["by"])
        self.notes += _notes(judging, full=full)
        return judging.verdicts()


def _notes(judging: PairJudging, *, full: int) -> list[str]:
    judged = len(judging.pairs)
    # Others' files may have a pair several times.
    known = len(
        {
            pair.key
            for pair in judging.verdicts().pairs
            if all(model in judging.answers.rows.get(pair.instruction, {}) for model in pair.models)
        }
    )
    saved, kept = full - known, judging.before - judging.outdated
    by = judging.engine.chooser.name
    told = [f"judged {judged - kept} pairs by {by}; {kept} were known, {known - judged} of other files"]
    if judging.outdated:
        told.append(f"{judging.outdated} pairs were judged anew, for their answers changed")
    if saved:
        told.append(f"{saved} of the {full} pairs of a full round robin were saved ({saved / full:.0%})")
    return told
