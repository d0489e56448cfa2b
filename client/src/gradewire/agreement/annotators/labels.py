"""Labels of several annotators: one label out of many, and how far the annotators agree with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.annotators.alpha import LEVELS, AlphaLevel, alpha_of_draws
from gradewire.agreement.annotators.kappa import kappa_of_draws, pairs_of
from gradewire.agreement.bootstrap.ranked import RANK_DRAWS
from gradewire.agreement.estimates import Estimate, estimate
from gradewire.agreement.point_estimates import RIGHT_FROM
from gradewire.agreement.resample import draws, joined

LabelRule = Literal["mean", "majority", "lave"]
# More labels of one item are taken for a mistake in the file: the matrix has a column for each.
MAX_ANNOTATORS = 1000
# Pairs grow with the square: outputs for people name those with the most items only.
SHOWN_PAIRS = 6


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two annotators (columns) agree.

    Attributes:
        first: Number of the one column, from 1.
        second: Number of the other, above `first`.
        items: Items with a label of both.
        kappa: Cohen's kappa, -1 to 1; NaN where all their labels are alike.
    """

    first: int
    second: int
    items: int
    kappa: Estimate


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """How far annotators agree.

    Attributes:
        items: Items with at least two labels; the others say nothing about agreement.
        annotators: Largest number of labels of one item.
        alpha: Krippendorff's alpha by level of measurement, at most 1; NaN where all labels are alike.
        pairs: Each pair of columns with an item in common, those with the most items first; empty beyond `MAX_COLUMNS`
            columns. There is no mean: columns that were filled only where others differ would pull it down.
    """

    items: int
    annotators: int
    alpha: Mapping[AlphaLevel, Estimate]
    pairs: Sequence[PairAgreement]


def ratings_of(labels: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Lists of labels as a matrix.

    Args:
        labels: Labels of each item, the first of the first annotator and so on; NaN where one gave none.

    Returns:
        float64[items, annotators], NaN where an item has fewer labels.

    Raises:
        ValueError: An item has more than `MAX_ANNOTATORS` labels.
    """
    width = max(map(len, labels), default=0)
    if width > MAX_ANNOTATORS:
        raise ValueError(f"an item has {width} labels, more than {MAX_ANNOTATORS}")
    ratings = np.full((len(labels), width), np.nan)
    for item, given in enumerate(labels):
        ratings[item, : len(given)] = given
    return ratings


def consensus(ratings: NDArray[np.float64], rule: LabelRule) -> NDArray[np.float64]:
    """One label per item.

    Args:
        ratings: float64[items, annotators], NaN where there is no label.
        rule: "mean"; "majority", the most frequent label, the mean of those that are equally frequent; or "lave": 1
            where at least 4 of 5 annotators call the answer right (a label from 0.5 upward), 0.5 where 2 or 3 do, else
            0; with other numbers of annotators, shares of at least 4/5 and 2/5 (Manas et al. 2024, section 5.1).

    Returns:
        float64[items]; NaN where nobody labelled the item.

    Raises:
        ValueError: The rule is unknown, or is "lave" and a label lies outside [0, 1].
    """
    given = ~np.isnan(ratings)
    count = given.sum(axis=1)
    labelled = count > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        if rule == "mean":
            return np.asarray(np.where(given, ratings, 0.0).sum(axis=1) / np.where(labelled, count, np.nan))
        if rule == "majority":
            return _majority(ratings)
        if rule != "lave":
            raise ValueError(f"the rule {rule!r} is none of mean, majority, lave")
        if (ratings[given] < 0).any() or (ratings[given] > 1).any():
            raise ValueError("lave is a rule for labels from 0 to 1: use mean or majority")
        # Whole numbers on both sides: a share of 4/5 is not exact in binary.
        right = (given & (ratings >= RIGHT_FROM)).sum(axis=1)
        label = np.where(5 * right >= 4 * count, 1.0, np.where(5 * right >= 2 * count, 0.5, 0.0))
        return np.asarray(np.where(labelled, label, np.nan))


def _majority(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    items, width = ratings.shape
    if not ratings.size:
        return np.full(items, np.nan)
    # NaN sorts last and is equal to nothing, so it never makes a run.
    ordered = np.sort(ratings, axis=1)
    starts = np.ones(ordered.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    flat_starts = np.flatnonzero(starts.ravel())
    lengths = np.diff(flat_starts, append=items * width)
    values, item = ordered.ravel()[flat_starts], flat_starts // width
    lengths[np.isnan(values)] = 0
    longest = np.zeros(items, dtype=lengths.dtype)
    np.maximum.at(longest, item, lengths)
    best = (lengths == longest[item]) & (lengths > 0)
    total = np.bincount(item[best], weights=values[best], minlength=items)
    tied = np.bincount(item[best], minlength=items)
    return np.asarray(np.where(tied > 0, total / np.maximum(tied, 1), np.nan))


def annotator_agreement(
    ratings: NDArray[np.float64], *, resamples: int = RANK_DRAWS, seed: int = 0
) -> AnnotatorAgreement:
    """Krippendorff's alpha and Cohen's kappa with intervals over items.

    Args:
        ratings: float64[items, annotators], NaN where there is no label.
        resamples: Draws of items; more than `RANK_DRAWS` are not taken, because an ordinal alpha ranks each anew.
        seed: Same seed, same intervals.

    Returns:
        NaN where a figure is not defined: fewer than two labels of any item, or all labels alike. No intervals for
        fewer than `LEAST_QUESTIONS` items, of a pair for fewer in common.
    """
    usable = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    items = len(usable)
    found: dict[str, list[NDArray[np.float64]]] = {}
    kappas: list[list[NDArray[np.float64]]] = []
    whole = np.ones((1, items))
    point = alpha_of_draws(usable, whole)
    if items:
        for weights in draws(np.zeros(items, dtype=np.intp), resamples=min(resamples, RANK_DRAWS), seed=seed):
            for level, alphas in alpha_of_draws(usable, weights).items():
                found.setdefault(level, []).append(alphas)
            kappas.append(kappa_of_draws(usable, weights))
    return AnnotatorAgreement(
        items=items,
        annotators=int((~np.isnan(ratings)).sum(axis=1).max(initial=0)),
        alpha={
            level: estimate(float(point[level][0]), joined(found.get(level, [])), questions=items) for level in LEVELS
        },
        pairs=_pairs(usable, kappas),
    )


def _pairs(ratings: NDArray[np.float64], draws_of_pairs: list[list[NDArray[np.float64]]]) -> list[PairAgreement]:
    given = ~np.isnan(ratings)
    values = kappa_of_draws(ratings, np.ones((1, len(ratings))))
    found = []
    for number, (first, second) in enumerate(pairs_of(ratings)):
        items = int((given[:, first] & given[:, second]).sum())
        drawn = joined([part[number] for part in draws_of_pairs])
        if items:
            kappa = estimate(float(values[number][0]), drawn, questions=items)
            found.append(PairAgreement(first + 1, second + 1, items, kappa))
    return sorted(found, key=lambda pair: -pair.items)
