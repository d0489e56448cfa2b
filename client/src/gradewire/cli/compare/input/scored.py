"""Scores the answers of this run, and keeps the scores so that a break costs none."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.choosing.pairs import results_of
from gradewire.cli.input.pictures import with_picture_digests
from gradewire.cli.output.progress import progress
from gradewire.cli.output.results_file import ResultsFile
from gradewire.cli.run.file_corpus import refuse_part_of_a_request
from gradewire.cli.run.plan import resolve_plan
from gradewire.cli.run.row_scorer import RowScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.cli.compare.input.collected import Collected
    from gradewire.cli.input.files import InputFile
    from gradewire.cli.input.rows import Row
    from gradewire.cli.options.metrics import MetricOptions
    from gradewire.cli.run.row_scorer import ScoredRow


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFiles:
    """Files of answers that this run scores.

    Attributes:
        metrics: By what they are scored.
        deadline_s: Of one batch of rows, seconds.
        kept: Where the scores are kept, as gradewire score writes them; None: nowhere.
        resume: Whether what is kept there stands.
    """

    source: InputFile
    metrics: MetricOptions
    deadline_s: float
    kept: Path | None
    resume: bool
    quiet: bool

    async def score(
        self,
        client: AsyncClient,
        collected: Collected,
        rows: Sequence[Row],
        *,
        has_synthetic: bool,
        check: Callable[[Sequence[str]], object],
    ) -> None:
        """Scores these of the rows that were read, into `collected`.

        `check` is given the labels of the metrics before any row is scored; what it raises ends the run.

        Raises:
            InputError: What is kept belongs to another run, or cannot be written.
            GradewireError: The server is not there, or cannot compute what is asked.
        """
        plan = await resolve_plan(client, self.metrics, self.source, has_synthetic=has_synthetic, quiet=self.quiet)
        check(plan.chosen.labels)

        def take(row: Row, output: Mapping[str, Any]) -> None:
            collected.results[row.index] = results_of(output)

        def take_batch(batch: Sequence[ScoredRow]) -> None:
            if results is not None:
                results.write([scored.output for scored in batch])
            for scored in batch:
                take(scored.row, scored.output)

        with contextlib.ExitStack() as stack:
            results = stack.enter_context(ResultsFile(self.kept)) if self.kept else None
            if self.kept and self.resume:
                refuse_part_of_a_request(plan.chosen, self.source, self.kept, plan.pictures)
            known = results.waiting if results else lambda _: None
            scorer = await RowScorer.open(client, plan, deadline_s=self.deadline_s, known=known)
            collected.lines[""] = scorer.lines
            read = with_picture_digests(iter(rows), plan.pictures)
            waiting = results.left(read, scorer.lines, take, resume=self.resume) if results else read
            already = len(collected.results)
            shown = stack.enter_context(progress("scoring", len(rows), quiet=self.quiet, already=already))
            await scorer.score(waiting, take_batch, shown, already=already)
            left = results.finish() if results else ""
        if left:
            click.echo(left, err=True)
