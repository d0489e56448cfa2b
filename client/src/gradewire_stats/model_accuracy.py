"""Accuracy of models by data set, as people judge their answers and as metrics do: the third table of SMILE."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradewire_stats.agreement.joint_bootstrap import CellDraws, drawn_beside_people, mean_over
from gradewire_stats.agreement.rows import JudgedRows, parts_of
from gradewire_stats.agreement.statistics import Statistic
from gradewire_stats.bootstrap import CellsMean, Estimate

_STATISTICS: tuple[Statistic, ...] = ("positive_rate", "human_rate", "deviation")


@dataclass(frozen=True, slots=True)
class AccuracyCell:
    """All labelled answers of one model to one data set, as people judge them, judged by a metric or not.

    Attributes:
        human: Mean label, 0 to 1; NaN where labels of the table leave that range.
    """

    dataset: str
    model: str
    rows: int
    human: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorCell:
    """The same answers as a metric judges them.

    Attributes:
        judged: Rows with a verdict.
        failed: Rows without.
        accuracy: Share of the answers that the metric calls right, 0 to 1: the accuracy of the model by its verdicts.
        human: Mean label of the judged rows, 0 to 1.
        deviation: `accuracy` minus `human`, -1 to 1.
    """

    dataset: str
    model: str
    judged: int
    failed: int
    accuracy: Estimate
    human: Estimate
    deviation: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorAccuracy:
    """One line of the table.

    Attributes:
        cells: In the order of the table's cells.
        mean_absolute_deviation: Mean size of the deviation over the cells in which it is defined, 0 to 1. Chance
            keeps its draws away from 0, so near 0 the interval lies a little too high.
    """

    evaluator: str
    cells: Sequence[EvaluatorCell]
    mean_absolute_deviation: CellsMean


@dataclass(frozen=True, slots=True)
class ModelAccuracyTable:
    """Data sets and models by evaluators."""

    cells: Sequence[AccuracyCell]
    evaluators: Sequence[EvaluatorAccuracy]


def model_accuracy(rows: JudgedRows, *, resamples: int = 5000, seed: int = 0) -> ModelAccuracyTable:
    """Return the accuracy of every model on every data set, human and by metric.

    Args:
        rows: Verdicts and labels in [0, 1]; `JudgedRows.with_cuts` gives verdicts to metrics without one.
        resamples: Draws of whole questions behind the intervals.
        seed: Same seed, same intervals.

    Returns:
        Rows without a verdict enter no figure of a metric, the human one beside it included, and are counted.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There is no row, columns differ in length, or a label is not a number.
    """
    parts = [part for part in parts_of(rows) if part.level == "cell"]
    human, tables = drawn_beside_people(rows, parts, _STATISTICS, resamples=resamples, seed=seed)
    return ModelAccuracyTable(
        [
            AccuracyCell(part.dataset, part.model, len(part.rows), cell.estimate("human_rate"))
            for part, cell in zip(parts, human, strict=True)
        ],
        [_evaluator(metric, table) for metric, table in tables.items()],
    )


def _evaluator(metric: str, table: Sequence[CellDraws]) -> EvaluatorAccuracy:
    cells = [
        EvaluatorCell(
            dataset=cell.part.dataset,
            model=cell.part.model,
            judged=cell.sample.judged,
            failed=len(cell.part.rows) - cell.sample.judged,
            accuracy=cell.estimate("positive_rate"),
            human=cell.estimate("human_rate"),
            deviation=cell.estimate("deviation"),
        )
        for cell in table
    ]
    return EvaluatorAccuracy(metric, cells, mean_over(table, "deviation", absolute=True))
