"""The answers on which a metric and people disagree most."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.optional_imports import scipy_stats

Direction = Literal["high", "low"]


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Rows out of order in one direction.

    Attributes:
        rows: int[shown], positions of the worst, the worst first.
        total: How many there are.
    """

    rows: NDArray[np.intp]
    total: int


def worst(scores: NDArray[np.float64], labels: NDArray[np.float64], *, most: int) -> dict[Direction, Disagreements]:
    """Picks the rows whose score stands furthest from where their label would put it.

    Scores of metrics have different ranges and cuts, so ranks are compared, not values: a row is out of order when some
    row with a better label scored less ("high"), or one with a worse label scored more ("low"). Worst is the largest
    difference between the row's rank by score and by label. Where more rows are equally bad than are
    shown, those shown are spread evenly over them, so that they are not all of one question.

    Args:
        scores: float64[rows]; NaN where the row failed, which leaves it out.
        labels: float64[rows] without NaN.
        most: Rows wanted for each direction.

    Returns:
        "high": scored too high; "low": scored too low.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    if not len(scored):
        nobody = Disagreements(np.array([], dtype=np.intp), 0)
        return {"high": nobody, "low": nobody}
    values, judged = scores[scored], labels[scored]
    ranks = scipy_stats().rankdata
    gap = ranks(values) - ranks(judged)
    too_high = _least_score_above(values, judged) < values
    too_low = -_least_score_above(-values, -judged) > values
    return {
        "high": _picked(scored[too_high], gap[too_high], most),
        "low": _picked(scored[too_low], -gap[too_low], most),
    }


def _least_score_above(values: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows]: the least value among rows with a larger label; infinity without any."""
    levels, level = np.unique(labels, return_inverse=True)
    least = np.full(len(levels) + 1, np.inf)
    np.minimum.at(least, level, values)
    beyond: NDArray[np.float64] = np.minimum.accumulate(least[::-1])[::-1][1:][level]
    return beyond


def _picked(rows: NDArray[np.intp], gap: NDArray[np.float64], most: int) -> Disagreements:
    order = np.lexsort((rows, -gap))
    if len(rows) > most > 0:
        edge = gap[order[most - 1]]
        surely = order[gap[order] > edge]
        tied = order[gap[order] == edge]
        spread = np.linspace(0, len(tied) - 1, most - len(surely)).round().astype(np.intp)
        order = np.concatenate([surely, tied[spread]])
    return Disagreements(rows[order[:most]], len(rows))
