"""p-values of a share of wrong verdicts, and which thresholds they allow: learn then test.

Sources: Angelopoulos et al. 2021, "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk Control" (fixed
sequence testing); Geifman and El-Yaniv 2017, "Selective Classification for Deep Neural Networks" (the exact binomial
bound of a selective risk).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.optional_imports import scipy_stats


def exact_p_values(wrong: NDArray[np.intp], accepted: NDArray[np.intp], risk: float) -> NDArray[np.float64]:
    """p-values of "more than the share `risk` of accepted verdicts is wrong", of independent rows.

    Args:
        wrong: intp[sets], wrong ones among the accepted rows.
        accepted: intp[sets], accepted rows; without any the p-value is 1.
        risk: Above 0 and below 1.
    """
    return np.asarray(scipy_stats().binom.cdf(wrong, accepted, risk), dtype=np.float64)


def last_rejected(p_values: Sequence[float] | NDArray[np.float64], start: int, delta: float) -> int | None:
    """Fixed sequence testing: the last of the hypotheses from `start` on that are all rejected at the level `delta`.

    With the probability 1 - delta none of those from `start` to the result is true. The order and the start must not
    depend on what is tested.

    Returns:
        Its position; None where already the first is not rejected.
    """
    last = None
    for position in range(start, len(p_values)):
        if p_values[position] > delta:
            break
        last = position
    return last
