"""Whether a judge is better than what it replaces: paired, among the rows of which cheap metrics are least sure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.cascade.rows import EXACT, CascadeRows
from gradewire.agreement.resample import draws

SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LEAST_ROWS: Final = 20
"""Judged rows without which nothing is said of a judge."""
EVERYWHERE: Final = EXACT + 1
_ERROR: Final = 0.05


@dataclass(frozen=True, slots=True)
class JudgeGain:
    """Judge and cheap metrics on the rows below a confidence.

    Attributes:
        share: Of all rows, at most so many are below it.
        below: The confidence.
        rows: Judged rows there.
        cheap: Their accuracy by the cheap metrics; NaN without rows.
        judge: Their accuracy by the judge; NaN without rows.
        low: Lower end of the paired interval of judge minus cheap, over questions; NaN where there are too few rows.
        high: Upper end of it.
        adds: Whether the interval lies above 0.
    """

    share: float
    below: float
    rows: int
    cheap: float
    judge: float
    low: float
    high: float
    adds: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON; NaN is left out."""
        return {name: value for name, value in asdict(self).items() if value == value}  # noqa: PLR0124 - NaN is not


def judge_gains(rows: CascadeRows, *, resamples: int, seed: int) -> tuple[JudgeGain, ...]:
    """Compares judge and cheap metrics among the least certain SHARES of the rows.

    All intervals together miss with a probability of 5 % (Bonferroni): the widest share whose interval lies above 0 is
    taken, and with more looks one of them would lie there by luck.
    """
    ordered = np.sort(rows.confidence)
    clusters = rows.clusters
    found = []
    for share in SHARES:
        most = math.floor(share * len(rows) + 1e-9)
        below = EVERYWHERE if most >= len(rows) else float(ordered[most])
        inside = rows.judged & (rows.confidence < below)
        cheap = (rows.verdicts == rows.right)[inside].astype(np.float64)
        judge = ((rows.judge_verdicts == 1) == rows.right)[inside].astype(np.float64)
        low, high = math.nan, math.nan
        if len(cheap) >= LEAST_ROWS:
            low, high = _interval(judge - cheap, clusters[inside], resamples=resamples, seed=seed)
        found.append(
            JudgeGain(
                share=share,
                below=below,
                rows=len(cheap),
                cheap=float(cheap.mean()) if len(cheap) else math.nan,
                judge=float(judge.mean()) if len(judge) else math.nan,
                low=low,
                high=high,
                adds=low > 0,
            )
        )
    return tuple(found)


def asked_below(gains: Sequence[JudgeGain]) -> float | None:
    """The confidence below which the judge is worth asking: that of the largest share where it adds; None: nowhere."""
    return max((each.below for each in gains if each.adds), default=None)


def _interval(
    differences: NDArray[np.float64], clusters: NDArray[np.intp], *, resamples: int, seed: int
) -> tuple[float, float]:
    """Of the mean, by draws of whole questions."""
    _, own = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(own, weights=differences), np.bincount(own)
    strata = np.zeros(len(counts), dtype=np.intp)
    means = [(weights @ sums) / (weights @ counts) for weights in draws(strata, resamples=resamples, seed=seed)]
    tail = _ERROR / len(SHARES) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)
