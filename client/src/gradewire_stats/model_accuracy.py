"""Models' accuracy by data set, according to human labels and metrics, as in SMILE's third table."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradewire_stats.agreement.joint_bootstrap import PartDraws, draws_with_human_rate, mean_over
from gradewire_stats.agreement.rows import JudgedRows, parts_of
from gradewire_stats.agreement.statistics import Statistic
from gradewire_stats.bootstrap import CellsMean, Estimate

_STATISTICS: tuple[Statistic, ...] = ("positive_rate", "human_rate", "deviation")


@dataclass(frozen=True, slots=True)
class AccuracyCell:
    """A model's labelled answers in a data set, including answers without a metric's verdict.

    Attributes:
        human: Mean label, 0 to 1, or NaN if a label in the table lies outside this range.
    """

    dataset: str
    model: str
    rows: int
    human: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorCell:
    """A metric's verdicts on a model's answers in a data set.

    Attributes:
        judged: Number of answers with a verdict.
        accuracy: The model's accuracy: the share of judged answers that the metric calls right, 0 to 1.
        human: Mean label of the judged answers, 0 to 1.
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
    """A metric's verdicts on all models and data sets.

    Attributes:
        mean_absolute_deviation: Mean absolute deviation over the cells with a defined deviation, 0 to 1. Absolute
            values in draws are above 0 by chance, so the interval of a value near 0 is slightly too high.
    """

    evaluator: str
    cells: Sequence[EvaluatorCell]
    mean_absolute_deviation: CellsMean


@dataclass(frozen=True, slots=True)
class ModelAccuracyTable:
    """The accuracy of models on data sets, by human labels (`cells`) and by metrics (`evaluators`)."""

    cells: Sequence[AccuracyCell]
    evaluators: Sequence[EvaluatorAccuracy]


def model_accuracy(rows: JudgedRows, *, resamples: int = 5000, seed: int = 0) -> ModelAccuracyTable:
    """Compute the accuracy of every model on every data set, by human labels and by metric.

    Args:
        rows: Verdicts and labels in [0, 1]. `JudgedRows.with_cuts` can add verdicts.
        resamples: Number of draws of whole questions for the intervals.
        seed: Seed for the draws.

    Returns:
        The table. A metric's statistics and the human accuracy next to them use only rows with a verdict from this
        metric.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There are no rows, columns differ in length, or a label is not finite.
    """
    parts = [part for part in parts_of(rows) if part.level == "cell"]
    human, tables = draws_with_human_rate(rows, parts, _STATISTICS, resamples=resamples, seed=seed)
    return ModelAccuracyTable(
        [
            AccuracyCell(part.dataset, part.model, len(part.rows), cell.estimate("human_rate"))
            for part, cell in zip(parts, human, strict=True)
        ],
        [_evaluator(metric, table) for metric, table in tables.items()],
    )


def _evaluator(metric: str, table: Sequence[PartDraws]) -> EvaluatorAccuracy:
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
