"""Input of `compare_groups`: scores beside the question and the group of each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Scores of several metrics, with what tells the rows apart.

    Attributes:
        scores: float64[rows] of each metric; NaN where the row has none.
        groups: int[rows], number of each row's group; -1 for a row that is in none.
        names: Name of each group by number: the values that its rows have in common, one for each column.
        questions: int[rows], number of each row's question, from 0 without gaps.
        strata: int[questions], number of each question's data set; questions are drawn within it.
    """

    scores: Mapping[str, NDArray[np.float64]]
    groups: NDArray[np.intp]
    names: Sequence[tuple[str, ...]]
    questions: NDArray[np.intp]
    strata: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Sequence[float]],
        groups: Sequence[int],
        names: Sequence[tuple[str, ...]],
        questions: Sequence[int],
        strata: Sequence[int],
    ) -> Self:
        """The same from any sequences of numbers."""
        return cls(
            scores={metric: np.asarray(column, dtype=np.float64) for metric, column in scores.items()},
            groups=np.asarray(groups, dtype=np.intp),
            names=names,
            questions=np.asarray(questions, dtype=np.intp),
            strata=np.asarray(strata, dtype=np.intp),
        )
