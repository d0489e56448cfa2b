"""Columns with two runs' results on the same questions, and the answers that a metric prefers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import question_clusters, strata_of

TieMargin = float | Literal["verdict"]
"""Maximum difference between tied scores, or "verdict" if answers with the same verdict tie."""
TIE_MARGIN: Final = 0.2
"""Default margin, in units of the score. With this margin, smile and correctness reproduce most of the annotators' ties
(docs/research/ratings.md)."""
# Differences between scores have rounding errors. For example, 0.5 - 0.3 is more than 0.2.
_ROUNDING = 1e-9


def preferences(
    scores: NDArray[np.float64], verdicts: NDArray[np.float64], tie_margin: TieMargin
) -> NDArray[np.float64]:
    """Return the preferred answer in each pair.

    Args:
        scores: float64[pairs, 2], scores of the baseline's and of the candidate's answer, NaN without a score.
        verdicts: float64[pairs, 2]: 1 (right), 0 (wrong) or NaN (no verdict).
        tie_margin: "verdict", or a number of at least 0, in units of the score.

    Returns:
        float64[pairs]: 1 if the candidate's answer is preferred, -1 if the baseline's answer is preferred, 0 for a tie,
        NaN if an answer has no score (for "verdict", no verdict).
    """
    apart = (verdicts if tie_margin == "verdict" else scores) @ np.array([-1.0, 1.0])
    margin = 0.0 if tie_margin == "verdict" else tie_margin + _ROUNDING
    return np.where(np.abs(apart) <= margin, 0.0, np.sign(apart))


_OK = "OK"
_EMPTY = "EMPTY_PREDICTION"


class ScoredAnswer(Protocol):
    """A metric's result for an answer, for instance a `MetricScore`."""

    @property
    def score(self) -> float | None:
        """The score, or None if there is no score."""

    @property
    def correct(self) -> bool | None:
        """The verdict, or None if there is no verdict."""

    @property
    def status(self) -> str:
        """OK, or the reason why there is no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRows:
    """Results of a baseline and a candidate, with a row for each pair of answers to the same question.

    Attributes:
        scores: float64[pairs, 2] by metric, the baseline's and the candidate's scores, NaN without a score.
        verdicts: float64[pairs, 2] by metric: 1 (right), 0 (wrong) or NaN (no verdict).
        empty: bool[pairs, 2] by metric, True if the answer has no score because it is empty.
        failed: bool[pairs, 2] by metric, True if the answer has no score for another reason.
        preferred: float64[pairs] by chooser, with the values that `preferences` returns.
        questions: int[pairs], each pair's question number, from 0 without gaps. The bootstrap draws questions.
        strata: int[questions], each question's data set number. Draws are stratified by data set.
    """

    scores: Mapping[str, NDArray[np.float64]]
    verdicts: Mapping[str, NDArray[np.float64]]
    empty: Mapping[str, NDArray[np.bool_]]
    failed: Mapping[str, NDArray[np.bool_]]
    preferred: Mapping[str, NDArray[np.float64]]
    questions: NDArray[np.intp]
    strata: NDArray[np.intp]

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, Sequence[tuple[ScoredAnswer, ScoredAnswer]]],
        questions: Sequence[str],
        datasets: Sequence[str],
        *,
        tie_margin: TieMargin,
        preferred: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> Self:
        """Build the columns from results.

        Args:
            results: Results of the baseline and the candidate for each pair, by metric.
            questions: Key of each pair's question. Pairs with blank keys have separate questions.
            datasets: Each pair's data set.
            tie_margin: Tie margin for preferences that follow from the metrics' scores.
            preferred: Preferences by other choosers.
        """
        answers = {label: [one for pair in rows for one in pair] for label, rows in results.items()}
        scores = {label: _numbers([one.score for one in column]) for label, column in answers.items()}
        verdicts = {label: _numbers([one.correct for one in column]) for label, column in answers.items()}
        statuses = {
            label: np.array([str(one.status) for one in column]).reshape(-1, 2) for label, column in answers.items()
        }
        clusters = question_clusters(datasets, questions)
        return cls(
            scores=scores,
            verdicts=verdicts,
            empty={label: there == _EMPTY for label, there in statuses.items()},
            failed={label: ~np.isin(there, (_OK, _EMPTY)) for label, there in statuses.items()},
            preferred={label: preferences(scores[label], verdicts[label], tie_margin) for label in scores}
            | dict(preferred or {}),
            questions=clusters,
            strata=strata_of(datasets, clusters),
        )

    def __len__(self) -> int:
        return len(self.questions)

    def at(self, where: NDArray[np.intp]) -> Self:
        """Return the pairs at these positions."""
        kept, questions = np.unique(self.questions[where], return_inverse=True)
        tables = {
            table: {name: column[where] for name, column in getattr(self, table).items()}
            for table in ("scores", "verdicts", "empty", "failed", "preferred")
        }
        return type(self)(**tables, questions=questions, strata=self.strata[kept])


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return float64[pairs, 2] from alternating values for baseline and candidate."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64).reshape(-1, 2)
