"""p-values of a share of wrong verdicts, and which thresholds they allow: learn then test.

Sources: Angelopoulos et al. 2021, "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk Control" (fixed
sequence testing; Hoeffding and Bentkus combined, after Bates et al. 2021); Geifman and El-Yaniv 2017, "Selective
Classification for Deep Neural Networks" (the exact binomial bound of a selective risk).
"""

import math
from collections.abc import Sequence

from gradewire.agreement.optional_imports import scipy_stats


def exact_p_value(wrong: int, accepted: int, risk: float) -> float:
    """p-value of "more than the share `risk` of accepted verdicts is wrong", of independent rows.

    Args:
        wrong: Wrong ones among the accepted rows.
        accepted: Accepted rows; without any the p-value is 1.
        risk: Above 0 and below 1.
    """
    return float(scipy_stats().binom.cdf(wrong, accepted, risk)) if accepted else 1.0


def hoeffding_bentkus_p_value(mean: float, count: int, risk: float) -> float:
    """p-value of "the expected value is above `risk`", of independent values between 0 and 1.

    Args:
        mean: Of the values.
        count: How many they are; without any the p-value is 1.
        risk: Above 0 and below 1.
    """
    if not count or mean >= risk:
        return 1.0
    low = max(mean, 0.0)
    divergence = (1 - low) * math.log((1 - low) / (1 - risk)) + (low * math.log(low / risk) if low > 0 else 0.0)
    hoeffding = math.exp(-count * divergence)
    # A count that is whole but for rounding must not become the next one.
    bentkus = math.e * float(scipy_stats().binom.cdf(math.ceil(count * low - 1e-9), count, risk))
    return min(1.0, hoeffding, bentkus)


def clustered_p_value(wrong: int, accepted: int, risk: float, *, questions: int, most: int) -> float:
    """As `exact_p_value` for rows in groups (answers to one question), which are independent of each other.

    Of each question the value ((wrong - risk * accepted) + risk * most) / most lies between 0 and 1, and above `risk`
    in expectation exactly where more than that share of accepted verdicts is wrong.

    Args:
        wrong: Wrong ones among the accepted rows.
        accepted: Accepted rows.
        risk: Above 0 and below 1.
        questions: Of all rows, accepted or not.
        most: Rows of the question that has most of them.
    """
    mean = risk + (wrong - risk * accepted) / (questions * most)
    return hoeffding_bentkus_p_value(mean, questions, risk)


def last_rejected(p_values: Sequence[float], start: int, delta: float) -> int | None:
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
