"""AVE's three properties of an evaluator: alignment, consistency and generalisation (SFVE paper, equations 3 to 5).

Options set what the paper leaves open, such as the logarithm's base. Base 2 reproduces the paper's values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.ranks import RANK_DRAWS, Ordering, spearman
from gradewire_stats.agreement.statistics import correlations
from gradewire_stats.bootstrap import (
    Difference,
    Estimate,
    difference,
    drawn_values,
    draws,
    estimate,
    free_clusters,
    question_clusters,
    strata_of,
)


@dataclass(frozen=True, slots=True)
class AveRows:
    """An evaluator's scores on the parts of the benchmark.

    Attributes:
        scores: float64[samples, parts], NaN if the evaluator failed.
        labels: float64[samples], human grades, on any scale.
        datasets: Each sample's source data set.
        questions: Key of each sample's question, for draws of whole questions. If empty, every sample has its own
            question.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.float64]
    datasets: Sequence[str]
    questions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AveOptions:
    """Options that the paper does not specify.

    Attributes:
        log_base: Base of all logarithms, above 1.
        variance: "population" divides by the number of values n, "sample" by n - 1.
        dataset_alignment: "mean_of_parts" averages a data set's Spearman correlations on the parts, and "pooled"
            computes one Spearman correlation over all parts.
    """

    log_base: float = 2.0
    variance: Literal["population", "sample"] = "population"
    dataset_alignment: Literal["mean_of_parts", "pooled"] = "mean_of_parts"


@dataclass(frozen=True, slots=True)
class _Draws:
    """Point values, and the values in every draw.

    Attributes:
        point: Values by name: "part 0" …, "alignment", "consistency", "relative_consistency", "generalization",
            "dataset 0" … in the order of `datasets`.
        drawn: float64[draws] by the same names.
        datasets: Data set names, sorted.
        questions: Number of questions that can vary between draws, by the same names.
    """

    point: Mapping[str, float]
    drawn: Mapping[str, NDArray[np.float64]]
    datasets: Sequence[str]
    questions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AveProperties:
    """An evaluator's properties.

    Attributes:
        parts: Spearman correlation on each part, -1 to 1.
        alignment: Mean of `parts`, -1 to 1, or NaN if the correlation on a part is undefined.
        consistency: log(1 / mean variance of a sample's scores across the parts), or +inf if every sample has the same
            score in all parts. The value depends on the scores' scale. For example, halving all scores adds log 4.
        relative_consistency: Consistency after dividing the scores by their standard deviation over all samples and
            parts, or NaN if all scores are equal. The paper does not define this property.
        generalization: log(1 / variance of the data sets' alignments), or +inf if the alignments are equal.
        samples: Number of samples with a score in every part. Consistency uses only these samples.
        failed: Number of missing scores in each part.
    """

    parts: Sequence[Estimate]
    alignment: Estimate
    consistency: Estimate
    relative_consistency: Estimate
    generalization: Estimate
    datasets: Mapping[str, float]
    samples: int
    failed: Sequence[int]


@dataclass(frozen=True, slots=True)
class AveDifferences:
    """An evaluator's gains in `AveProperties` over a baseline, on samples and parts that both evaluators scored."""

    parts: Sequence[Difference]
    alignment: Difference
    consistency: Difference
    relative_consistency: Difference


def merged_descriptions(
    scores: NDArray[np.float64], *, how: Literal["mean", "median", "max"] = "mean"
) -> NDArray[np.float64]:
    """Merge the scores for each sample's descriptions into one score.

    Args:
        scores: float64[samples, descriptions], NaN for a failed description.
        how: Function to merge scores that are not NaN.

    Returns:
        float64[samples], NaN if all descriptions failed.
    """
    found = np.full(len(scores), np.nan)
    some = (~np.isnan(scores)).any(axis=1)
    if some.any():
        # Sort first, so that the same scores in any order have the same sum. A rounding difference would break ties in
        # Spearman's correlation.
        given = np.sort(scores[some], axis=1)
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
    """Compute an evaluator's three properties.

    Args:
        rows: Scores and labels.
        options: Options that the paper does not specify.
        resamples: Number of draws of questions, stratified by data set, at most `RANK_DRAWS`.
        seed: Seed for the draws.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: Columns differ in length, a label is not a number, or the base is not above 1.
    """
    results = _draws(rows, options or AveOptions(), resamples=resamples, seed=seed)
    # scipy computes the point values independently of the code for draws.
    parts = [_spearman(column, rows.labels) for column in rows.scores.T]
    return AveProperties(
        parts=[_estimate(results, f"part {part}", value) for part, value in enumerate(parts)],
        alignment=_estimate(results, "alignment", float(np.mean(parts)) if parts else math.nan),
        consistency=_estimate(results, "consistency"),
        relative_consistency=_estimate(results, "relative_consistency"),
        generalization=_estimate(results, "generalization"),
        datasets={name: results.point[f"dataset {place}"] for place, name in enumerate(results.datasets)},
        samples=int((~np.isnan(rows.scores).any(axis=1)).sum()),
        failed=[int(missing) for missing in np.isnan(rows.scores).sum(axis=0)],
    )


def ave_differences(
    rows: AveRows, baseline: AveRows, options: AveOptions | None = None, *, resamples: int = RANK_DRAWS, seed: int = 0
) -> AveDifferences:
    """Compare two evaluators on the same draws of questions.

    Args:
        rows: One evaluator's scores, with labels, data sets and questions for both.
        baseline: The baseline's scores on the same samples.
        options: Same as in `ave_properties`.
        resamples: Same as in `ave_properties`.
        seed: Same as in `ave_properties`.

    Raises:
        ValueError: Samples or parts differ. For other errors, see `ave_properties`.
    """
    if rows.scores.shape != baseline.scores.shape:
        raise ValueError(f"shapes {rows.scores.shape}, {baseline.scores.shape} differ. Use the same samples and parts")
    missing = np.isnan(rows.scores) | np.isnan(baseline.scores)
    # Use the same samples and draws for both evaluators, because different samples would change the difference.
    found, other = (
        _draws(
            AveRows(np.where(missing, np.nan, scores), rows.labels, rows.datasets, rows.questions),
            options or AveOptions(),
            resamples=resamples,
            seed=seed,
        )
        for scores in (rows.scores, baseline.scores)
    )
    return AveDifferences(
        parts=[_difference(found, other, f"part {part}") for part in range(rows.scores.shape[1])],
        alignment=_difference(found, other, "alignment"),
        consistency=_difference(found, other, "consistency"),
        relative_consistency=_difference(found, other, "relative_consistency"),
    )


def _estimate(results: _Draws, name: str, value: float | None = None) -> Estimate:
    own = results.point[name] if value is None else value
    return estimate(own, results.drawn[name], questions=results.questions[name])


def _difference(found: _Draws, other: _Draws, name: str) -> Difference:
    with np.errstate(invalid="ignore"):
        drawn = found.drawn[name] - other.drawn[name]
        value = float(np.subtract(found.point[name], other.point[name]))
    return difference(value, drawn, questions=min(found.questions[name], other.questions[name]))


def _spearman(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    scored = ~np.isnan(scores)
    return correlations(scores[scored], labels[scored], ["spearman"])["spearman"]


def _draws(rows: AveRows, options: AveOptions, *, resamples: int, seed: int) -> _Draws:
    """Compute all values and their draws, with the arguments of `ave_properties`.

    The draws depend only on seed, questions and data sets, not on the scores.
    """
    _check(rows, options)
    names = sorted(set(rows.datasets))
    clusters = question_clusters(rows.datasets, rows.questions or [""] * len(rows.labels))
    strata = strata_of(rows.datasets, clusters)
    own = strata[clusters]
    point = _of_draws(rows, options, np.ones((1, len(clusters))), own)
    drawn = drawn_values(
        draws(strata, resamples=min(resamples, RANK_DRAWS), seed=seed),
        lambda weights: _of_draws(rows, options, weights[:, clusters], own),
    )
    return _Draws(
        point={name: float(values[0]) for name, values in point.items()},
        drawn={name: drawn.get(name, np.array([])) for name in point},
        datasets=names,
        questions=_questions(rows, clusters, strata),
    )


def _check(rows: AveRows, options: AveOptions) -> None:
    if not len(rows.scores) == len(rows.labels) == len(rows.datasets):
        raise ValueError(
            f"{len(rows.scores)} samples, {len(rows.labels)} labels and {len(rows.datasets)} data sets differ in number"
        )
    if rows.questions and len(rows.questions) != len(rows.labels):
        raise ValueError(f"{len(rows.labels)} labels and {len(rows.questions)} questions differ in number")
    if not np.isfinite(rows.labels).all():
        raise ValueError("a label is not a finite number. Leave such samples out")
    if not options.log_base > 1:
        raise ValueError(f"the logarithm's base is {options.log_base}. Use a base above 1")


def _questions(rows: AveRows, clusters: NDArray[np.intp], strata: NDArray[np.intp]) -> dict[str, int]:
    scored = ~np.isnan(rows.scores)
    parts = [free_clusters(clusters[column], strata) for column in scored.T]
    whole = free_clusters(clusters[scored.all(axis=1)], strata)
    fewest = min(parts, default=0)
    smallest = min(np.bincount(strata).tolist(), default=0)
    return {
        **{f"part {part}": found for part, found in enumerate(parts)},
        "alignment": fewest,
        "consistency": whole,
        "relative_consistency": whole,
        "generalization": min(fewest, smallest),
    }


def _of_draws(
    rows: AveRows, options: AveOptions, weights: NDArray[np.float64], strata: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]]:
    """Return the values in every draw: float64[draws] for each name. `weights` is float64[draws, samples]."""
    count = rows.scores.shape[1]
    every = np.arange(len(rows.labels))
    found = {f"part {part}": _aligned(rows, weights, every, [part]) for part in range(count)}
    found["alignment"] = np.mean([found[f"part {part}"] for part in range(count)], axis=0) if count else _nan(weights)
    found["consistency"], found["relative_consistency"] = _consistency(rows, options, weights)
    by_dataset = []
    for place in range(int(strata.max(initial=-1)) + 1):
        samples = np.flatnonzero(strata == place)
        pools = [list(range(count))] if options.dataset_alignment == "pooled" else [[part] for part in range(count)]
        aligned = [_aligned(rows, weights, samples, pool) for pool in pools]
        by_dataset.append(np.mean(aligned, axis=0) if aligned else _nan(weights))
        found[f"dataset {place}"] = by_dataset[-1]
    ddof = int(options.variance == "sample")
    # The alignment of a single data set has no variance.
    spread = np.var(by_dataset, axis=0, ddof=ddof) if len(by_dataset) > 1 else _nan(weights)
    found["generalization"] = _log_of_inverse(spread, options)
    return found


def _nan(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(len(weights), np.nan)


def _aligned(
    rows: AveRows, weights: NDArray[np.float64], samples: NDArray[np.intp], pool: Sequence[int]
) -> NDArray[np.float64]:
    """Return the Spearman correlation over the scored samples in the pooled parts, float64[draws]."""
    scores = rows.scores[samples][:, list(pool)].T.ravel()
    each = np.tile(samples, len(pool))
    scored = ~np.isnan(scores)
    if not scored.any():
        return _nan(weights)
    kept = each[scored]
    return spearman(weights[:, kept], Ordering.of(scores[scored]), Ordering.of(rows.labels[kept]))


def _consistency(
    rows: AveRows, options: AveOptions, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return consistency (equation 4) and relative consistency, both float64[draws]."""
    ddof = int(options.variance == "sample")
    complete = np.flatnonzero(~np.isnan(rows.scores).any(axis=1))
    if rows.scores.shape[1] < 2 or not len(complete):
        return _nan(weights), _nan(weights)
    scores, kept = rows.scores[complete], weights[:, complete]
    with np.errstate(invalid="ignore", divide="ignore"):
        total = kept.sum(axis=1)
        within = kept @ scores.var(axis=1, ddof=ddof) / total
        mean = kept @ scores.mean(axis=1) / total
        # Centre at a fixed value first, because the difference of two large means would lose all digits.
        centred = scores - scores.mean()
        overall = kept @ (centred**2).mean(axis=1) / total - (mean - scores.mean()) ** 2
        relative = np.where(overall > 0, within / overall, np.nan)
    return _log_of_inverse(within, options), _log_of_inverse(relative, options)


def _log_of_inverse(variance: NDArray[np.float64], options: AveOptions) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(variance) / math.log(options.log_base))
