"""Verdicts of evaluators against people's: models by evaluators (KNVQA-Eval), and accuracies by data set (SMILE)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.draws import CellDraws, JointBootstrap, mean_over
from gradewire_stats.agreement.rows import JudgedRows, Part, parts_of, rows_by
from gradewire_stats.agreement.statistics import Statistic, right
from gradewire_stats.bootstrap import CellsMean, Estimate

KNVQA_STATISTICS: tuple[Statistic, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall", "positive_rate")
# People as one more evaluator; no metric line begins so.
_HUMAN = "\x00human"


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model under test as people judge it, over all labelled answers, judged by an evaluator or not.

    Attributes:
        human_rate: Share of them that people call right (mean label), 0 to 1.
        human_rank: Rank of the model by that share, 1 the best, equal ones share the better rank; None if not defined.
        mean_length_words: Mean length of its answers that are not empty, words between white space; NaN where nobody
            counted.
    """

    model: str
    rows: int
    human_rate: Estimate
    human_rank: int | None
    mean_length_words: float


@dataclass(frozen=True, slots=True)
class EvaluatorOnModel:
    """Verdicts of one evaluator on the answers of one model.

    Attributes:
        rows: Answers with a verdict.
        failed: Answers without.
        estimates: accuracy, f1 (of right answers; the paper prints it as Macro-F1), macro_f1 (mean of the F1 of right
            and of wrong answers), precision, recall, positive_rate (the paper's score).
        rank: Rank of the evaluator among all on this model by positive rate, 1 the highest, equal ones share the better
            rank: the paper's. None where it has no verdict.
        model_rank: Rank of the model among all by this evaluator's positive rate; to be held against `human_rank`.
        human_rate: Share of the very answers in `rows` that people call right (mean label), 0 to 1.
        human_rank: Rank of the model among all by that share.
        mean_length_words: Mean length of the answers in `rows`, as `ModelSummary` counts it.
    """

    evaluator: str
    model: str
    rows: int
    failed: int
    estimates: Mapping[Statistic, Estimate]
    rank: int | None
    model_rank: int | None
    human_rate: Estimate
    human_rank: int | None
    mean_length_words: float


@dataclass(frozen=True, slots=True)
class KnvqaTable:
    """Models, and evaluators on each model (all models of the first evaluator first)."""

    models: Sequence[ModelSummary]
    lines: Sequence[EvaluatorOnModel]


def knvqa_table(
    rows: JudgedRows, *, lengths_words: NDArray[np.float64] | None = None, resamples: int = 5000, seed: int = 0
) -> KnvqaTable:
    """Compare verdicts with human ones.

    Args:
        rows: Verdicts and labels in [0, 1]; `JudgedRows.with_cuts` gives verdicts to metrics without one.
        lengths_words: float64[rows], length of each answer; NaN where it is not known. Empty ones (0) are in no mean.
        resamples: Draws of whole questions behind the intervals.
        seed: Same seed, same intervals.

    Returns:
        Rows without a verdict enter no figure of an evaluator, the human ones beside it included, and are counted.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There is no row, columns differ in length, or a label is not a number.
    """
    parts = [Part("model", "", name, "", where) for name, where in rows_by(list(map(str, rows.models))).items()]
    human, tables = _drawn(rows, parts, (*KNVQA_STATISTICS, "human_rate"), resamples=resamples, seed=seed)
    ranks = _ranks([cell.values["human_rate"] for cell in human])
    summaries = [
        ModelSummary(
            model=part.model,
            rows=len(part.rows),
            human_rate=cell.estimate("human_rate"),
            human_rank=rank,
            mean_length_words=_mean_length(lengths_words, part.rows),
        )
        for part, cell, rank in zip(parts, human, ranks, strict=True)
    ]
    return KnvqaTable(summaries, _lines(rows, tables, lengths_words))


def _lines(
    rows: JudgedRows, tables: Mapping[str, Sequence[CellDraws]], lengths_words: NDArray[np.float64] | None
) -> list[EvaluatorOnModel]:
    rates = [[cell.values["positive_rate"] for cell in table] for table in tables.values()]
    model_ranks = [_ranks(row) for row in rates]
    columns = [_ranks(list(column)) for column in zip(*rates, strict=True)]
    human_ranks = [_ranks([cell.values["human_rate"] for cell in table]) for table in tables.values()]
    return [
        EvaluatorOnModel(
            evaluator=metric,
            model=cell.part.model,
            rows=cell.sample.judged,
            failed=len(cell.part.rows) - cell.sample.judged,
            estimates={name: cell.estimate(name) for name in KNVQA_STATISTICS},
            rank=columns[place][number],
            model_rank=model_ranks[number][place],
            human_rate=cell.estimate("human_rate"),
            human_rank=human_ranks[number][place],
            mean_length_words=_mean_length(lengths_words, _judged(rows, metric, cell)),
        )
        for number, (metric, table) in enumerate(tables.items())
        for place, cell in enumerate(table)
    ]


def _ranks(values: Sequence[float]) -> list[int | None]:
    """Rank of each value, 1 the highest; None for NaN."""
    return [None if math.isnan(value) else 1 + sum(other > value for other in values) for value in values]


def _judged(rows: JudgedRows, metric: str, cell: CellDraws) -> NDArray[np.intp]:
    """Positions in the table of the rows that the metric has a verdict on."""
    part = cell.part.rows
    return part[np.isfinite(rows.scores[metric][part]) & ~np.isnan(rows.verdicts[metric][part])]


def _mean_length(lengths_words: NDArray[np.float64] | None, rows: NDArray[np.intp]) -> float:
    if lengths_words is None:
        return math.nan
    # An empty prediction is a failed row, no short answer.
    known = lengths_words[rows][np.isfinite(lengths_words[rows]) & (lengths_words[rows] > 0)]
    return float(known.mean()) if len(known) else math.nan


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
        accuracy: Share of right verdicts, 0 to 1.
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
    statistics: Sequence[Statistic] = ("positive_rate", "human_rate", "deviation")
    human, tables = _drawn(rows, parts, statistics, resamples=resamples, seed=seed)
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


def _drawn(
    rows: JudgedRows, parts: Sequence[Part], statistics: Sequence[Statistic], *, resamples: int, seed: int
) -> tuple[Sequence[CellDraws], Mapping[str, Sequence[CellDraws]]]:
    """Return the human rate of every part, and the statistics of every metric there, from the same draws."""
    bootstrap = JointBootstrap(_with_human(rows), parts)
    human = bootstrap.cells(_HUMAN, ["human_rate"])
    tables = {metric: bootstrap.cells(metric, statistics) for metric in rows.scores}
    bootstrap.run(resamples=resamples, seed=seed)
    return human, tables


def _with_human(rows: JudgedRows) -> JudgedRows:
    """Add a metric `_HUMAN` whose verdicts are the labels; it has none where labels leave [0, 1]."""
    positive = right(rows.labels)
    verdicts = np.full(len(rows.labels), np.nan) if positive is None else positive.astype(np.float64)
    return replace(rows, scores={**rows.scores, _HUMAN: rows.labels}, verdicts={**rows.verdicts, _HUMAN: verdicts})
