"""Verdicts of evaluators against people's, model by model: the tables of KNVQA-Eval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.joint_bootstrap import CellDraws, drawn_beside_people
from gradewire_stats.agreement.rows import JudgedRows, Part, rows_by
from gradewire_stats.agreement.statistics import Statistic
from gradewire_stats.bootstrap import Estimate

KNVQA_STATISTICS: tuple[Statistic, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall", "positive_rate")


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
    human, tables = drawn_beside_people(rows, parts, (*KNVQA_STATISTICS, "human_rate"), resamples=resamples, seed=seed)
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
