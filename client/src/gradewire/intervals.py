"""95 % intervals of means and shares in closed form, which need no numpy."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

_Z: Final = 1.959964
_T_TERMS: Final = (
    _Z,
    (_Z**3 + _Z) / 4,
    (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
    (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
    (79 * _Z**9 + 776 * _Z**7 + 1482 * _Z**5 - 1920 * _Z**3 - 945 * _Z) / 92160,
)
"""Coefficients of Student's 97.5 % quantile in powers of 1 / degrees of freedom, within 1 % from two degrees on."""
_LEAST_SCORES: Final = 3


def mean_interval(scores: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return the mean's 95 % interval by Student's t, or (None, None) with fewer than three scores or equal scores.

    If all scores are 0 or 1, the interval is that of a share. If all lie in [0, 1], so does the interval. Scores count
    as independent. If several items share a question, the true interval is wider.
    """
    if len(scores) < _LEAST_SCORES:
        return None, None
    least, most = min(scores), max(scores)
    if {least, most} <= {0, 1} and all(score in {0, 1} for score in scores):
        return share_interval(sum(score == 1 for score in scores), len(scores))
    if least == most:
        return None, None
    freedom = len(scores) - 1
    quantile = sum(term / freedom**power for power, term in enumerate(_T_TERMS))
    center, half = fmean(scores), quantile * stdev(scores) / math.sqrt(len(scores))
    low, high = center - half, center + half
    return (max(0.0, low), min(1.0, high)) if 0 <= least <= most <= 1 else (low, high)


def share_interval(right: int, verdicts: int) -> tuple[float, float] | tuple[None, None]:
    """Return Wilson's 95 % interval of the share of right verdicts, or (None, None) without verdicts."""
    if not verdicts:
        return None, None
    share, spread = right / verdicts, _Z**2 / verdicts
    center = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / verdicts + spread / (4 * verdicts)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)
