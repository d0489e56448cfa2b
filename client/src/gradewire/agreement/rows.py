"""Input of `agreement`: scores and verdicts of metrics beside human labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Scores of several metrics beside human labels.

    Attributes:
        scores: float64[rows] of each metric; NaN where the row failed, which keeps it out of every figure.
        verdicts: float64[rows] of each metric: 1 right, 0 wrong, NaN where the metric gives no verdict.
        labels: float64[rows] without NaN. Verdicts, AUC and accuracy need labels in [0, 1] and take 0.5 upward for
            right.
        datasets: Data set of each row; "" where it has none.
        models: Model under test of each row; "" where it has none.
        questions: Key of the question that each row answers; rows of one data set that share it are drawn together and
            compared with each other by `pairwise`, a blank one stands for itself. The words of a question do for
            texts; the same words about another image are another question and need another key.
        groups: Group of each row (a kind of question, say), "" where it has none; empty where nobody asked for groups.
    """

    scores: Mapping[str, NDArray[np.float64]]
    verdicts: Mapping[str, NDArray[np.float64]]
    labels: NDArray[np.float64]
    datasets: Sequence[str]
    models: Sequence[str]
    questions: Sequence[str]
    groups: Sequence[str] = ()

    def with_cuts(self, cuts: Mapping[str, float]) -> Self:
        """The same rows with verdicts from scores.

        Args:
            cuts: By metric, the score from which an answer counts as right; replaces the metric's own verdicts.

        Raises:
            ValueError: A metric is unknown, or its cut is not a number.
        """
        for metric, cut in cuts.items():
            if metric not in self.scores:
                raise ValueError(f"cannot cut {metric}: scored are {', '.join(self.scores)}")
            if not np.isfinite(cut):
                raise ValueError(f"the cut of {metric} is {cut}: it must be a number")
        cut_verdicts = {
            metric: np.where(np.isnan(self.scores[metric]), np.nan, (self.scores[metric] >= cut).astype(np.float64))
            for metric, cut in cuts.items()
        }
        return replace(self, verdicts={**self.verdicts, **cut_verdicts})
