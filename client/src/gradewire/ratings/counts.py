"""Wins and ties of each two models, in the matches themselves and in draws of their instructions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.ratings.matches import Matches


@dataclass(frozen=True, slots=True)
class PairCounts:
    """How often each model won against each other one, by draw.

    Attributes:
        won: float64[draws, models, models], weight of the matches that the row's model won against the column's.
        tied: float64[draws, models, models], weight of their ties; symmetric.
    """

    won: NDArray[np.float64]
    tied: NDArray[np.float64]

    @property
    def points(self) -> NDArray[np.float64]:
        """Wins with ties as half wins, float64[draws, models, models]."""
        return self.won + self.tied / 2

    @property
    def played(self) -> NDArray[np.bool_]:
        """Whether each model has a match in each draw, bool[draws, models]."""
        return np.asarray((self.won + self.won.transpose(0, 2, 1) + self.tied).sum(axis=2) > 0)

    @property
    def win_shares(self) -> NDArray[np.float64]:
        """Points over matches of each model, float64[draws, models]; NaN without a match."""
        points = self.points
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(points.sum(axis=2) / (points + points.transpose(0, 2, 1)).sum(axis=2))

    def shares_against(self, reference: int) -> NDArray[np.float64]:
        """Share of the matches with the reference that each model won, ties left out; float64[draws, models].

        NaN for the reference itself, and for a model that has no such match that was decided.
        """
        won, lost = self.won[:, :, reference], self.won[:, reference, :]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(won / (won + lost))


def pair_counts(matches: Matches, draws: NDArray[np.float64] | None = None) -> PairCounts:
    """Counts of all matches, or of draws of their instructions.

    Args:
        matches: Counted with their weights.
        draws: float64[draws, instructions], how often each counts; None: one draw in which all count once.
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
