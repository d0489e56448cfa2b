"""Draws of whole questions."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# Draws in work at a time keep numpy's overhead out of sight; fewer where there are many questions bound the memory.
DRAWS_AT_A_TIME = 200
WEIGHTS_AT_A_TIME = 1 << 22
# Share of the defined values inside an interval.
CONFIDENCE = 0.95


def question_clusters(datasets: Sequence[str], questions: Sequence[str]) -> NDArray[np.intp]:
    """Numbers the questions.

    Args:
        datasets: Data set of each row; the same key in another data set is another question.
        questions: Key of each row's question; a blank one is a question of its own.

    Returns:
        int[rows], from 0 without gaps.
    """
    numbers: dict[tuple[str, str] | int, int] = {}
    clusters = np.empty(len(questions), dtype=np.intp)
    for row, (dataset, question) in enumerate(zip(datasets, questions, strict=True)):
        key = (dataset, question) if question.strip() else row
        clusters[row] = numbers.setdefault(key, len(numbers))
    return clusters


def strata_of(datasets: Sequence[str], clusters: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers the data set of each question, int[questions]; `clusters` as `question_clusters` gives them."""
    numbers = {name: number for number, name in enumerate(sorted(set(datasets)))}
    strata = np.zeros(int(clusters.max()) + 1, dtype=np.intp)
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
