"""Elo ratings, which change after each match, and the scale that they share with other ratings."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import Matches

_BASE = 10.0
# Maximum number of matches, over all draws, to process at a time. Each match needs 32 bits.
_STEPS_AT_A_TIME = 1 << 24
# Additional seed that makes the orders of matches independent of other draws with the same seed.
_ORDERS = 1


@dataclass(frozen=True, slots=True)
class RatingScale:
    """A scale of ratings.

    Attributes:
        k: Largest change of an Elo rating by one match, in points.
        scale: Lead in points that means odds of 10 to 1.
        start: Rating of a model before its first Elo match, and mean of the Bradley-Terry ratings.
    """

    k: float = 4.0
    scale: float = 400.0
    start: float = 1000.0

    def __post_init__(self) -> None:
        if not (0 < self.k < math.inf and 0 < self.scale < math.inf and math.isfinite(self.start)):
            raise ValueError(f"k and scale must be positive and finite, and start must be finite: {self}")

    @property
    def per_nat(self) -> float:
        """Points for one unit of strength, which multiplies the odds by e."""
        return self.scale / math.log(_BASE)


USUAL_SCALE = RatingScale()


def elo_ratings(matches: Matches, *, scale: RatingScale = USUAL_SCALE, seed: int = 0) -> NDArray[np.float64]:
    """Return the Elo ratings after one pass over all matches, in a seeded order.

    Every model starts at the same rating, usually 1000. A match between A and B changes A's rating by
    K (score - 1 / (1 + 10^((B - A) / scale))), and B's rating by the same amount in the opposite direction. A tie has
    the score 0.5. Usually, K is 4 and the scale is 400.

    Args:
        matches: Matches. Their weights are ignored.
        scale: K, scale and start.
        seed: Seed for the order.

    Returns:
        float64[models], NaN for a model without a match.
    """
    order = np.random.default_rng([seed, _ORDERS]).permutation(len(matches))
    (found,) = _passes(matches, order[:, None], scale)
    return np.asarray(found)


def elo_draws(
    matches: Matches, draws: Iterable[NDArray[np.float64]], *, scale: RatingScale = USUAL_SCALE, seed: int = 0
) -> NDArray[np.float64]:
    """Return the Elo ratings in every draw of instructions. Every draw has a different order of matches.

    Args:
        matches: Matches. Their weights are ignored.
        draws: Chunks of float64[draws, instructions], number of times each instruction was drawn.
        scale: K, scale and start.
        seed: Seed for the orders.

    Returns:
        float64[draws, models], NaN for a model without a match in the draw.
    """
    random = np.random.default_rng([seed, _ORDERS])
    numbers = np.arange(len(matches), dtype=np.int32)
    found: list[NDArray[np.float64]] = []
    waiting: list[NDArray[np.int32]] = []

    def run() -> None:
        longest = max(map(len, waiting))
        # The index after the last match means no match.
        orders = np.full((longest, len(waiting)), len(matches), dtype=np.int32)
        for place, order in enumerate(waiting):
            orders[: len(order), place] = order
        found.append(_passes(matches, orders, scale))
        waiting.clear()

    for chunk in draws:
        for counts in chunk:
            taken = np.repeat(numbers, counts.astype(np.intp)[matches.instructions])
            waiting.append(random.permutation(taken))
            if sum(map(len, waiting)) >= _STEPS_AT_A_TIME:
                run()
    if waiting:
        run()
    return np.concatenate(found) if found else np.empty((0, len(matches.models)))


def _passes(matches: Matches, orders: NDArray[np.integer], scale: RatingScale) -> NDArray[np.float64]:
    """Return the ratings after each draw's matches, float64[draws, models]. `orders` is int[steps, draws]."""
    models, draws = len(matches.models), orders.shape[1]
    # A draw without remaining matches lets an additional model tie with itself, which changes nothing.
    a = np.append(matches.a, models)
    b = np.append(matches.b, models)
    scores = np.append(matches.score_a, 0.5)
    ratings = np.full(draws * (models + 1), scale.start, dtype=np.float64)
    row = np.arange(draws) * (models + 1)
    exponent = 1 / scale.per_nat
    for step in orders:
        one, other = row + a[step], row + b[step]
        at_one, at_other = ratings[one], ratings[other]
        moved = scale.k * (scores[step] - 1 / (1 + np.exp((at_other - at_one) * exponent)))
        ratings[one] = at_one + moved
        ratings[other] = at_other - np.where(one == other, 0.0, moved)
    played = np.zeros((draws, models + 1), dtype=bool)
    for draw in range(draws):
        played[draw, a[orders[:, draw]]] = True
        played[draw, b[orders[:, draw]]] = True
    return np.asarray(np.where(played, ratings.reshape(draws, -1), np.nan)[:, :models])
