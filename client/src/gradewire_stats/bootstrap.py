"""The bootstrap: draws of whole questions, and estimates with the intervals that they give."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)
# Draws in work at a time keep numpy's overhead out of sight; fewer where there are many questions bound the memory.
DRAWS_AT_A_TIME = 200
WEIGHTS_AT_A_TIME = 1 << 22
# Share of the defined values inside an interval.
CONFIDENCE = 0.95


def check_lengths(count: int, rows: str, lengths: Mapping[str, int]) -> None:
    """Raise ValueError where a column is not as long as there are rows."""
    for name, length in lengths.items():
        if length != count:
            raise ValueError(f"there are {count} {rows} and {length} {name}")


def numbered(keys: Iterable[Hashable]) -> NDArray[np.intp]:
    """Return the number of each key, from 0 without gaps, in the order in which keys come first."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def question_clusters(datasets: Sequence[str], questions: Sequence[str]) -> NDArray[np.intp]:
    """Numbers the questions.

    Args:
        datasets: Data set of each row; the same key in another data set is another question.
        questions: Key of each row's question; a blank one is a question of its own.

    Returns:
        int[rows], from 0 without gaps.
    """
    rows = enumerate(zip(datasets, questions, strict=True))
    return numbered((dataset, question) if question.strip() else row for row, (dataset, question) in rows)


def strata_of(datasets: Sequence[str], clusters: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers the data set of each question, int[questions]; `clusters` as `question_clusters` gives them."""
    numbers = {name: number for number, name in enumerate(sorted(set(datasets)))}
    strata = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.intp)
    strata[clusters] = [numbers[name] for name in datasets]
    return strata


def free_clusters(clusters: NDArray[np.intp], strata: NDArray[np.intp]) -> int:
    """How many clusters can be drawn otherwise: all of them, less one for each further data set.

    The only question of a data set is in every draw once: twenty data sets of one question each have no spread at all.

    Args:
        clusters: int[…], clusters behind a figure, each once or more often.
        strata: int[clusters of the table], as `strata_of` gives them.
    """
    there = np.unique(clusters)
    return len(there) - max(0, len(np.unique(strata[there])) - 1)


def draws(
    strata: NDArray[np.intp], *, resamples: int, seed: int, one_fewer: bool = False
) -> Iterator[NDArray[np.float64]]:
    """Draws clusters with replacement, within each stratum as many as it has.

    The spread of a mean over such draws is too small by the factor (n - 1) / n in a stratum of n clusters: with many
    data sets of two questions each, by half. One fewer, each counted n / (n - 1) times, has the right one (Rao and Wu
    1988, Journal of the American Statistical Association 83, 231-241).

    Args:
        strata: int[clusters], stratum (data set) of each cluster.
        resamples: Number of draws in all.
        seed: Same seed, same draws.
        one_fewer: For means: draws n - 1 of the n clusters of a stratum and weighs them up to n; a single one is drawn.

    Yields:
        float64[draws, clusters]: how often each cluster was drawn, or its weight; at most `DRAWS_AT_A_TIME` at a time.
    """
    random = np.random.default_rng(seed)
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    at_a_time = max(1, min(DRAWS_AT_A_TIME, WEIGHTS_AT_A_TIME // max(1, len(strata))))
    for start in range(0, resamples, at_a_time):
        weights = np.zeros((min(at_a_time, resamples - start), len(strata)))
        for clusters in members:
            taken_each = max(1, len(clusters) - one_fewer)
            drawn = random.integers(len(clusters), size=(len(weights), taken_each))
            # One draw at a time stays in the cache: ten times as fast as one count over all of them.
            for draw, taken in enumerate(drawn):
                weights[draw, clusters] = np.bincount(taken, minlength=len(clusters)) * (len(clusters) / taken_each)
        yield weights


def ratio_draws(above: NDArray[Any], below: NDArray[Any], *, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return sums over drawn clusters divided by other sums over them, of clusters of one stratum.

    Args:
        above: float[clusters, figures], parts of the sums.
        below: float[clusters, figures], parts of what they are divided by.
        resamples: Number of draws.
        seed: Same seed, same draws.

    Returns:
        float64[draws, figures]; NaN where a draw has nothing below.
    """
    strata = np.zeros(len(above), dtype=np.intp)
    with np.errstate(invalid="ignore", divide="ignore"):
        chunks = [(weights @ above) / (weights @ below) for weights in draws(strata, resamples=resamples, seed=seed)]
    return np.concatenate(chunks) if chunks else np.empty((0, above.shape[1]))


def drawn_values(
    chunks: Iterable[NDArray[np.float64]], values: Callable[[NDArray[np.float64]], Mapping[Key, NDArray[np.float64]]]
) -> dict[Key, NDArray[np.float64]]:
    """Return float64[draws] of each figure that `values` gives for a chunk of draws; nothing where nothing is drawn."""
    found = [values(weights) for weights in chunks]
    return {name: np.concatenate([chunk[name] for chunk in found]) for name in (found[0] if found else ())}


def joined(chunks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Figures of all draws from those of each chunk of draws; empty where nothing was drawn."""
    return np.concatenate(chunks) if chunks else np.array([])


def interval(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """95 % percentile interval of bootstrap values.

    Args:
        values: float64[resamples]; NaN or infinite where a resample left the statistic undefined.

    Returns:
        Lower and upper bound; None where fewer than half of the resamples were defined.
    """
    defined = values[np.isfinite(values)]
    if not len(values) or len(defined) * 2 < len(values):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


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
        questions: Questions that could be drawn otherwise (`free_clusters`); with fewer than
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
