"""Elo ratings: every match moves both models, so the order of the matches matters, and is drawn."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import Matches

K, BASE, SCALE, START = 4.0, 10.0, 400.0, 1000.0
# Steps of draws that are laid out at a time: 32 bits each.
_STEPS_AT_A_TIME = 1 << 24
# Tells the orders of the matches from other draws of the same seed.
_ORDERS = 1


def elo_ratings(matches: Matches, *, seed: int = 0) -> NDArray[np.float64]:
    """Ratings after one pass over all matches, in an order drawn by the seed.

    Every model starts at 1000. A match of A and B moves A by 4 (score - 1 / (1 + 10^((B - A) / 400))), and B by as
    much the other way; a tie has the score 0.5.

    Args:
        matches: Their weights are not looked at.
        seed: Of the order.

    Returns:
        float64[models]; NaN for a model without a match.
    """
    order = np.random.default_rng([seed, _ORDERS]).permutation(len(matches))
    (found,) = _passes(matches, order[:, None])
    return np.asarray(found)


def elo_draws(matches: Matches, draws: Iterable[NDArray[np.float64]], *, seed: int = 0) -> NDArray[np.float64]:
    """The same for every draw of instructions, each in an order of its own.

    Args:
        matches: As above.
        draws: float64[draws, instructions], how often each was drawn; as many chunks as one likes.
        seed: Of the orders.

    Returns:
        float64[draws, models]; NaN for a model without a match in that draw.
    """
    random = np.random.default_rng([seed, _ORDERS])
    numbers = np.arange(len(matches), dtype=np.int32)
    found: list[NDArray[np.float64]] = []
    waiting: list[NDArray[np.int32]] = []

    def run() -> None:
        longest = max(map(len, waiting))
        # The number behind the last match stands for none.
        orders = np.full((longest, len(waiting)), len(matches), dtype=np.int32)
        for place, order in enumerate(waiting):
            orders[: len(order), place] = order
        found.append(_passes(matches, orders))
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


def _passes(matches: Matches, orders: NDArray[np.integer]) -> NDArray[np.float64]:
    """Ratings after each column of orders, int[steps, draws]; float64[draws, models].

    A match waits for the one before it, so all draws take a step at a time.
    """
    models, draws = len(matches.models), orders.shape[1]
    # One more model meets itself where a draw has no match left: at 0.5 it stays where it is.
    a = np.append(matches.a, models)
    b = np.append(matches.b, models)
    scores = np.append(matches.score_a, 0.5)
    ratings = np.full(draws * (models + 1), START)
    row = np.arange(draws) * (models + 1)
    exponent = np.log(BASE) / SCALE
    for step in orders:
        one, other = row + a[step], row + b[step]
        at_one, at_other = ratings[one], ratings[other]
        moved = K * (scores[step] - 1 / (1 + np.exp((at_other - at_one) * exponent)))
        ratings[one] = at_one + moved
        ratings[other] = at_other - np.where(one == other, 0.0, moved)
    played = np.zeros((draws, models + 1), dtype=bool)
    for draw in range(draws):
        played[draw, a[orders[:, draw]]] = True
        played[draw, b[orders[:, draw]]] = True
    return np.asarray(np.where(played, ratings.reshape(draws, -1), np.nan)[:, :models])
