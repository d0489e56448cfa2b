"""Labels that an evaluator gives in the place of people: `--against`."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.cli.output.summary import MetricTally, verdict
from gradewire.cli.run.labels import label_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(slots=True)
class EvaluatorLabels:
    """Scores and verdicts of one metric, which the others are compared with.

    A row counts where the evaluator has a score, and a verdict too if it gives verdicts at all.

    Attributes:
        name: The metric as --against names it.
        label: The metric as its results are called; "" before the first row.
        tally: Its results on all rows, counted.
        left_out: Rows that do not count.
    """

    name: str
    label: str = ""
    tally: MetricTally = field(default_factory=MetricTally)
    left_out: int = 0
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _verdicts: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        """Rows that count so far."""
        return len(self._scores)

    def take(self, output: Mapping[str, Any]) -> bool:
        """Takes in an output row; False where the row does not count.

        Raises:
            InputError: The output has no such metric.
        """
        results = output["scores"]
        self.label = self.label or label_named(list(results), self.name, "--against")
        result = results[self.label]
        self.tally.add(self.label, result, identifier=output["id"])
        judged = verdict(self.label, result)
        unlike_others = bool(self._scores) and (judged is None) == self.has_verdicts
        if result["score"] is None or unlike_others:
            self.left_out += 1
            return False
        self._scores.append(result["score"])
        self._verdicts.append(math.nan if judged is None else float(judged))
        return True

    @property
    def has_verdicts(self) -> bool:
        """Whether it calls answers right or wrong."""
        return bool(self._verdicts) and not math.isnan(self._verdicts[0])

    @property
    def last_score(self) -> float:
        """Score of the row that was taken in last."""
        return self._scores[-1]

    def verdicts(self, cut: float | None = None) -> NDArray[np.float64]:
        """float64[rows that count]: 1 right, 0 wrong, NaN without verdicts; with `cut`, right from there upward."""
        return np.array(self._verdicts) if cut is None else (np.array(self._scores) >= cut).astype(np.float64)

    def told(self, note: str = "") -> str:
        """A line for people: what reproduces it, a note on that, and what failed."""
        return self.tally.told(self.label, f"{note} (stands in the place of people)")
