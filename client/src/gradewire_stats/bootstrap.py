"""The bootstrap: draws of whole questions, and estimates with their intervals."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)
# Number of draws to process at a time, large enough to hide numpy's overhead. With many questions, fewer draws are
# processed at a time, to limit memory.
DRAWS_AT_A_TIME = 200
WEIGHTS_AT_A_TIME = 1 << 22
# Share of the defined values that an interval contains.
CONFIDENCE = 0.95


def check_lengths(count: int, rows: str, lengths: Mapping[str, int]) -> None:
    """Raise ValueError if a column's length differs from the number of rows."""
    for name, length in lengths.items():
        if length != count:
            raise ValueError(f"{count} {rows} and {length} {name} differ in number")


def numbered(keys: Iterable[Hashable]) -> NDArray[np.intp]:
    """Return each key's number. Distinct keys are numbered from 0 in order of first occurrence."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def question_clusters(datasets: Sequence[str], questions: Sequence[str]) -> NDArray[np.intp]:
    """Return each row's question number.

    Args:
        datasets: Each row's data set. The same key in another data set is a different question.
        questions: Key of each row's question. Rows with blank keys have separate questions.

    Returns:
        int[rows], from 0 without gaps.
    """
    rows = enumerate(zip(datasets, questions, strict=True))
    return numbered((dataset, question) if question.strip() else row for row, (dataset, question) in rows)


def strata_of(datasets: Sequence[str], clusters: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return each question's data set number, int[questions].

    `datasets` and `clusters` (from `question_clusters`) have an entry for each row.
    """
    numbers = {name: number for number, name in enumerate(sorted(set(datasets)))}
    strata = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.intp)
    strata[clusters] = [numbers[name] for name in datasets]
    return strata


def free_clusters(clusters: NDArray[np.intp], strata: NDArray[np.intp]) -> int:
    """Return how many clusters can vary between draws: all clusters, minus one for each data set after the first.

    Args:
        clusters: int[…], clusters that contribute to a statistic. Repetitions do not matter.
        strata: int[clusters in the table], from `strata_of`.
    """
    there = np.unique(clusters)
    return len(there) - max(0, len(np.unique(strata[there])) - 1)


def draws(
    strata: NDArray[np.intp], *, resamples: int, seed: int, one_fewer: bool = False
) -> Iterator[NDArray[np.float64]]:
    """Draw n clusters with replacement from each stratum of n clusters.

    The variance of a mean over these draws is too small by the factor (n - 1) / n, which is one half for two clusters.
    Drawing n - 1 clusters, each with the weight n / (n - 1), gives the right variance (Rao and Wu 1988, Journal of the
    American Statistical Association 83, 231-241).

    Args:
        strata: int[clusters], each cluster's stratum (data set).
        resamples: Total number of draws.
        seed: Seed for the draws.
        one_fewer: Draw n - 1 clusters (at least one) instead, with weights that add up to n. Use this option for means.

    Yields:
        float64[draws, clusters], each cluster's weight, for at most `DRAWS_AT_A_TIME` draws. Without `one_fewer`, the
        weight is the number of times that the cluster was drawn.
    """
    random = np.random.default_rng(seed)
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    at_a_time = max(1, min(DRAWS_AT_A_TIME, WEIGHTS_AT_A_TIME // max(1, len(strata))))
    for start in range(0, resamples, at_a_time):
        weights = np.zeros((min(at_a_time, resamples - start), len(strata)))
        for clusters in members:
            taken_each = max(1, len(clusters) - one_fewer)
            drawn = random.integers(len(clusters), size=(len(weights), taken_each))
            # Counting one draw at a time fits into the cache, and is ten times as fast as counting all at once.
            for draw, taken in enumerate(drawn):
                weights[draw, clusters] = np.bincount(taken, minlength=len(clusters)) * (len(clusters) / taken_each)
        yield weights


def ratio_draws(above: NDArray[Any], below: NDArray[Any], *, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return ratios of sums over drawn clusters. All clusters are in a single stratum.

    Args:
        above: float[clusters, columns], terms of the numerators.
        below: float[clusters, columns], terms of the denominators.
        resamples: Number of draws.
        seed: Seed for the draws.

    Returns:
        float64[draws, columns], NaN if a draw's denominator is 0.
    """
    strata = np.zeros(len(above), dtype=np.intp)
    with np.errstate(invalid="ignore", divide="ignore"):
        chunks = [(weights @ above) / (weights @ below) for weights in draws(strata, resamples=resamples, seed=seed)]
    return np.concatenate(chunks) if chunks else np.empty((0, above.shape[1]))


def drawn_values(
    chunks: Iterable[NDArray[np.float64]], values: Callable[[NDArray[np.float64]], Mapping[Key, NDArray[np.float64]]]
) -> dict[Key, NDArray[np.float64]]:
    """Apply `values` to every chunk of draws, and return float64[draws] by name, or {} if there are no draws."""
    found = [values(weights) for weights in chunks]
    return {name: np.concatenate([chunk[name] for chunk in found]) for name in (found[0] if found else ())}


def joined(chunks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Join values from all chunks of draws. Return an empty array if there are no chunks."""
    return np.concatenate(chunks) if chunks else np.array([])


def interval(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of bootstrap values.

    Args:
        values: float64[resamples], NaN or infinite if the statistic is undefined in a resample.

    Returns:
        The lower and upper bound, or None if fewer than half of the values are defined.
    """
    defined = values[np.isfinite(values)]
    if not len(values) or len(defined) * 2 < len(values):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


# Minimum number of questions for an interval. With fewer questions, draws hardly differ, so intervals are too narrow.
LEAST_QUESTIONS = 10
# Maximum share of undefined draws for a p value. Above this share, the defined draws are not a random selection.
MOST_UNDEFINED = 0.05


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % bootstrap interval.

    Attributes:
        value: Point value, or NaN if undefined.
        low: Lower bound, or NaN without an interval.
        high: Upper bound, or NaN without an interval.
        resamples: Number of draws that the interval uses, namely those with a defined statistic; 0 without an interval.
        undefined: Number of draws in which the statistic is undefined.
        questions: Number of questions that can vary between draws. There is no interval if this number is below
            `LEAST_QUESTIONS`, or if more than half of the draws are undefined.
    """

    value: float
    low: float
    high: float
    resamples: int
    undefined: int = field(default=0, kw_only=True)
    questions: int = field(default=0, kw_only=True)

    @property
    def bare(self) -> bool:
        """True if there is a value without an interval."""
        return not math.isnan(self.value) and math.isnan(self.low)


@dataclass(frozen=True, slots=True)
class CellsMean(Estimate):
    """A mean over cells with its 95 % bootstrap interval.

    Attributes:
        cells: Number of cells with a defined statistic, which the mean uses.
    """

    cells: int = field(kw_only=True)
    cells_in_all: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """A paired difference with its 95 % bootstrap interval.

    Attributes:
        p_value: Two-sided p value, 2 (k + 1) / (n + 1) but at most 1, where n is the number of defined draws and k is
            the smaller number of draws on one side of 0 (Davison and Hinkley 1997, section 4.2). NaN without an
            interval, or if the share of undefined draws is above `MOST_UNDEFINED`.
    """

    p_value: float

    @property
    def at_floor(self) -> bool:
        """True if the p value is the smallest possible with this number of draws."""
        return self.resamples > 0 and self.p_value <= 2 / (self.resamples + 1)


def estimate(value: float, resampled: NDArray[np.float64], *, questions: int) -> Estimate:
    """Return a value with its interval.

    Args:
        value: The point value.
        resampled: float64[resamples], NaN for draws in which the value is undefined.
        questions: Number of questions that can vary between draws (`free_clusters`). With fewer than `LEAST_QUESTIONS`
            there is no interval.
    """
    bounds = interval(resampled) if math.isfinite(value) and questions >= LEAST_QUESTIONS else None
    low, high = bounds or (math.nan, math.nan)
    defined = int(np.count_nonzero(np.isfinite(resampled)))
    return Estimate(value, low, high, defined if bounds else 0, undefined=len(resampled) - defined, questions=questions)


def difference(value: float, resampled: NDArray[np.float64], *, questions: int) -> Difference:
    """Return a difference with its interval and p value. `estimate` explains the arguments."""
    plain = estimate(value, resampled, questions=questions)
    p_value = math.nan
    if plain.resamples and plain.undefined <= MOST_UNDEFINED * len(resampled):
        defined = resampled[np.isfinite(resampled)]
        fewer = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
        p_value = min(1.0, 2 * (int(fewer) + 1) / (len(defined) + 1))
    return Difference(**asdict(plain), p_value=p_value)


def ratio_estimates(
    above: Sequence[NDArray[Any]],
    below: Sequence[NDArray[Any]],
    clusters: NDArray[np.intp],
    *,
    resamples: int,
    seed: int,
) -> list[Estimate]:
    """Return ratios of sums over rows, with their intervals. The draws are of whole questions in a single stratum.

    Args:
        above: Each ratio's terms of the numerator, float[rows].
        below: Each ratio's terms of the denominator, float[rows], none below 0. A ratio's number of questions counts
            only questions with a denominator above 0.
        clusters: int[rows], each row's question number, from 0 without gaps (`question_clusters`).
        resamples: Number of draws, the same for all ratios.
        seed: Seed for the draws.
    """
    if not len(clusters):
        return [estimate(math.nan, np.array([]), questions=0) for _ in above]

    def sums(columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        return np.stack([np.bincount(clusters, weights=column) for column in columns], axis=1)

    terms, totals = sums(above), sums(below)
    with np.errstate(invalid="ignore", divide="ignore"):
        points = terms.sum(axis=0) / totals.sum(axis=0)
    values = ratio_draws(terms, totals, resamples=resamples, seed=seed)
    behind = np.count_nonzero(totals, axis=0)
    return [
        estimate(float(point), values[:, place], questions=int(behind[place])) for place, point in enumerate(points)
    ]
