"""Combine the labels of several annotators: by their mean, their majority, or the rule of LAVE."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM

LabelRule = Literal["mean", "majority", "lave"]
# More labels of one item are a mistake in the file; the matrix has a column for each.
MAX_ANNOTATORS = 1000


def ratings_of(labels: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Return lists of labels as a matrix.

    Args:
        labels: Labels of each item by annotator; NaN if an annotator gave none.

    Returns:
        float64[items, annotators], NaN if an item has fewer labels.

    Raises:
        ValueError: An item has more than `MAX_ANNOTATORS` labels.
    """
    width = max(map(len, labels), default=0)
    if width > MAX_ANNOTATORS:
        raise ValueError(f"an item has {width} labels, at most {MAX_ANNOTATORS} are possible: check the column")
    ratings = np.full((len(labels), width), np.nan)
    for item, given in enumerate(labels):
        ratings[item, : len(given)] = given
    return ratings


def consensus(ratings: NDArray[np.float64], rule: LabelRule) -> NDArray[np.float64]:
    """Return one label per item.

    Args:
        ratings: float64[items, annotators], NaN without a label.
        rule: "mean"; "majority", the most frequent label, or the mean of equally frequent ones; or "lave": 1 if at
            least 4 of 5 annotators call the answer right (a label of 0.5 or more), 0.5 if 2 or 3 do, else 0; for other
            numbers of annotators, shares of at least 4/5 and 2/5 (Manas et al. 2024, section 5.1).

    Returns:
        float64[items]; NaN for an item without labels.

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
            raise ValueError(f"unknown rule {rule!r}: use mean, majority or lave")
        if (ratings[given] < 0).any() or (ratings[given] > 1).any():
            raise ValueError("the rule lave needs labels from 0 to 1: use mean or majority")
        # Compare whole numbers: a share of 4/5 is not exact in binary.
        right = (given & (ratings >= RIGHT_FROM)).sum(axis=1)
        label = np.where(5 * right >= 4 * count, 1.0, np.where(5 * right >= 2 * count, 0.5, 0.0))
        return np.asarray(np.where(labelled, label, np.nan))


def _majority(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    items, width = ratings.shape
    if not ratings.size:
        return np.full(items, np.nan)
    # NaN sorts last and equals nothing, so it never forms a run.
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
