"""A metric as chooser: the scores are there, so that a choice costs nothing."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.cli.choosing.pairs import Choice, Winner
from gradewire.comparison.preferences import TieMargin, preferences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.cli.choosing.choosers import Chosen
    from gradewire.cli.choosing.pairs import AnswerPair

_BATCH_PAIRS = 1024
_WINNERS: Mapping[float, Winner] = {1.0: "model_b", -1.0: "model_a", 0.0: "tie"}


@dataclass(frozen=True, slots=True)
class MetricChooser:
    """Implements Chooser by the scores that the answers have.

    Attributes:
        name: Label of the metric.
        line: What reproduces it; "" where nobody knows.
        tie_margin: Of `preferences`.
    """

    name: str
    line: str
    tie_margin: TieMargin

    @property
    def identity(self) -> Mapping[str, Any]:
        """The metric's line and the margin."""
        return {"by": self.line or self.name, "tie_margin": self.tie_margin}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """As `Chooser.choose`."""
        remaining = iter(pairs)
        while batch := list(itertools.islice(remaining, _BATCH_PAIRS)):
            results = [[answer.results[self.name] for answer in (pair.a, pair.b)] for pair in batch]
            scores = _numbers([[result.score for result in two] for two in results])
            verdicts = _numbers([[result.correct for result in two] for two in results])
            preferred = preferences(scores, verdicts, self.tie_margin).tolist()
            yield [(pair, self._choice(pair, side)) for pair, side in zip(batch, preferred, strict=True)]

    def _choice(self, pair: AnswerPair, preferred: float) -> Choice:
        if not math.isnan(preferred):
            return Choice(winner=_WINNERS[preferred])
        for model, answer in ((pair.model_a, pair.a), (pair.model_b, pair.b)):
            result = answer.results[self.name]
            if result.score is None:
                return Choice(winner=None, status=result.status, message=f"{model} has no score of {self.name}")
        return Choice(winner=None, status="NO_VERDICT", message=f"{self.name} gives no verdict")


def _numbers(values: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.array([[math.nan if value is None else float(value) for value in two] for two in values])
