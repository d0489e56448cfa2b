"""How far a judge that is shown pairs in both orders means what it says: consistency and position bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from gradewire.comparison.groups import RESAMPLES, compare_groups
from gradewire.comparison.rows import GroupedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.estimates import Estimate

_ORDERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFigures:
    """What a judge said of pairs that it was shown in both orders.

    Attributes:
        pairs: Pairs of which both orders could be read.
        consistent: Pairs of which both orders name the same winner, or both a tie.
        consistency: Their share, 0 to 1.
        position_bias: Share of verdicts for the answer that was shown first minus that for the other one, -1 to 1; 0
            without bias, positive where the first place is preferred.
    """

    pairs: int
    consistent: int
    consistency: Estimate
    position_bias: Estimate


def order_figures(
    orders: Sequence[Sequence[Mapping[str, object]]],
    questions: Sequence[int] | NDArray[np.intp],
    strata: Sequence[int] | NDArray[np.intp],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> OrderFigures | None:
    """Computes both figures; None where no pair was read in both orders.

    Args:
        orders: Of each pair, what was said in each order: `first` and `winner` by the same names, `winner` "tie" for a
            tie, None where nothing could be read.
        questions: Number of each pair's question, as in `GroupedRows`; the intervals draw whole questions.
        strata: Data set of each question, likewise.
        resamples: Draws behind the intervals.
        seed: Same seed, same intervals.
    """
    agree, bias = np.full(len(orders), np.nan), np.full(len(orders), np.nan)
    for place, said in enumerate(orders):
        winners = [order.get("winner") for order in said]
        if len(winners) == _ORDERS and None not in winners:
            agree[place] = len(set(winners)) == 1
            bias[place] = np.mean([_leaning(order) for order in said])
    pairs = int(np.count_nonzero(~np.isnan(agree)))
    if not pairs:
        return None
    scores = {"agree": agree, "bias": bias}
    everything = np.zeros(len(orders), np.intp)
    rows = GroupedRows(scores, everything, [("",)], np.asarray(questions, np.intp), np.asarray(strata, np.intp))
    found = compare_groups(rows, resamples=resamples, seed=seed)
    return OrderFigures(
        pairs=pairs,
        consistent=int(np.nansum(agree)),
        consistency=found["agree"][0].mean,
        position_bias=found["bias"][0].mean,
    )


def _leaning(order: Mapping[str, object]) -> float:
    """1 for the answer that was shown first, -1 for the other one, 0 for a tie."""
    if order["winner"] == "tie":
        return 0.0
    return 1.0 if order["winner"] == order["first"] else -1.0
