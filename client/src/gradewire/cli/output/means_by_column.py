"""Means by the values of a column, as official programs tell their figures by type."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradewire.results import Status


@dataclass(slots=True)
class Mean:
    """A mean over rows that have a score.

    Attributes:
        rows: All rows, with and without a score.
        scored: Those with one.
        empty: Those without one whose prediction is empty.
        total: Sum of their scores.
    """

    rows: int = 0
    scored: int = 0
    empty: int = 0
    total: float = 0.0

    @property
    def value(self) -> float:
        """The mean, NaN without any scored row."""
        return self.total / self.scored if self.scored else math.nan

    @property
    def empty_as_wrong(self) -> float:
        """The same with every empty prediction counted as 0, as official programs do."""
        rows = self.scored + self.empty
        return self.total / rows if rows else math.nan


@dataclass(slots=True)
class MeansByColumn:
    """Means of all metrics by the values of some columns that the output has.

    Attributes:
        columns: Names of the columns.
        means: By column, value and label.
    """

    columns: Sequence[str]
    means: dict[str, dict[str, dict[str, Mean]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.means = {column: defaultdict(lambda: defaultdict(Mean)) for column in self.columns}

    def add(self, output: Mapping[str, Any]) -> None:
        """Takes in an output row; one whose column is blank, or that could not be read, is in no mean."""
        kept = output.get("input", {})
        for column, by_value in self.means.items():
            if not (value := str(kept.get(column) or "")):
                continue
            for label, result in output["scores"].items():
                mean = by_value[value][label]
                mean.rows += 1
                mean.empty += result["status"] == Status.EMPTY_PREDICTION
                if result["score"] is not None:
                    mean.scored += 1
                    mean.total += result["score"]

    def document(self) -> dict[str, Any]:
        """By column, value and label: rows, scored, mean, mean_empty_as_wrong."""
        return {
            column: {
                value: {
                    label: {
                        "rows": mean.rows,
                        "scored": mean.scored,
                        "mean": mean.value,
                        "mean_empty_as_wrong": mean.empty_as_wrong,
                    }
                    for label, mean in means.items()
                }
                for value, means in sorted(by_value.items())
            }
            for column, by_value in self.means.items()
            if by_value
        }
