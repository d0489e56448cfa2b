"""Matches between two models' answers to the same instruction, and counts of wins and ties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Verdicts on pairs of answers, one per match.

    Attributes:
        models: Model names by number.
        a: int[matches], number of the model that gave answer A.
        b: int[matches], number of the other model, which gave answer B.
        score_a: float64[matches]: 1 if A won, 0 if B won, 0.5 for a tie.
        instructions: int[matches], number of the instruction. Matches with the same instruction are drawn together.
        shown_first: int[matches]: 1 if the judge saw A first, -1 if the judge saw B first, 0 if the verdict covers both
            orders or the order is unknown.
        words: float64[matches, 2], number of words in answers A and B, NaN if unknown.
        own_family: int[matches]: 1 if only A's model is of the judge's model family, -1 if only B's model is, otherwise
            0.
        weights: float64[matches], weight in fits: 0.5 if the two orders of a pair are separate matches, otherwise 1.
    """

    models: Sequence[str]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score_a: NDArray[np.float64]
    instructions: NDArray[np.intp]
    shown_first: NDArray[np.intp]
    words: NDArray[np.float64]
    own_family: NDArray[np.intp]
    weights: NDArray[np.float64]

    @classmethod
    def of(  # noqa: PLR0913 - one argument per column
        cls,
        models: Sequence[str],
        a: ArrayLike,
        b: ArrayLike,
        score_a: ArrayLike,
        instructions: ArrayLike,
        *,
        shown_first: ArrayLike | None = None,
        words: ArrayLike | None = None,
        own_family: ArrayLike | None = None,
    ) -> Self:
        """Convert sequences of numbers to matches of weight 1. Orders, words and families are optional.

        Raises:
            ValueError: Columns differ in length, a match has the same model twice, a model's number is out of range, or
                a score is not 0, 0.5 or 1.
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
            own_family=np.zeros(count, np.intp) if own_family is None else np.asarray(own_family, dtype=np.intp),
            weights=np.ones(count),
        )
        columns = (found.b, found.score_a, found.instructions, found.shown_first, found.words, found.own_family)
        if any(len(column) != count for column in columns):
            raise ValueError(f"columns differ in length: {count} and {[len(column) for column in columns]}")
        if count and not (min(found.a.min(), found.b.min()) >= 0 and max(found.a.max(), found.b.max()) < len(models)):
            raise ValueError(f"a model's number is outside 0 to {len(models) - 1}")
        if (found.a == found.b).any():
            raise ValueError("a match has the same model twice")
        if not np.isin(found.score_a, (0.0, 0.5, 1.0)).all():
            raise ValueError("a score is not 0, 0.5 or 1")
        return found

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.a)

    @property
    def instruction_count(self) -> int:
        """Number of instructions."""
        return int(self.instructions.max()) + 1 if len(self) else 0

    @property
    def decided(self) -> NDArray[np.bool_]:
        """bool[matches], False for a tie."""
        return np.asarray(self.score_a != 0.5)

    def instructions_of(self, model: int) -> int:
        """Return the number of instructions on which a model has a match."""
        return len(np.unique(self.instructions[(self.a == model) | (self.b == model)]))


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Each model's wins and ties against every other model, in each draw.

    Attributes:
        won: float64[draws, models, models], weight of matches that the row's model won against the column's model.
        tied: float64[draws, models, models], weight of ties between the two models (symmetric).
    """

    won: NDArray[np.float64]
    tied: NDArray[np.float64]

    @property
    def points(self) -> NDArray[np.float64]:
        """float64[draws, models, models], wins with ties counted as half wins."""
        return self.won + self.tied / 2

    @property
    def played(self) -> NDArray[np.bool_]:
        """bool[draws, models], True if the model has a match in the draw."""
        return np.asarray((self.won + self.won.transpose(0, 2, 1) + self.tied).sum(axis=2) > 0)

    @property
    def win_shares(self) -> NDArray[np.float64]:
        """float64[draws, models], each model's points divided by its matches, NaN without a match."""
        points = self.points
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(points.sum(axis=2) / (points + points.transpose(0, 2, 1)).sum(axis=2))

    def shares_against(self, reference: int) -> NDArray[np.float64]:
        """Return each model's share of wins in decided matches against the reference, float64[draws, models].

        The share is NaN for the reference itself, and for a model without decided matches against the reference.
        """
        won, lost = self.won[:, :, reference], self.won[:, reference, :]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(won / (won + lost))


def pair_counts(matches: Matches, draws: NDArray[np.float64] | None = None) -> PairCounts:
    """Count wins and ties in all matches, or in bootstrap draws of instructions.

    Args:
        matches: Matches, counted with their weights.
        draws: float64[draws, instructions], number of times that each instruction counts. None means a single draw that
            contains every instruction once.
    """
    models = len(matches.models)
    decided = matches.decided
    winner = np.where(matches.score_a == 1.0, matches.a, matches.b)
    loser = np.where(matches.score_a == 1.0, matches.b, matches.a)
    parts = [
        (cells[here], matches.instructions[here], matches.weights[here])
        for cells, here in ((winner * models + loser, decided), (matches.a * models + matches.b, ~decided))
    ]
    if draws is None:
        draws = np.ones((1, matches.instruction_count))
    won, tied = (
        np.array(
            [np.bincount(cells, draw[instructions] * weights, models**2) for draw in draws], dtype=np.float64
        ).reshape(len(draws), models, models)
        for cells, instructions, weights in parts
    )
    return PairCounts(won, tied + tied.transpose(0, 2, 1))
