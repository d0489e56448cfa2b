"""Estimate a judge's mean value over all rows from a random sample of judged rows.

The method is prediction-powered inference with a tuned weight (Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient
Prediction-Powered Inference"). The weight is tuned by cross-fitting, as in Zrnic and Candès 2024,
"Cross-prediction-powered inference". For a finite set of rows, the estimate equals the regression estimator in survey
sampling (Cochran 1977, Sampling Techniques, ch. 7).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradewire_stats.bootstrap import numbered

_FOLDS = 10
LEAST_SAMPLED = 10
"""Minimum number of sampled rows for a useful interval."""


@dataclass(frozen=True, slots=True)
class EstimatedMean:
    """An estimated mean over rows that are only partly judged.

    Attributes:
        low: Lower bound of the interval for the mean over these rows. The interval covers only the random choice of the
            sample.
        population_low: Lower bound of the wider interval for the population that these rows were drawn from.
        sampled: Number of judged rows in the sample.
        known: Number of rows that were judged regardless of the sample.
        weight: Weight of the cheap scores, tuned on the sample, from 0 (ignored) to 1 (used unchanged).
    """

    value: float
    low: float
    high: float
    population_low: float
    population_high: float
    rows: int
    sampled: int
    known: int
    weight: float


def estimated_mean(  # noqa: PLR0913 - columns of rows and the confidence
    scores: ArrayLike,
    judged: ArrayLike,
    sampled: ArrayLike,
    *,
    known: ArrayLike | None = None,
    groups: Sequence[Hashable] | None = None,
    contents: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> EstimatedMean:
    """Estimate the mean of `judged` over all rows, from a random sample of judged rows and cheap scores for all rows.

    The estimate is unbiased even if the cheap scores are poor, but better scores make the interval narrower. The weight
    of each row's cheap score is tuned on other rows. Human labels can replace the judge if the labelled rows were drawn
    at random. In a small sample, all verdicts can be equal, which gives no variance. So if every judged value is 0 or
    1, the intervals (but not the value) are computed as if there were z² more rows, half of them right (Agresti and
    Coull 1998).

    Args:
        scores: float[rows], finite, the cheap score of every row.
        judged: float[rows], the judge's values, which only sampled and known rows need.
        sampled: bool[rows], True for rows drawn at random, each with the same probability.
        known: bool[rows], True for rows judged for another reason, for example because their scores are in a band.
            Their judged values count unchanged, and the sample represents all other rows. None means that there are no
            such rows.
        groups: Each row's group (its question). Rows in a group depend on each other, which widens the population
            interval. None means that rows with the same content are a group.
        contents: Each row's content, if rows with the same content were sampled together, as in `auto`. Such rows count
            as one draw. None means that each row was drawn separately.
        confidence: Confidence of both intervals, above 0 and below 1.

    Raises:
        ValueError: Columns differ in length, a required value is not finite, the confidence is out of range, or fewer
            than LEAST_SAMPLED rows are sampled although some rows are not known.
    """
    f, y = np.asarray(scores, np.float64), np.asarray(judged, np.float64)
    drawn = np.asarray(sampled, np.bool_)
    there = np.zeros(len(f), np.bool_) if known is None else np.asarray(known, np.bool_)
    named = [len(column) for column in (groups, contents) if column is not None]
    if {len(f), len(y), len(drawn), len(there), *named} != {len(f)}:
        raise ValueError(
            f"columns have {len(f)}, {len(y)}, {len(drawn)} and {len(there)} rows. Use the same rows in all columns"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, not {confidence}")
    if not len(f):
        raise ValueError("there are no rows to estimate a mean from")
    rest, taken = ~there, drawn & ~there
    if not (np.isfinite(f).all() and np.isfinite(y[there | taken]).all()):
        raise ValueError("a score is not a finite number. Leave such rows out")
    units = np.arange(len(f)) if contents is None else numbered(contents)
    unit_of_taken = numbered(units[taken].tolist())
    count = int(unit_of_taken.max(initial=-1)) + 1
    if rest.any() and count < LEAST_SAMPLED:
        raise ValueError(f"{count} rows are sampled, but at least {LEAST_SAMPLED} are needed. Use a larger sample")
    tuned = _tuned(f, y, rest, taken, unit_of_taken)
    # A row contributes its known value, or its weighted score plus the mean residual. Each sampled row also contributes
    # the deviation of its residual, weighted up to all rows.
    shares = np.where(there, y, tuned.slope * f + tuned.residuals.mean())
    shares[taken] += (tuned.residuals - tuned.residuals.mean()) * (rest.sum() / max(1, taken.sum()))
    value = float((y[there].sum() + rest.sum() * tuned.mean) / len(f))
    unseen = _unseen_squares(y[there | taken], confidence)
    own = _standard_error(tuned.residuals, unit_of_taken, unseen, int(rest.sum()), len(f))
    weighed = unseen * max(1.0, rest.sum() / max(1, taken.sum())) ** 2
    of_all = max(own, _clustered_error(shares - shares.mean(), weighed, units if groups is None else numbered(groups)))
    quantile = _quantile(confidence, count)
    return EstimatedMean(
        value=value,
        low=value - quantile * own,
        high=value + quantile * own,
        population_low=value - quantile * of_all,
        population_high=value + quantile * of_all,
        rows=len(f),
        sampled=int(taken.sum()),
        known=int(there.sum()),
        weight=tuned.weight,
    )


@dataclass(frozen=True, slots=True)
class _Tuned:
    """An estimate over the rows for which `known` is False.

    Attributes:
        mean: Estimate of the judge's mean over these rows, or 0 without such rows.
        slope: Weight of the cheap scores in an estimate that uses their mean over all of these rows.
        weight: Weight of the cheap scores in PPI++, which uses their mean over the unsampled rows.
        residuals: float64[sampled]. Each residual uses a slope that was tuned without the residual's row. If no row is
            sampled, the array is a single 0.
    """

    mean: float
    slope: float
    weight: float
    residuals: NDArray[np.float64]


def _tuned(
    f: NDArray[np.float64],
    y: NDArray[np.float64],
    rest: NDArray[np.bool_],
    taken: NDArray[np.bool_],
    units: NDArray[np.intp],
) -> _Tuned:
    places = np.flatnonzero(taken)
    if not len(places):
        return _Tuned(0.0, 0.0, 0.0, np.zeros(1))
    rows, total = int(rest.sum()), float(f[rest].sum())
    ratio = rows / max(1, rows - len(places))
    spread = float(f[rest].var()) * (rows > len(places))
    count = int(units.max()) + 1
    dealt = np.array_split(np.random.default_rng(0).permutation(count), min(_FOLDS, count))
    parts = [np.flatnonzero(np.isin(units, part)) for part in dealt]
    means, weights, residuals = [], [], np.empty(len(places))
    for part in parts:
        own, others = places[part], np.delete(places, part)
        covariance = float(np.mean((y[others] - y[others].mean()) * (f[others] - f[others].mean())))
        weight = min(1.0, max(0.0, covariance / (ratio * spread))) if spread > 0 else 0.0
        residuals[part] = y[own] - weight * ratio * f[own]
        # If the rows in `others` are removed, the rows in `own` are a random sample of the remaining rows.
        left = rows - len(others)
        of_left = weight * ratio * (total - f[others].sum()) + left * residuals[part].mean()
        means.append((y[others].sum() + of_left) / rows)
        weights.append(weight)
    sizes = np.array([len(part) for part in parts]) / len(places)
    weight = float(sizes @ weights)
    return _Tuned(float(sizes @ means), weight * ratio, weight, residuals)


def _unseen_squares(judged: NDArray[np.float64], confidence: float) -> float:
    """Return a sum of squares to add for unseen verdicts, or 0 if the values are not verdicts.

    This is the sum of squares of z² additional verdicts, of which half are right.
    """
    verdicts = bool(np.isin(judged, (0.0, 1.0)).all())
    return NormalDist().inv_cdf((1 + confidence) / 2) ** 2 / 4 if verdicts else 0.0


def _standard_error(
    residuals: NDArray[np.float64], units: NDArray[np.intp], unseen: float, rest: int, rows: int
) -> float:
    count, sampled = len(np.unique(units)), len(residuals)
    if not rest or sampled == rest:
        return 0.0
    sums = np.bincount(units, weights=residuals - residuals.mean())
    squares = float(sums @ sums) + unseen * (sampled / count) ** 2
    return rest / rows * math.sqrt((1 - sampled / rest) * squares * count / max(1, count - 1)) / sampled


def _clustered_error(shares: NDArray[np.float64], unseen: float, groups: NDArray[np.intp]) -> float:
    sums = np.bincount(groups, weights=shares).astype(np.float64)
    count = len(sums)
    return math.sqrt((float(sums @ sums) + unseen) * count / max(1, count - 1)) / len(shares)


def _quantile(confidence: float, sampled: int) -> float:
    """Return the two-sided quantile of Student's t distribution, from a series (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    degrees = max(1, sampled - 1)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2 if sampled else z
