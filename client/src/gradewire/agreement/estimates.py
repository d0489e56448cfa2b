"""A figure beside what its bootstrap says about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement.resample import interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % bootstrap interval.

    Attributes:
        value: NaN where the statistic is not defined.
        low: Lower bound; NaN without an interval.
        high: Upper bound; NaN without an interval.
        resamples: Draws behind the interval; 0 without one.
    """

    value: float
    low: float
    high: float
    resamples: int


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """A paired difference with its 95 % bootstrap interval.

    Attributes:
        p_value: Two-sided: twice the smaller share of draws on either side of 0, each side counting one draw more than
            it has (Davison and Hinkley 1997, section 4.2), at most 1; NaN without an interval.
    """

    p_value: float


def estimate(value: float, resampled: NDArray[np.float64]) -> Estimate:
    """Puts a value beside its interval; `resampled` is float64[resamples] with NaN where undefined."""
    bounds = interval(resampled) if math.isfinite(value) else None
    low, high = bounds or (math.nan, math.nan)
    return Estimate(value, low, high, len(resampled) if bounds else 0)


def difference(value: float, resampled: NDArray[np.float64]) -> Difference:
    """Puts a difference beside its interval and p value; `resampled` as for `estimate`."""
    plain = estimate(value, resampled)
    if not plain.resamples:
        return Difference(plain.value, plain.low, plain.high, 0, math.nan)
    defined = resampled[np.isfinite(resampled)]
    fewer = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
    p_value = min(1.0, 2 * (int(fewer) + 1) / (len(defined) + 1))
    return Difference(plain.value, plain.low, plain.high, plain.resamples, p_value)
