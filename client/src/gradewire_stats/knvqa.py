"""Compare evaluators' verdicts with human verdicts for each model, as in KNVQA-Eval's tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.joint_bootstrap import PartDraws, draws_with_human_rate
from gradewire_stats.agreement.rows import JudgedRows, Part, rows_by
from gradewire_stats.agreement.statistics import Statistic
from gradewire_stats.bootstrap import Estimate

KNVQA_STATISTICS: tuple[Statistic, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall", "positive_rate")


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Human judgement of all of a model's labelled answers, including answers without an evaluator's verdict.

    Attributes:
        human_rate: Share of right answers by human labels (mean label), 0 to 1.
        human_rank: The model's rank by `human_rate`. 1 is best, and ties share the better rank. None if the rate is
            undefined.
        mean_length_words: Mean length of the model's nonempty answers, in words separated by white space, or NaN if
            unknown.
    """

    model: str
    rows: int
    human_rate: Estimate
    human_rank: int | None
    mean_length_words: float


@dataclass(frozen=True, slots=True)
class EvaluatorOnModel:
    """An evaluator's verdicts on a model's answers.

    Attributes:
        rows: Number of answers with a verdict.
        estimates: Statistics by name: accuracy, f1 (for right answers, which the paper calls Macro-F1), macro_f1 (mean
            F1 for right and for wrong answers), precision, recall, positive_rate (the paper's score).
        rank: The evaluator's rank among all evaluators by positive rate on this model, as in the paper. 1 is highest,
            and ties share the better rank. None without verdicts.
        model_rank: The model's rank among all models by this evaluator's positive rate, to compare with `human_rank`.
        human_rate: Share of right answers by human labels (mean label), 0 to 1, over the answers with a verdict.
        mean_length_words: Mean length of the answers with a verdict, as in `ModelSummary`.
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
    """A summary of each model, and a line for each evaluator and model. The lines are sorted by evaluator."""

    models: Sequence[ModelSummary]
    lines: Sequence[EvaluatorOnModel]


def knvqa_table(
    rows: JudgedRows, *, lengths_words: NDArray[np.float64] | None = None, resamples: int = 5000, seed: int = 0
) -> KnvqaTable:
    """Compare evaluators' verdicts with human labels.

    Args:
        rows: Verdicts and labels in [0, 1]. `JudgedRows.with_cuts` can add verdicts.
        lengths_words: float64[rows], each answer's length, NaN if unknown. Means exclude empty answers (length 0).
        resamples: Number of draws of whole questions for the intervals.
        seed: Seed for the draws.

    Returns:
        The table. Each evaluator's line contains the evaluator's statistics and the human statistics. Both use only the
        rows with a verdict from this evaluator.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There are no rows, columns differ in length, or a label is not finite.
    """
    parts = [Part("model", "", name, "", where) for name, where in rows_by(list(map(str, rows.models))).items()]
    human, tables = draws_with_human_rate(
        rows, parts, (*KNVQA_STATISTICS, "human_rate"), resamples=resamples, seed=seed
    )
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
    rows: JudgedRows, tables: Mapping[str, Sequence[PartDraws]], lengths_words: NDArray[np.float64] | None
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
    return [None if math.isnan(value) else 1 + sum(other > value for other in values) for value in values]


def _judged(rows: JudgedRows, metric: str, cell: PartDraws) -> NDArray[np.intp]:
    part = cell.part.rows
    return part[np.isfinite(rows.scores[metric][part]) & ~np.isnan(rows.verdicts[metric][part])]


def _mean_length(lengths_words: NDArray[np.float64] | None, rows: NDArray[np.intp]) -> float:
    if lengths_words is None:
        return math.nan
    # An empty prediction is a failed row, not a short answer.
    known = lengths_words[rows][np.isfinite(lengths_words[rows]) & (lengths_words[rows] > 0)]
    return float(known.mean()) if len(known) else math.nan
