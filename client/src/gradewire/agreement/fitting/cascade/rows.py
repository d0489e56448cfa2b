"""Labelled rows as a cascade sees them: how sure the cheap metrics are, who is right, and what a judge says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.halves import Half, half_of, question_key

DELTA = 0.1
"""Probability with which the bound of a risk may fail, unless it is said otherwise."""
EXACT = 2.0
"""Confidence of an exact match: above that of every probability."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeRows:
    """Labelled rows.

    Attributes:
        confidence: float64[rows]: EXACT where a reference is matched, else that of `correctness` in its verdict, 0.5 to
            1; 0.5 where the answer denies what it says.
        verdicts: bool[rows], of the cheap metrics.
        scores: float64[rows], of the cheap metrics: 1 where a reference is matched, else the probability.
        right: bool[rows], people's.
        judge_verdicts: float64[rows], 1 right, 0 wrong, NaN where the judge was not asked or failed.
        judge_scores: float64[rows], the judge's score; NaN where there is none.
        questions: Of each row, as written; a blank one is a question of its own.
    """

    confidence: NDArray[np.float64]
    verdicts: NDArray[np.bool_]
    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    judge_verdicts: NDArray[np.float64]
    judge_scores: NDArray[np.float64]
    questions: Sequence[str]

    def __len__(self) -> int:
        return len(self.right)

    @classmethod
    def of(  # noqa: PLR0913 - six columns
        cls,
        *,
        exact: NDArray[np.bool_],
        probability: NDArray[np.float64],
        denied: NDArray[np.bool_],
        right: NDArray[np.bool_],
        judge_verdicts: NDArray[np.float64],
        judge_scores: NDArray[np.float64],
        questions: Sequence[str],
    ) -> "CascadeRows":
        """Rows from what metrics say.

        Args:
            exact: bool[rows], `exact_match`.
            probability: float64[rows], of `correctness`.
            denied: bool[rows], UNCERTAIN at `correctness?confidence=0.5`.
            right: bool[rows], people's.
            judge_verdicts: float64[rows], NaN where there is none.
            judge_scores: float64[rows], the judge's score; NaN where there is none.
            questions: Of each row.
        """
        sure = np.where(denied, 0.5, np.maximum(probability, 1 - probability))
        return cls(
            confidence=np.where(exact, EXACT, sure),
            verdicts=exact | (probability >= 0.5),
            scores=np.where(exact, 1.0, probability),
            right=right,
            judge_verdicts=judge_verdicts,
            judge_scores=judge_scores,
            questions=questions,
        )

    def where(self, kept: NDArray[np.bool_]) -> "CascadeRows":
        """The rows of a mask, bool[rows]."""
        return CascadeRows(
            confidence=self.confidence[kept],
            verdicts=self.verdicts[kept],
            scores=self.scores[kept],
            right=self.right[kept],
            judge_verdicts=self.judge_verdicts[kept],
            judge_scores=self.judge_scores[kept],
            questions=[question for question, keep in zip(self.questions, kept, strict=True) if keep],
        )

    def half(self, half: Half) -> "CascadeRows":
        """The rows whose question belongs to a half."""
        return self.where(np.array([half_of(question) == half for question in self.questions], dtype=np.bool_))

    @property
    def clusters(self) -> NDArray[np.intp]:
        """intp[rows], number of each row's question, from 0 without gaps."""
        keys = [question_key(question) or f"\0{row}" for row, question in enumerate(self.questions)]
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """bool[rows], whether the judge gave a verdict."""
        return ~np.isnan(self.judge_verdicts)
