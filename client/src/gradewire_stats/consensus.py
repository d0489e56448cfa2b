"""Combine several annotators' labels by mean, by majority, or by LAVE's rule."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM

LabelRule = Literal["mean", "majority", "lave"]
# Maximum number of labels for an item. More labels mean a mistake in the file, and would make the matrix huge.
MAX_ANNOTATORS = 1000


def ratings_of(labels: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Convert lists of labels to a matrix.

    Args:
        labels: Each item's labels by annotator, NaN for a missing label.

    Returns:
        float64[items, annotators], filled up with NaN for items with fewer labels than annotators.

    Raises:
        ValueError: An item has more than `MAX_ANNOTATORS` labels.
    """
    width = max(map(len, labels), default=0)
    if width > MAX_ANNOTATORS:
        raise ValueError(f"an item has {width} labels, but the maximum is {MAX_ANNOTATORS}. Check the column of labels")
    ratings = np.full((len(labels), width), np.nan)
    for item, given in enumerate(labels):
        ratings[item, : len(given)] = given
    return ratings


def consensus(ratings: NDArray[np.float64], rule: LabelRule) -> NDArray[np.float64]:
    """Return one label per item.

    Args:
        ratings: float64[items, annotators], NaN for a missing label.
        rule: "mean" averages the labels. "majority" chooses the most frequent label, or the mean of equally frequent
            labels. "lave" gives 1 if at least 4/5 of the annotators call the answer right (a label of 0.5 or more), 0.5
            if at least 2/5 do, and 0 otherwise (Manas et al. 2024, section 5.1, for five annotators).

    Returns:
        float64[items], NaN for an item without labels.

    Raises:
        ValueError: The rule is unknown, or the rule is "lave" and a label lies outside [0, 1].
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
            raise ValueError(f"unknown rule {rule!r}. Use mean, majority or lave")
        if (ratings[given] < 0).any() or (ratings[given] > 1).any():
            raise ValueError("the rule lave needs labels from 0 to 1. Use mean or majority")
        # Compare whole numbers, because 4/5 is not exact in binary.
        right = (given & (ratings >= RIGHT_FROM)).sum(axis=1)
        label = np.where(5 * right >= 4 * count, 1.0, np.where(5 * right >= 2 * count, 0.5, 0.0))
        return np.asarray(np.where(labelled, label, np.nan))


def _majority(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    items, width = ratings.shape
    if not ratings.size:
        return np.full(items, np.nan)
    # NaN sorts last and never equals another NaN, so NaN values never form a run.
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
