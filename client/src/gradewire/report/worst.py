"""The answers on which a metric and people disagree most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.optional_imports import scipy_stats
from gradewire.agreement.point_estimates import RIGHT_FROM, right

Direction = Literal["high", "low"]
# What a disagreement is read from: the metric's verdict, or the rank of its score where it gives none.
Basis = Literal["verdict", "rank"]
# From this difference of a row's places by score and by label, as a share of all rows, its rank is far off.
FAR = 0.25


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Rows of a metric that people see otherwise, in one direction.

    Attributes:
        rows: int[shown], positions of the worst, the worst first.
        by_verdict: bool[shown]: whether verdict and label differ; else the rank of the score is far off.
        score_places: float[shown]: place of the row among the scored ones by score, 0 the lowest, 1 the highest.
        label_places: float[shown]: the same by label; rows of one label share the middle of their places.
        totals: How many there are, by what they are read from; without a basis that no row of the metric has.
    """

    rows: NDArray[np.intp]
    by_verdict: NDArray[np.bool_]
    score_places: NDArray[np.float64]
    label_places: NDArray[np.float64]
    totals: Mapping[Basis, int]


def worst(
    scores: NDArray[np.float64], verdicts: NDArray[np.float64], labels: NDArray[np.float64], *, most: int
) -> dict[Direction, Disagreements]:
    """Picks the rows on which a metric and people disagree, those first whose score stands furthest from their label.

    A row with a verdict is one when the verdict is not the label's side. A row without (or where labels leave [0, 1],
    so that they have no sides) is one when its rank is far off: its places by score and by label are a quarter of the
    rows apart or more, and some row with a better label scored less ("high"), or one with a worse label more ("low").
    Scores of metrics have different ranges, so how far is read from ranks, not from values. Where more rows are equally
    bad than are shown, those shown are spread evenly over them, so that they are not all of one question.

    Args:
        scores: float64[rows]; NaN where the row failed, which leaves it out.
        verdicts: float64[rows]: 1 right, 0 wrong, NaN where the metric gives none.
        labels: float64[rows] without NaN.
        most: Rows wanted for each direction.

    Returns:
        "high": called right or scored too high; "low": called wrong or scored too low.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    values, judged, called = scores[scored], labels[scored], verdicts[scored]
    by_score, by_label = _places(values), _places(judged)
    gap = by_score - by_label
    is_right = right(labels)
    has_verdict = ~np.isnan(called) if is_right is not None else np.zeros(len(scored), dtype=np.bool_)
    says_right, is_good = called >= RIGHT_FROM, judged >= RIGHT_FROM
    too_high = np.where(
        has_verdict, says_right & ~is_good, (gap >= FAR) & (_least_score_above(values, judged) < values)
    )
    too_low = np.where(
        has_verdict, ~says_right & is_good, (gap <= -FAR) & (-_least_score_above(-values, -judged) > values)
    )

    def picked(found: NDArray[np.bool_], how_bad: NDArray[np.float64]) -> Disagreements:
        places = np.flatnonzero(found)
        shown = places[_worst_places(how_bad[places], most)]
        counts: dict[Basis, tuple[NDArray[np.bool_], int]] = {
            "verdict": (has_verdict, int((found & has_verdict).sum())),
            "rank": (~has_verdict, int((found & ~has_verdict).sum())),
        }
        return Disagreements(
            rows=scored[shown],
            by_verdict=has_verdict[shown],
            score_places=by_score[shown],
            label_places=by_label[shown],
            totals={basis: count for basis, (there, count) in counts.items() if there.any()},
        )

    return {"high": picked(too_high, gap), "low": picked(too_low, -gap)}


def _places(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows]: middle of the places of equal values in ascending order, as a share of all."""
    if not len(values):
        return values
    ranks: NDArray[np.float64] = (scipy_stats().rankdata(values) - 0.5) / len(values)
    return ranks


def _least_score_above(values: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows]: the least value among rows with a larger label; infinity without any."""
    levels, level = np.unique(labels, return_inverse=True)
    least = np.full(len(levels) + 1, np.inf)
    np.minimum.at(least, level, values)
    beyond: NDArray[np.float64] = np.minimum.accumulate(least[::-1])[::-1][1:][level]
    return beyond


def _worst_places(how_bad: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """int[shown]: places of the largest values; of equal ones at the edge some, spread evenly over them."""
    order = np.lexsort((np.arange(len(how_bad)), -how_bad))
    if len(how_bad) > most > 0:
        edge = how_bad[order[most - 1]]
        surely = order[how_bad[order] > edge]
        tied = order[how_bad[order] == edge]
        spread = np.linspace(0, len(tied) - 1, most - len(surely)).round().astype(np.intp)
        order = np.concatenate([surely, tied[spread]])
    return order[:most]
