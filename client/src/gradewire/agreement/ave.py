"""AVE's three properties of an evaluator: alignment, consistency and generalisation (SFVE paper, equations 3 to 5).

The paper leaves open the base of the logarithm, the kind of variance, how the descriptions of part 2 merge and how a
data set's alignment is taken over the parts: these are options, and base 2 is the one that fits its printed values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gradewire.agreement.estimates import Estimate, estimate
from gradewire.agreement.point import correlations
from gradewire.agreement.ranked import RANK_DRAWS
from gradewire.agreement.resample import draws, free_clusters
from gradewire.agreement.weighted import Ordering, spearman

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AveRows:
    """Scores of one evaluator on the parts of the benchmark.

    Attributes:
        scores: float64[samples, parts]; NaN where the evaluator failed.
        labels: float64[samples], human grades, any scale.
        datasets: Source data set of each sample.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.float64]
    datasets: Sequence[str]


@dataclass(frozen=True, slots=True)
class AveOptions:
    """What the paper leaves open.

    Attributes:
        log_base: Of both logarithms, above 1.
        variance: "population" divides by the number of values, "sample" by one less.
        dataset_alignment: "mean_of_parts" is the mean over the parts of Spearman within the data set; "pooled" is
            Spearman over all its parts at once.
    """

    log_base: float = 2.0
    variance: Literal["population", "sample"] = "population"
    dataset_alignment: Literal["mean_of_parts", "pooled"] = "mean_of_parts"


@dataclass(frozen=True, slots=True)
class AveProperties:
    """What an evaluator reaches; alignments as fractions.

    Attributes:
        parts: Spearman on each part, -1 to 1.
        alignment: Their mean; NaN where a part has none.
        consistency: log(1 / mean over the samples of the variance of their scores across the parts); +inf where every
            sample has the same score in all parts.
        generalization: log(1 / variance of the alignments of the data sets); +inf where they are equal.
        datasets: Alignment of each data set.
        samples: Samples with a score in every part: those that consistency is about.
        failed: Scores that are missing in each part.
    """

    parts: Sequence[Estimate]
    alignment: Estimate
    consistency: Estimate
    generalization: Estimate
    datasets: Mapping[str, float]
    samples: int
    failed: Sequence[int]


def merged_descriptions(
    scores: NDArray[np.float64], *, how: Literal["mean", "median", "max"] = "mean"
) -> NDArray[np.float64]:
    """One score for the descriptions of an answer.

    Args:
        scores: float64[samples, descriptions]; NaN where one failed.
        how: Of those that did not.

    Returns:
        float64[samples]; NaN where all failed.
    """
    found = np.full(len(scores), np.nan)
    some = (~np.isnan(scores)).any(axis=1)
    if some.any():
        given = scores[some]
        merged = {
            "mean": np.nanmean(given, axis=1),
            "median": np.nanmedian(given, axis=1),
            "max": np.nanmax(given, axis=1),
        }
        found[some] = merged[how]
    return found


def ave_properties(
    rows: AveRows, options: AveOptions | None = None, *, resamples: int = RANK_DRAWS, seed: int = 0
) -> AveProperties:
    """Computes all three.

    Args:
        rows: Scores and labels.
        options: What the paper leaves open.
        resamples: Draws of samples within each data set; more than `RANK_DRAWS` are not taken, as each is ranked anew.
        seed: Same seed, same intervals.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: Columns differ in length, a label is not a number, or the base is not above 1.
    """
    options = options or AveOptions()
    if not len(rows.scores) == len(rows.labels) == len(rows.datasets):
        raise ValueError(
            f"there are {len(rows.scores)} samples, {len(rows.labels)} labels and {len(rows.datasets)} data sets"
        )
    if not np.isfinite(rows.labels).all():
        raise ValueError("a label is not a number: leave such samples out")
    if not options.log_base > 1:
        raise ValueError(f"the logarithm's base is {options.log_base}: it must be above 1")
    names = sorted(set(rows.datasets))
    number = {name: place for place, name in enumerate(names)}
    strata = np.array([number[name] for name in rows.datasets], dtype=np.intp)
    whole = np.arange(len(rows.labels))
    every_part = ~np.isnan(rows.scores).any(axis=1)
    point = _figures(rows, options, np.ones((1, len(whole))), strata)
    # scipy's own value beside those of the draws, which are computed otherwise.
    parts = [_spearman(rows.scores[:, part], rows.labels) for part in range(rows.scores.shape[1])]
    chunks = [
        _figures(rows, options, weights, strata)
        for weights in draws(strata, resamples=min(resamples, RANK_DRAWS), seed=seed)
    ]
    drawn = {name: np.concatenate([chunk[name] for chunk in chunks]) if chunks else np.array([]) for name in point}
    datasets = {name: float(point[f"dataset {place}"][0]) for place, name in enumerate(names)}
    scored = [free_clusters(np.flatnonzero(~np.isnan(column)), strata) for column in rows.scores.T]
    fewest = min(scored, default=0)
    smallest = min((int((strata == place).sum()) for place in range(len(names))), default=0)
    return AveProperties(
        parts=[estimate(value, drawn[f"part {part}"], questions=scored[part]) for part, value in enumerate(parts)],
        alignment=estimate(float(np.mean(parts)) if parts else math.nan, drawn["alignment"], questions=fewest),
        consistency=estimate(
            float(point["consistency"][0]),
            drawn["consistency"],
            questions=free_clusters(np.flatnonzero(every_part), strata),
        ),
        generalization=estimate(
            float(point["generalization"][0]), drawn["generalization"], questions=min(fewest, smallest)
        ),
        datasets=datasets,
        samples=int(every_part.sum()),
        failed=[int(missing) for missing in np.isnan(rows.scores).sum(axis=0)],
    )


def _figures(
    rows: AveRows, options: AveOptions, weights: NDArray[np.float64], strata: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]]:
    """All figures of draws, float64[draws] by name; `weights` is float64[draws, samples]."""
    count = rows.scores.shape[1]
    found = {f"part {part}": _aligned(rows, weights, np.flatnonzero(strata >= 0), [part]) for part in range(count)}
    found["alignment"] = np.mean([found[f"part {part}"] for part in range(count)], axis=0) if count else _nan(weights)
    found["consistency"] = _consistency(rows, options, weights)
    by_dataset = []
    for place in range(int(strata.max(initial=-1)) + 1):
        samples = np.flatnonzero(strata == place)
        pools = [list(range(count))] if options.dataset_alignment == "pooled" else [[part] for part in range(count)]
        aligned = [_aligned(rows, weights, samples, pool) for pool in pools]
        by_dataset.append(np.mean(aligned, axis=0) if aligned else _nan(weights))
        found[f"dataset {place}"] = by_dataset[-1]
    ddof = int(options.variance == "sample")
    # The variance of one data set is no variance.
    spread = np.var(by_dataset, axis=0, ddof=ddof) if len(by_dataset) > 1 else _nan(weights)
    found["generalization"] = _log_of_inverse(spread, options)
    return found


def _nan(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(len(weights), np.nan)


def _aligned(
    rows: AveRows, weights: NDArray[np.float64], samples: NDArray[np.intp], pool: Sequence[int]
) -> NDArray[np.float64]:
    """Spearman over the scored samples of the pooled parts, float64[draws]."""
    scores = rows.scores[samples][:, list(pool)].T.ravel()
    each = np.tile(samples, len(pool))
    scored = ~np.isnan(scores)
    if not scored.any():
        return _nan(weights)
    kept = each[scored]
    return spearman(weights[:, kept], Ordering.of(scores[scored]), Ordering.of(rows.labels[kept]))


def _consistency(rows: AveRows, options: AveOptions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    ddof = int(options.variance == "sample")
    complete = np.flatnonzero(~np.isnan(rows.scores).any(axis=1))
    if rows.scores.shape[1] < 2 or not len(complete):
        return _nan(weights)
    variance = rows.scores[complete].var(axis=1, ddof=ddof)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = weights[:, complete] @ variance / weights[:, complete].sum(axis=1)
    return _log_of_inverse(mean, options)


def _log_of_inverse(variance: NDArray[np.float64], options: AveOptions) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(variance) / math.log(options.log_base))


def _spearman(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    scored = ~np.isnan(scores)
    return correlations(scores[scored], labels[scored], ["spearman"])["spearman"]
