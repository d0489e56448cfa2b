"""Results of two sides on the same questions, as columns, and the answer that a metric prefers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import question_clusters, strata_of

TieMargin = float | Literal["verdict"]
"""Scores that differ by this much or less are a tie; `verdict`: answers with the same verdict are."""
TIE_MARGIN: Final = 0.2
"""In units of the score: what smile and correctness keep most of people's ties with (docs/guides/compare-runs.md)."""
# Differences of scores carry their rounding: 0.5 - 0.3 is more than 0.2.
_ROUNDING = 1e-9


def preferences(
    scores: NDArray[np.float64], verdicts: NDArray[np.float64], tie_margin: TieMargin
) -> NDArray[np.float64]:
    """Which answer of each pair is preferred.

    Args:
        scores: float64[pairs, 2], of the baseline's answer and of the candidate's; NaN for none.
        verdicts: float64[pairs, 2], 1 right, 0 wrong; NaN for none.
        tie_margin: In units of the score, 0 or more; or `verdict`.

    Returns:
        float64[pairs]: 1 where the candidate's answer is preferred, -1 where the baseline's is, 0 for a tie, NaN where
        one of them has no score (with `verdict`: no verdict).
    """
    apart = (verdicts if tie_margin == "verdict" else scores) @ np.array([-1.0, 1.0])
    margin = 0.0 if tie_margin == "verdict" else tie_margin + _ROUNDING
    return np.where(np.abs(apart) <= margin, 0.0, np.sign(apart))


_OK = "OK"
_EMPTY = "EMPTY_PREDICTION"


class ScoredAnswer(Protocol):
    """What one metric said of one answer, for instance a `MetricScore`."""

    @property
    def score(self) -> float | None:
        """None where there is none."""

    @property
    def correct(self) -> bool | None:
        """The verdict; None where there is none."""

    @property
    def status(self) -> str:
        """OK, or why there is no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRows:
    """Results of a baseline and a candidate, a row for each pair of answers to one question.

    Attributes:
        scores: float64[pairs, 2] of each metric, the baseline's and the candidate's; NaN where there is none.
        verdicts: float64[pairs, 2] of each metric, 1 right and 0 wrong; NaN where there is none.
        empty: bool[pairs, 2] of each metric: no score, for the answer is empty.
        failed: bool[pairs, 2] of each metric: no score, though there was something to score.
        preferred: float64[pairs] of each chooser, as `preferences` gives them.
        questions: int[pairs], number of each pair's question, from 0 without gaps; questions are drawn, not pairs.
        strata: int[questions], number of each question's data set; questions are drawn within it.
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
        """The columns of results.

        Args:
            results: By metric, of each pair the baseline's and the candidate's.
            questions: Key of each pair's question; a blank one is a question of its own.
            datasets: Data set of each pair.
            tie_margin: Of the metrics as choosers.
            preferred: Of further choosers.
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
        """The same of some pairs alone; `where` are their numbers."""
        kept, questions = np.unique(self.questions[where], return_inverse=True)
        tables = {
            table: {name: column[where] for name, column in getattr(self, table).items()}
            for table in ("scores", "verdicts", "empty", "failed", "preferred")
        }
        return type(self)(**tables, questions=questions, strata=self.strata[kept])


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    """float64[pairs, 2] of the values of both sides in turn."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64).reshape(-1, 2)
