"""p-values of a share of wrong verdicts, and which thresholds they allow: learn then test.

Sources: Angelopoulos et al. 2021, "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk Control" (fixed
sequence testing; Hoeffding and Bentkus combined, after Bates et al. 2021); Geifman and El-Yaniv 2017, "Selective
Classification for Deep Neural Networks" (the exact binomial bound of a selective risk).
"""

import math
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


def hoeffding_bentkus_p_values(means: NDArray[np.float64], count: int, risk: float) -> NDArray[np.float64]:
    """p-values of "the expected value is above `risk`", of independent values between 0 and 1.

    Args:
        means: float64[sets], of the values.
        count: How many they are in each set.
        risk: Above 0 and below 1.
    """
    low = np.clip(means, 0.0, risk)
    safe = np.maximum(low, np.finfo(np.float64).tiny)
    divergence = (1 - low) * np.log((1 - low) / (1 - risk)) + np.where(low > 0, low * np.log(safe / risk), 0.0)
    # A count that is whole but for rounding must not become the next one.
    bentkus = math.e * scipy_stats().binom.cdf(np.ceil(count * low - 1e-9), count, risk)
    found = np.minimum(1.0, np.minimum(np.exp(-count * divergence), bentkus))
    return np.where(means >= risk, 1.0, found)


def clustered_p_values(
    wrong: NDArray[np.intp], accepted: NDArray[np.intp], risk: float, *, questions: int, most: int
) -> NDArray[np.float64]:
    """As `exact_p_values` for rows in groups (answers to one question), which are independent of each other.

    Of each question the value ((wrong - risk * accepted) + risk * most) / most lies between 0 and 1, and above `risk`
    in expectation exactly where more than that share of accepted verdicts is wrong.

    Args:
        wrong: intp[sets], wrong ones among the accepted rows.
        accepted: intp[sets], accepted rows.
        risk: Above 0 and below 1.
        questions: Of all rows, accepted or not.
        most: Rows of the question that has most of them.
    """
    means = risk + (wrong - risk * accepted) / (questions * most)
    return hoeffding_bentkus_p_values(means, questions, risk)


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
