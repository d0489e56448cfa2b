"""A metric as chooser: the scores are there, so that a choice costs nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.cli.choosing.pairs import Choice, Winner, results_of
from gradewire.cli.output.progress import progress
from gradewire.comparison.preferences import TieMargin, preferences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.cli.choosing.choosers import Chosen
    from gradewire.cli.choosing.pairs import Answer, AnswerPair, Result
    from gradewire.cli.input.rows import Row
    from gradewire.cli.run.row_scorer import RowScorer, ScoredRow

_BATCH_PAIRS = 1024
# Scored before their pairs are given: what a break loses.
_ANSWERS_AT_A_TIME = 512
_WINNERS: Mapping[float, Winner] = {1.0: "model_b", -1.0: "model_a", 0.0: "tie"}


@dataclass(frozen=True, slots=True)
class MetricChooser:
    """Implements Chooser by the scores that the answers have.

    Attributes:
        name: Label of the metric.
        line: What reproduces it; "" where nobody knows.
        tie_margin: Of `preferences`.
        scorer: Scores answers that have none, each once; None where all have one.
    """

    name: str
    line: str
    tie_margin: TieMargin
    scorer: RowScorer | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The metric's line and the margin."""
        return {"by": self.line or self.name, "tie_margin": self.tie_margin}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """As `Chooser.choose`; where it scores answers the pairs that it gives have their results."""
        scored: dict[int, Mapping[str, Result]] = {}
        remaining = iter(pairs)
        while True:
            batch, new = self._batch(remaining, scored)
            if not batch:
                return
            scored |= await self._scored(new)
            if self.scorer is not None:
                batch = [replace(pair, a=_with(pair.a, scored), b=_with(pair.b, scored)) for pair in batch]
            results = [[answer.results[self.name] for answer in (pair.a, pair.b)] for pair in batch]
            scores = _numbers([[result.score for result in two] for two in results])
            verdicts = _numbers([[result.correct for result in two] for two in results])
            preferred = preferences(scores, verdicts, self.tie_margin).tolist()
            yield [(pair, self._choice(pair, side)) for pair, side in zip(batch, preferred, strict=True)]

    def _batch(
        self, remaining: Iterator[AnswerPair], scored: Container[int]
    ) -> tuple[list[AnswerPair], dict[int, Row]]:
        """The next pairs, and rows of their answers that have to be scored first."""
        batch: list[AnswerPair] = []
        new: dict[int, Row] = {}
        for pair in remaining:
            batch.append(pair)
            if self.scorer is not None:
                new |= {answer.row.index: answer.row for answer in (pair.a, pair.b) if answer.row.index not in scored}
            if len(new) >= _ANSWERS_AT_A_TIME or (not new and len(batch) >= _BATCH_PAIRS):
                break
        return batch, new

    async def _scored(self, rows: Mapping[int, Row]) -> dict[int, Mapping[str, Result]]:
        found: dict[int, Mapping[str, Result]] = {}

        def take(batch: Sequence[ScoredRow]) -> None:
            found.update((scored.row.index, results_of(scored.output)) for scored in batch)

        if self.scorer is not None and rows:
            with progress("scoring", len(rows), quiet=True) as silent:
                await self.scorer.score(rows.values(), take, silent)
        return found

    def _choice(self, pair: AnswerPair, preferred: float) -> Choice:
        if not math.isnan(preferred):
            return Choice(winner=_WINNERS[preferred])
        for model, answer in ((pair.model_a, pair.a), (pair.model_b, pair.b)):
            result = answer.results[self.name]
            if result.score is None:
                return Choice(winner=None, status=result.status, message=f"{model} has no score of {self.name}")
        return Choice(winner=None, status="NO_VERDICT", message=f"{self.name} gives no verdict")


def _with(answer: Answer, scored: Mapping[int, Mapping[str, Result]]) -> Answer:
    return replace(answer, results=scored[answer.row.index])


def _numbers(values: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.array([[math.nan if value is None else float(value) for value in two] for two in values])
