"""A figure with its bootstrap interval."""

import math
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.resample import interval

# Draws of so few questions hardly differ from one another: their spread is too small, with one question it is 0.
LEAST_QUESTIONS = 10
# Where more draws than this leave a difference undefined, those that are left are others than chance would have drawn.
MOST_UNDEFINED = 0.05


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % bootstrap interval.

    Attributes:
        value: NaN where the statistic is not defined.
        low: Lower bound; NaN without an interval.
        high: Upper bound; NaN without an interval.
        resamples: Draws behind the interval, those in which the statistic is defined; 0 without an interval.
        undefined: Draws in which it is not: they are left out of the interval.
        questions: Questions behind the value that could be drawn otherwise: with fewer than `LEAST_QUESTIONS` there is
            no interval, with more there is none where more than half of the draws are undefined.
    """

    value: float
    low: float
    high: float
    resamples: int
    undefined: int = field(default=0, kw_only=True)
    questions: int = field(default=0, kw_only=True)

    @property
    def bare(self) -> bool:
        """Whether there is a value without an interval."""
        return not math.isnan(self.value) and math.isnan(self.low)


@dataclass(frozen=True, slots=True)
class CellsMean(Estimate):
    """A mean over cells with its 95 % bootstrap interval.

    Attributes:
        cells: Cells in the mean: those in which the statistic is defined.
        cells_in_all: Cells that there are.
    """

    cells: int = field(kw_only=True)
    cells_in_all: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """A paired difference with its 95 % bootstrap interval.

    Attributes:
        p_value: Two-sided: twice the smaller share of draws on either side of 0, each side counting one draw more than
            it has (Davison and Hinkley 1997, section 4.2), at most 1; NaN without an interval, and where more than
            `MOST_UNDEFINED` of the draws are not defined.
    """

    p_value: float

    @property
    def at_floor(self) -> bool:
        """Whether no draw lies on the other side of 0: the p value is the smallest that so many draws can say."""
        return self.resamples > 0 and self.p_value <= 2 / (self.resamples + 1)


def estimate(value: float, resampled: NDArray[np.float64], *, questions: int) -> Estimate:
    """Puts a value beside its interval.

    Args:
        value: The statistic itself.
        resampled: float64[resamples], NaN where a draw left it undefined.
        questions: Questions that could be drawn otherwise (`resample.free_clusters`); with fewer than
            `LEAST_QUESTIONS` there is no interval.
    """
    bounds = interval(resampled) if math.isfinite(value) and questions >= LEAST_QUESTIONS else None
    low, high = bounds or (math.nan, math.nan)
    defined = int(np.count_nonzero(np.isfinite(resampled)))
    return Estimate(value, low, high, defined if bounds else 0, undefined=len(resampled) - defined, questions=questions)


def difference(value: float, resampled: NDArray[np.float64], *, questions: int) -> Difference:
    """Puts a difference beside its interval and p value; the arguments are those of `estimate`."""
    plain = estimate(value, resampled, questions=questions)
    p_value = math.nan
    if plain.resamples and plain.undefined <= MOST_UNDEFINED * len(resampled):
        defined = resampled[np.isfinite(resampled)]
        fewer = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
        p_value = min(1.0, 2 * (int(fewer) + 1) / (len(defined) + 1))
    return Difference(**asdict(plain), p_value=p_value)
