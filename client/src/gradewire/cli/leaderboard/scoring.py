"""Scores of answers, for a metric that chooses between them: each answer is scored once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gradewire.cli.choosing.pairs import Result
from gradewire.cli.output.progress import progress
from gradewire.cli.problems import InputError
from gradewire.cli.run.plan import resolve_plan
from gradewire.cli.run.row_scorer import RowScorer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire import AsyncClient
    from gradewire.cli.input.files import InputFile
    from gradewire.cli.input.rows import Row
    from gradewire.cli.options.metrics import MetricOptions
    from gradewire.cli.run.row_scorer import ScoredRow


@dataclass(frozen=True, slots=True)
class AnswerScorer:
    """Scores answers with one metric; made by `open`.

    Attributes:
        label: Of the metric.
        line: What reproduces its scores.
    """

    label: str
    line: str
    _scorer: RowScorer

    @classmethod
    async def open(  # noqa: PLR0913 - what is asked, and how
        cls,
        client: AsyncClient,
        options: MetricOptions,
        source: InputFile,
        *,
        has_synthetic: bool,
        deadline_s: float,
        quiet: bool,
    ) -> Self:
        """Asks the server about the metric.

        Raises:
            InputError: Not one metric is named.
            GradewireError: The server is not there, or cannot compute it.
        """
        plan = await resolve_plan(client, options, source, has_synthetic=has_synthetic, quiet=quiet)
        if len(plan.chosen.labels) != 1:
            raise InputError(f"--by {options.metrics}: name one metric that chooses")
        scorer = await RowScorer.open(client, plan, deadline_s=deadline_s)
        (label,) = plan.chosen.labels
        return cls(label, scorer.lines[label], scorer)

    async def results(
        self, answers: Iterable[tuple[tuple[str, str], Row]]
    ) -> dict[tuple[str, str], Mapping[str, Result]]:
        """What the metric says of answers, by instruction and model.

        Raises:
            GradewireError: The server went away, or refuses the call itself.
        """
        keys, rows = zip(*answers, strict=True)
        scored: list[ScoredRow] = []

        def take(batch: Sequence[ScoredRow]) -> None:
            scored.extend(batch)

        with progress("scoring", len(rows), quiet=True) as silent:
            await self._scorer.score(rows, take, silent)
        found: dict[tuple[str, str], Mapping[str, Result]] = {}
        for key, each in zip(keys, scored, strict=True):
            result = each.output["scores"][self.label]
            found[key] = {self.label: Result(result["score"], result.get("correct"), result["status"])}
        return found
