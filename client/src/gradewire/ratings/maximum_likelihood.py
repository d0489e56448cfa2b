"""Bradley and Terry's strengths by maximum likelihood: s beats t with the probability 1 / (1 + e^(t - s))."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.ratings.counts import PairCounts
from gradewire.ratings.elo import BASE, SCALE, START

ELO_PER_NAT = SCALE / math.log(BASE)
"""Points on Elo's scale for one unit of strength."""
# Against a model of mean strength, where nothing else holds the strengths together: half a win and half a loss.
_PRIOR_MATCHES = 1.0
_MAX_STEP = 2.0
_ITERATIONS = 200
# Points that are left unexplained, of those that there are.
_TOLERANCE = 1e-10


class NotConvergedError(ArithmeticError):
    """The likelihood has no maximum that could be found."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """Strengths in each draw.

    Attributes:
        values: float64[draws, models], of mean 0 over the models that have a match in the draw; NaN for the others.
        regularised: bool[draws]: the wins do not connect all models in both directions, so that the likelihood alone
            would put some infinitely far from others, or nowhere. Each model then has half a win and half a loss
            against a model of strength 0 besides.
    """

    values: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    def ratings(self, anchor: int | None = None) -> NDArray[np.float64]:
        """The strengths on Elo's scale, float64[draws, models]: mean 1000, or the anchor at 1000."""
        zero = 0.0 if anchor is None else self.values[:, anchor : anchor + 1]
        return np.asarray(START + ELO_PER_NAT * (self.values - zero))


def bradley_terry(counts: PairCounts) -> Strengths:
    """Strengths of the models; ties count as half a win for either side.

    Raises:
        NotConvergedError: No maximum was found, which finite counts do not cause.
    """
    points, played = counts.points, counts.played
    regularised = ~connected(points, played)
    draws, models = played.shape
    met = points + points.transpose(0, 2, 1)
    own, prior = points.sum(axis=2), np.where(regularised, _PRIOR_MATCHES, 0.0)[:, None]
    tolerance = _TOLERANCE * np.maximum(1.0, own.sum(axis=1))
    strengths = np.zeros((draws, models))
    left = np.arange(draws)
    diagonal = np.arange(models)
    for _ in range(_ITERATIONS):
        values = strengths[left]
        expected = _sigmoid(values[:, :, None] - values[:, None, :])
        by_prior = _sigmoid(values)
        unexplained = (
            own[left] - (met[left] * expected).sum(axis=2) + prior[left] * np.where(played[left], 0.5 - by_prior, 0.0)
        )
        open_ = np.abs(unexplained).max(axis=1, initial=0.0) > tolerance[left]
        if not open_.any():
            break
        left, values, expected = left[open_], values[open_], expected[open_]
        bend = met[left] * expected * (1 - expected)
        curvature = -bend
        curvature[:, diagonal, diagonal] = (
            bend.sum(axis=2) + prior[left] * by_prior[open_] * (1 - by_prior[open_]) + ~played[left]
        )
        # Strengths are differences: where no prior holds it, the mean is held at 0.
        both = played[left][:, :, None] & played[left][:, None, :]
        curvature += np.where(prior[left] > 0, 0.0, 1.0 / models)[:, :, None] * both
        step = np.linalg.solve(curvature, unexplained[open_][:, :, None])[:, :, 0]
        # From far away a step may lead beyond the maximum, and further each time.
        step *= np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        strengths[left] = values + step
    else:
        raise NotConvergedError(f"no maximum of the likelihood after {_ITERATIONS} steps")
    values = np.where(played, strengths, np.nan)
    with np.errstate(invalid="ignore"):
        there = np.maximum(1, played.sum(axis=1, keepdims=True))
        values -= np.where(played, strengths, 0.0).sum(axis=1, keepdims=True) / there
    return Strengths(values, regularised)


def connected(points: NDArray[np.float64], played: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether, in each draw, wins lead from every model to every other one that played; bool[draws]."""
    draws, models = played.shape
    if not models:
        return np.ones(draws, dtype=bool)
    first = np.argmax(played, axis=1)
    found = np.ones(draws, dtype=bool)
    for beats in (points > 0, points.transpose(0, 2, 1) > 0):
        reached = np.zeros((draws, models), dtype=bool)
        reached[np.arange(draws), first] = True
        while True:
            further = reached | (reached[:, :, None] & beats).any(axis=1)
            if (further == reached).all():
                break
            reached = further
        found &= (reached | ~played).all(axis=1)
    return found


def held_together(counts: PairCounts) -> NDArray[np.bool_]:
    """Which models wins join, in both directions, to more than any other such group has; bool[draws, models].

    Differences between them are what the matches say. How far all others are from them, a model that has won or lost
    all its matches, or one that never met them, only the regularisation says. All are False where two groups are the
    largest.
    """
    models = counts.played.shape[1]
    leads = (counts.points > 0) | np.eye(models, dtype=bool)
    for _ in range(max(1, models - 1).bit_length()):
        leads = leads @ leads
    sizes = (leads & leads.transpose(0, 2, 1)).sum(axis=2) * counts.played
    largest = sizes.max(axis=1, initial=0)[:, None]
    is_largest = (sizes == largest) & (sizes > 0)
    return np.asarray(is_largest & (is_largest.sum(axis=1, keepdims=True) == largest))


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))
