"""Scores beside labels, row by row: from a run of the metrics, or from the output of an earlier one."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.agreement import JudgedRows
from gradewire.cli.problems import InputError
from gradewire.cli.results_file import read_results
from gradewire.cli.summary import MetricTally, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gradewire.cli.rows import Row


@dataclass(slots=True)
class JudgedColumns:
    """Columns under construction, one entry per labelled row.

    Attributes:
        tallies: Counts of the labelled rows by label of the metric.
        unlabelled: Rows left out because they have no label.
        unreadable: Rows left out because their label cannot be read.
        first_unreadable: Where the first of these stands and what its label is; "" without any.
    """

    tallies: dict[str, MetricTally] = field(default_factory=dict)
    unlabelled: int = 0
    unreadable: int = 0
    first_unreadable: str = ""
    _scores: dict[str, array[float]] = field(default_factory=dict)
    _verdicts: dict[str, array[float]] = field(default_factory=dict)
    _labels: array[float] = field(default_factory=lambda: array("d"))
    _datasets: list[str] = field(default_factory=list)
    _models: list[str] = field(default_factory=list)
    _questions: list[str] = field(default_factory=list)

    def labelled(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows with a label; counts the others, those without one apart from those whose label cannot be read."""
        for row in rows:
            if row.human.value is not None:
                yield row
            elif row.human.unreadable:
                self.unreadable += 1
                self.first_unreadable = self.first_unreadable or f"{row.place}: {row.human.unreadable}"
            else:
                self.unlabelled += 1

    @property
    def unreadable_labels(self) -> str:
        """How many labels cannot be read, with the first of them."""
        return f"the label of {self.unreadable} rows cannot be read as a number (first at {self.first_unreadable})"

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Takes in a labelled row and its output row."""
        for label, result in output["scores"].items():
            self.tallies.setdefault(label, MetricTally()).add(label, result, identifier=row.id)
            judged = verdict(label, result)
            score = math.nan if result["score"] is None else result["score"]
            self._scores.setdefault(label, array("d")).append(score)
            self._verdicts.setdefault(label, array("d")).append(math.nan if judged is None else float(judged))
        self._labels.append(math.nan if row.human.value is None else row.human.value)
        self._datasets.append(row.dataset)
        self._models.append(row.model)
        self._questions.append(str(row.item.get("question", "")) if row.item else "")

    def judged(self) -> JudgedRows:
        """The columns as arrays.

        Raises:
            InputError: No row has a label that can be read.
        """
        if not self._labels and self.unreadable:
            raise InputError(f"{self.unreadable_labels}, and no row has one that can: give --map label=COLUMN")
        if not self._labels:
            raise InputError("no row has a label (looked for label, human_score, labels): give --map label=COLUMN")
        return JudgedRows(
            scores={label: np.array(column) for label, column in self._scores.items()},
            verdicts={label: np.array(column) for label, column in self._verdicts.items()},
            labels=np.array(self._labels),
            datasets=self._datasets,
            models=self._models,
            questions=self._questions,
        )


def with_earlier_scores(rows: Iterator[Row], path: Path) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Joins rows with the output of an earlier run, by row number.

    Args:
        rows: Rows of the input, in order; some may be left out.
        path: Output of `gradewire score` on the same input.

    Raises:
        InputError: The file is not there, is no such output, ends too early, or was made from other rows.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    results = read_results(path)
    output: dict[str, Any] = {"index": -1}
    labels: list[str] | None = None
    for row in rows:
        while output["index"] < row.index:
            _, output = next(results, (0, {"index": math.inf}))
        if output["index"] != row.index:
            raise InputError(f"{path} has no scores of {row.place}: finish it with gradewire score --resume")
        if output["digest"] != row.digest:
            raise InputError(f"{path} was made from another text at {row.place}: score the file again")
        labels = labels or list(output["scores"])
        if list(output["scores"]) != labels:
            raise InputError(f"{path}: the metrics at {row.place} are not those of the first row: score the file again")
        yield row, output
