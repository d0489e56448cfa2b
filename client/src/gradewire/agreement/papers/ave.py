"""AVE's three properties of an evaluator: alignment, consistency and generalisation (SFVE paper, equations 3 to 5).

The paper leaves open the base of the logarithm, the kind of variance, how the descriptions of part 2 merge and how a
data set's alignment is taken over the parts: these are options, and base 2 is the one that fits its printed values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.ranked import RANK_DRAWS
from gradewire.agreement.estimates import Difference, Estimate, difference, estimate
from gradewire.agreement.papers.ave_figures import AveFigures, AveOptions, AveRows, ave_figures
from gradewire.agreement.point_estimates import correlations


@dataclass(frozen=True, slots=True)
class AveProperties:
    """Figures of one evaluator; alignments as fractions.

    Attributes:
        parts: Spearman on each part, -1 to 1.
        alignment: Their mean; NaN where a part has none.
        consistency: log(1 / mean over the samples of the variance of their scores across the parts); +inf where every
            sample has the same score in all parts. It depends on the scale of the scores: all of them divided by 2
            are more consistent by log 4.
        relative_consistency: The same of the scores divided by their standard deviation over all samples and parts: not
            in the paper, and free of the scale. NaN where all scores are equal.
        generalization: log(1 / variance of the alignments of the data sets); +inf where they are equal.
        datasets: Alignment of each data set.
        samples: Samples with a score in every part: those that consistency is about.
        failed: Scores that are missing in each part.
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
    """What an evaluator gains over another, on the scores that both have; positive is better.

    Attributes:
        parts: Of Spearman on each part.
        alignment: Of their mean.
        consistency: As in `AveProperties`.
        relative_consistency: As in `AveProperties`.
    """

    parts: Sequence[Difference]
    alignment: Difference
    consistency: Difference
    relative_consistency: Difference


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
        # In one order, so that the same scores have the same sum: a rounding would break ties of Spearman.
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
    """Computes all three.

    Args:
        rows: Scores and labels.
        options: What the paper leaves open.
        resamples: Draws of questions within each data set; more than `RANK_DRAWS` are not taken, as each is ranked
            anew.
        seed: Same seed, same intervals.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: Columns differ in length, a label is not a number, or the base is not above 1.
    """
    figures = ave_figures(rows, options or AveOptions(), resamples=resamples, seed=seed)
    # scipy's own value beside those of the draws, which are computed otherwise.
    parts = [_spearman(column, rows.labels) for column in rows.scores.T]
    return AveProperties(
        parts=[_estimate(figures, f"part {part}", value) for part, value in enumerate(parts)],
        alignment=_estimate(figures, "alignment", float(np.mean(parts)) if parts else math.nan),
        consistency=_estimate(figures, "consistency"),
        relative_consistency=_estimate(figures, "relative_consistency"),
        generalization=_estimate(figures, "generalization"),
        datasets={name: figures.point[f"dataset {place}"] for place, name in enumerate(figures.datasets)},
        samples=int((~np.isnan(rows.scores).any(axis=1)).sum()),
        failed=[int(missing) for missing in np.isnan(rows.scores).sum(axis=0)],
    )


def ave_differences(
    rows: AveRows, baseline: AveRows, options: AveOptions | None = None, *, resamples: int = RANK_DRAWS, seed: int = 0
) -> AveDifferences:
    """Compares two evaluators on the same draws of questions.

    Args:
        rows: Of the one; labels, data sets and questions count.
        baseline: Scores of the other on the same samples.
        options: As for `ave_properties`.
        resamples: As for `ave_properties`.
        seed: As for `ave_properties`.

    Raises:
        ValueError: As `ave_properties`, or the two have not the same samples and parts.
    """
    if rows.scores.shape != baseline.scores.shape:
        raise ValueError(f"scores are {rows.scores.shape} and {baseline.scores.shape}: compare the same samples")
    missing = np.isnan(rows.scores) | np.isnan(baseline.scores)
    # By turns of the same questions: figures that count other samples would differ by these.
    found, other = (
        ave_figures(
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


def _estimate(figures: AveFigures, name: str, value: float | None = None) -> Estimate:
    own = figures.point[name] if value is None else value
    return estimate(own, figures.drawn[name], questions=figures.questions[name])


def _difference(found: AveFigures, other: AveFigures, name: str) -> Difference:
    with np.errstate(invalid="ignore"):
        drawn = found.drawn[name] - other.drawn[name]
        value = float(np.subtract(found.point[name], other.point[name]))
    return difference(value, drawn, questions=min(found.questions[name], other.questions[name]))


def _spearman(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    scored = ~np.isnan(scores)
    return correlations(scores[scored], labels[scored], ["spearman"])["spearman"]
