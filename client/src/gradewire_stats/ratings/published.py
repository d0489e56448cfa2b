"""Comparison of ratings with published ratings of the same models."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, draws, estimate
from gradewire_stats.model_ranks import kendall_of, pearson_of, spearman_of
from gradewire_stats.ratings.matches import Matches, pair_counts
from gradewire_stats.ratings.strengths import bradley_terry


@dataclass(frozen=True, slots=True)
class DistantPair:
    """Two models whose published ratings are far apart.

    Attributes:
        apart: Difference of the published ratings, above 0.
        is_right: True if the model with the higher published rating also has the higher Bradley-Terry rating.
    """

    higher: str
    lower: str
    apart: float
    is_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRanks:
    """Correlations between Bradley-Terry ratings and published ratings, with intervals over instructions.

    The published ratings are fixed, so the intervals do not include their uncertainty. With fewer than three models,
    the correlations are NaN.

    Attributes:
        models: Models with both ratings, by published rating, highest first.
        distant: All pairs of these models whose published ratings differ by more than the given gap.
        right: Share of `distant` in the published order. NaN if there are no such pairs.
    """

    models: Sequence[str]
    published: Sequence[float]
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate
    distant: Sequence[DistantPair]
    right: Estimate


def published_ranks(
    matches: Matches, published: Mapping[str, float], *, gap: float, resamples: int = 1000, seed: int = 0
) -> PublishedRanks:
    """Compare Bradley-Terry ratings with published ratings of the same models.

    Args:
        matches: Matches of these models, and possibly of other models, which affect the ratings but are not compared.
        published: Finite ratings by model.
        gap: Least difference between published ratings whose order is checked. The difference must be larger.
        resamples: Number of draws of whole instructions.
        seed: Seed for the draws.

    Raises:
        ValueError: No model has a published rating.
    """
    numbers = {model: number for number, model in enumerate(matches.models) if model in published}
    if not numbers:
        raise ValueError("no model has a published rating")
    strata = np.zeros(matches.instruction_count, dtype=np.intp)
    chunks = (None, *draws(strata, resamples=resamples, seed=seed))
    all_ours = np.concatenate([bradley_terry(pair_counts(matches, chunk)).values for chunk in chunks])
    order = sorted(
        (model for model in numbers if not np.isnan(all_ours[0, numbers[model]])), key=lambda model: -published[model]
    )
    ours = all_ours[:, [numbers[model] for model in order]]
    given = np.array([published[model] for model in order], dtype=np.float64)
    theirs = np.broadcast_to(given, ours.shape)
    behind = len(np.unique(matches.instructions))
    found = {}
    for name, how in (("kendall", kendall_of), ("spearman", spearman_of), ("pearson", pearson_of)):
        values = how(ours, theirs)
        found[name] = estimate(float(values[0]), values[1:], questions=behind)
    distant = [
        (one, other) for one, other in itertools.combinations(range(len(order)), 2) if given[one] - given[other] > gap
    ]
    right = _are_right(ours, distant)
    shares = right.mean(axis=1) if distant else np.full(len(ours), np.nan)
    return PublishedRanks(
        models=order,
        published=given.tolist(),
        distant=[
            DistantPair(order[one], order[other], float(given[one] - given[other]), bool(right[0, place]))
            for place, (one, other) in enumerate(distant)
        ],
        right=estimate(float(shares[0]), shares[1:], questions=behind),
        **found,
    )


def _are_right(ours: NDArray[np.float64], distant: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Return bool[draws, pairs], True where the first model of the pair has the higher rating. Equal is not right."""
    higher, lower = ([pair[side] for pair in distant] for side in (0, 1))
    return np.asarray(ours[:, higher] > ours[:, lower])
