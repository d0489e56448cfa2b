"""What ratings are made of: which of two models' answers to an instruction was better."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Verdicts on pairs of answers, one a match.

    Attributes:
        models: Names by number.
        a: int[matches], number of the model whose answer is A.
        b: int[matches], that of answer B; another one than `a`.
        score_a: float64[matches]: 1 where A won, 0 where B did, 0.5 for a tie.
        instructions: int[matches], number of the instruction; matches that share one are drawn together.
        shown_first: int[matches]: 1 where the judge saw A first, -1 for B, 0 where both orders are in the verdict or
            nothing is known.
        words: float64[matches, 2], words of both answers; NaN where they are not known.
        weights: float64[matches], how much each counts in fits: 0.5 where a pair's orders are two matches, else 1.
    """

    models: Sequence[str]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score_a: NDArray[np.float64]
    instructions: NDArray[np.intp]
    shown_first: NDArray[np.intp]
    words: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(  # noqa: PLR0913 - one column each
        cls,
        models: Sequence[str],
        a: ArrayLike,
        b: ArrayLike,
        score_a: ArrayLike,
        instructions: ArrayLike,
        *,
        shown_first: ArrayLike | None = None,
        words: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """The same from any sequences of numbers; without words or orders these are unknown, without weights all are 1.

        Raises:
            ValueError: Columns differ in length, a model meets itself or has no such number, or a score is none of 0,
                0.5 and 1.
        """
        numbers_a = np.asarray(a, dtype=np.intp)
        count = len(numbers_a)
        found = cls(
            models=models,
            a=numbers_a,
            b=np.asarray(b, dtype=np.intp),
            score_a=np.asarray(score_a, dtype=np.float64),
            instructions=np.asarray(instructions, dtype=np.intp),
            shown_first=np.zeros(count, np.intp) if shown_first is None else np.asarray(shown_first, dtype=np.intp),
            words=np.full((count, 2), np.nan) if words is None else np.asarray(words, np.float64).reshape(-1, 2),
            weights=np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64),
        )
        columns = (found.b, found.score_a, found.instructions, found.shown_first, found.words, found.weights)
        if any(len(column) != count for column in columns):
            raise ValueError(f"there are {count} answers A and {[len(column) for column in columns]} of the rest")
        if count and not (min(found.a.min(), found.b.min()) >= 0 and max(found.a.max(), found.b.max()) < len(models)):
            raise ValueError(f"a model has a number outside 0 to {len(models) - 1}")
        if (found.a == found.b).any():
            raise ValueError("a model meets itself in a match")
        if not np.isin(found.score_a, (0.0, 0.5, 1.0)).all():
            raise ValueError("a score is none of 0, 0.5 and 1")
        return found

    def __len__(self) -> int:
        """Number of matches."""
        return len(self.a)

    @property
    def instruction_count(self) -> int:
        """How many instructions are numbered."""
        return int(self.instructions.max()) + 1 if len(self) else 0

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Those without a tie, bool[matches]."""
        return np.asarray(self.score_a != 0.5)

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """Some of the matches, over the same models, with the instructions numbered anew."""
        _, instructions = np.unique(self.instructions[mask], return_inverse=True)
        return replace(
            self,
            a=self.a[mask],
            b=self.b[mask],
            score_a=self.score_a[mask],
            instructions=instructions,
            shown_first=self.shown_first[mask],
            words=self.words[mask],
            weights=self.weights[mask],
        )

    def instructions_of(self, model: int) -> int:
        """How many instructions a model has a match on."""
        return len(np.unique(self.instructions[(self.a == model) | (self.b == model)]))
