"""Collects the scores of a run by question and group, row by row."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradewire.cli.output.summary import verdict
from gradewire.results import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.input.grouping import Grouping
    from gradewire.cli.input.rows import Row

# Fractions of results that are the same for every answer, so that their mean says nothing of the answers.
_SETTINGS = frozenset({"band_lower", "band_upper"})


@dataclass(slots=True)
class Tally:
    """One metric on the rows of one group.

    Attributes:
        rows: All rows.
        scored: Those with a score.
        total: Sum of their scores.
        verdicts: Rows by verdict, those without one left out.
        statuses: Rows by status.
        parts: Sum and number of each part of the results that is a fraction.
    """

    rows: int = 0
    scored: int = 0
    total: float = 0.0
    verdicts: Counter[bool] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    parts: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add(self, label: str, result: Mapping[str, Any]) -> None:
        """Takes in a result, as an output row has it."""
        self.rows += 1
        self.statuses[result["status"]] += 1
        if result["score"] is None:
            return
        self.scored += 1
        self.total += result["score"]
        if (judged := verdict(label, result)) is not None:
            self.verdicts[judged] += 1
        for name, value in result.items():
            # Counts, positions and bins are whole numbers: their means say nothing.
            if isinstance(value, float) and name != "score" and name not in _SETTINGS:
                total, count = self.parts.get(name, (0.0, 0))
                self.parts[name] = total + value, count + 1

    @property
    def mean(self) -> float:
        """Mean score, NaN without any."""
        return self.total / self.scored if self.scored else math.nan

    @property
    def empty(self) -> int:
        """Rows whose prediction is empty."""
        return self.statuses[Status.EMPTY_PREDICTION]

    @property
    def mean_empty_as_wrong(self) -> float:
        """The mean with every empty prediction counted as 0, as official programs do."""
        rows = self.scored + self.empty
        return self.total / rows if rows else math.nan

    @property
    def share_right(self) -> float:
        """Share of rows called right among those with a verdict, NaN without any."""
        judged = self.verdicts.total()
        return self.verdicts[True] / judged if judged else math.nan

    @property
    def part_means(self) -> dict[str, float]:
        """Mean of each part over the rows that have it."""
        return {name: total / count for name, (total, count) in self.parts.items()}

    @property
    def shares_without_score(self) -> dict[str, float]:
        """Share of all rows by the status that they have in place of a score."""
        return {status: count / self.rows for status, count in self.statuses.items() if status != Status.OK}


@dataclass(slots=True)
class GroupColumn:
    """The groups of one grouping.

    Attributes:
        grouping: The columns.
        numbers: Number of each group by its values, in the order in which they come first.
        groups: Group of each row; -1 for a row without one of the values.
        tallies: By group and label.
    """

    grouping: Grouping
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    groups: array[int] = field(default_factory=lambda: array("i"))
    tallies: list[dict[str, Tally]] = field(default_factory=list)

    @property
    def outside(self) -> int:
        """Rows that are in no group."""
        return self.groups.count(-1)

    def add(self, row: Row, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes in a row with its results by label."""
        values = tuple(row.grouping.get(column, "") for column in self.grouping)
        if not all(values):
            self.groups.append(-1)
            return
        number = self.numbers.setdefault(values, len(self.numbers))
        if number == len(self.tallies):
            self.tallies.append({})
        self.groups.append(number)
        for label, result in results.items():
            self.tallies[number].setdefault(label, Tally()).add(label, result)


@dataclass(slots=True)
class GroupedScores:
    """All groupings of a run; about 12 bytes a row, 8 a score and 150 a question.

    Attributes:
        columns: One for each grouping.
        scores: By label, one a row; NaN where the row has none.
        questions: Number of each row's question.
        datasets: Data set of each question, by number.
    """

    columns: Sequence[GroupColumn] = ()
    scores: dict[str, array[float]] = field(default_factory=dict)
    questions: array[int] = field(default_factory=lambda: array("i"))
    datasets: array[int] = field(default_factory=lambda: array("i"))
    _keys: dict[tuple[int, str], int] = field(default_factory=dict)
    _dataset_numbers: dict[str, int] = field(default_factory=dict)

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Takes in a row and its output row."""
        if not self.columns:
            return
        self.questions.append(self._question(row))
        for label, result in output["scores"].items():
            score = math.nan if result["score"] is None else result["score"]
            self.scores.setdefault(label, array("d")).append(score)
        for column in self.columns:
            column.add(row, output["scores"])

    def _question(self, row: Row) -> int:
        dataset = self._dataset_numbers.setdefault(row.dataset, len(self._dataset_numbers))
        number = len(self.datasets)
        if row.question_key:
            number = self._keys.setdefault((dataset, row.question_key), number)
        if number == len(self.datasets):
            self.datasets.append(dataset)
        return number
