"""Tables of models' accuracy according to metrics and according to annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import CELLS_MEAN, Table, Value, bare, cell_names, cells_mean, count, estimated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire_stats.model_accuracy import ModelAccuracyTable


@dataclass(frozen=True, slots=True)
class People:
    """Words for annotators in tables, or for the evaluator that replaces annotators.

    Attributes:
        possessive: The word before "accuracy".
        accuracy_title: Title of the table that shows the annotators' accuracy.
        judge: Subject and verb in the phrase "as annotators judge them".
        several: Last word of the phrase "agreement with annotators".
    """

    name: str = "human"
    possessive: str = "human"
    accuracy_title: str = "Human accuracy, over all labelled rows"
    judge: str = "annotators judge"
    several: str = "annotators"

    @classmethod
    def evaluator(cls, label: str) -> Self:
        """Return the words for an evaluator that replaces annotators."""
        title = f"{label}'s accuracy, over all rows that it judged"
        return cls(label, f"{label}'s", title, judge=f"{label} judges", several=label)

    @property
    def all_rows(self) -> str:
        """Head of the table row or column that covers all rows."""
        return f"{self.name}, all rows"


def accuracy_headline(table: ModelAccuracyTable, people: People) -> Iterator[Table]:
    """Yield a table of each cell's accuracy. If there are several cells, first yield a table of mean deviations."""
    cells = len(table.cells)
    if cells > 1:
        yield Table(
            f"Deviation from {people.possessive} accuracy: mean size over {cells} cells (data set and model)",
            ["metric", "mean size"],
            [[found.evaluator, cells_mean(found.mean_absolute_deviation)] for found in table.evaluators],
        )
    written = estimated if cells == 1 else bare
    yield Table(
        "Accuracy, on the rows that the metric judged",
        ["", people.all_rows, *(found.evaluator for found in table.evaluators)],
        [
            [name, written(cell.human), *(written(found.cells[place].accuracy) for found in table.evaluators)]
            for place, (name, cell) in enumerate(zip(_cell_names(table, between=" "), table.cells, strict=True))
        ],
    )


def _cell_names(table: ModelAccuracyTable, *, between: str = "\n") -> list[str]:
    return cell_names([(cell.dataset, cell.model) for cell in table.cells], between=between)


def accuracy_tables(table: ModelAccuracyTable, people: People) -> Iterator[Table]:
    """Yield all tables: accuracies, deviations, and rows without a verdict."""
    names = _cell_names(table)
    yield Table(
        people.accuracy_title,
        ["", *names],
        [
            ["rows", *(count(cell.rows) for cell in table.cells)],
            [f"{people.possessive} accuracy", *(estimated(cell.human) for cell in table.cells)],
        ],
    )
    yield Table(
        f"Deviation from {people.possessive} accuracy, on the rows that the metric judged",
        ["metric", *names, "mean size"],
        [
            [
                found.evaluator,
                *(estimated(cell.deviation) for cell in found.cells),
                cells_mean(found.mean_absolute_deviation),
            ]
            for found in table.evaluators
        ],
    )
    yield Table("Accuracy, on the rows that the metric judged", ["metric", *names], list(_accuracies(table, people)))
    if any(cell.failed for found in table.evaluators for cell in found.cells):
        yield Table(
            "Rows without a verdict",
            ["metric", *names],
            [[found.evaluator, *(count(cell.failed) for cell in found.cells)] for found in table.evaluators],
        )


def accuracy_intervals(table: ModelAccuracyTable, people: People) -> Iterator[NamedEstimate]:
    """Yield every estimate in the tables, for notes on the intervals."""
    names = _cell_names(table, between=" ")
    for name, cell in zip(names, table.cells, strict=True):
        yield NamedEstimate(people.name, f"{people.possessive} accuracy", name, cell.human)
    for found in table.evaluators:
        for name, judged in zip(names, found.cells, strict=True):
            yield NamedEstimate(found.evaluator, "accuracy", name, judged.accuracy)
            yield NamedEstimate(found.evaluator, f"{people.possessive} accuracy", name, judged.human)
            yield NamedEstimate(found.evaluator, "deviation", name, judged.deviation)
        yield NamedEstimate(found.evaluator, "mean size", CELLS_MEAN, found.mean_absolute_deviation)


def _accuracies(table: ModelAccuracyTable, people: People) -> Iterator[list[Value | str]]:
    for found in table.evaluators:
        yield [found.evaluator, *(estimated(cell.accuracy) for cell in found.cells)]
        # If the metric judged all rows, the table's last line has the human accuracy.
        if any(cell.failed for cell in found.cells):
            yield [f"{people.name}, rows of {found.evaluator}", *(estimated(cell.human) for cell in found.cells)]
    yield [people.all_rows, *(estimated(cell.human) for cell in table.cells)]
