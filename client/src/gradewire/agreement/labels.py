"""Labels of several annotators: one label out of many, and how far the annotators agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.estimates import Estimate

LabelRule = Literal["mean", "majority", "lave"]
AlphaLevel = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """How far annotators agree.

    Attributes:
        items: Items with at least two labels; the others say nothing about agreement.
        annotators: Largest number of labels of one item.
        alpha: Krippendorff's alpha by level of measurement, -1 to 1.
        kappa: Cohen's kappa, mean over the pairs of annotators (columns) in which it is defined.
        pairs: Number of these pairs.
    """

    items: int
    annotators: int
    alpha: Mapping[AlphaLevel, Estimate]
    kappa: Estimate
    pairs: int


def ratings_of(labels: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Lists of labels as a matrix.

    Args:
        labels: Labels of each item, the first of the first annotator and so on; NaN where one gave none.

    Returns:
        float64[items, annotators], NaN where an item has fewer labels.
    """
    width = max(map(len, labels), default=0)
    ratings = np.full((len(labels), width), np.nan)
    for item, given in enumerate(labels):
        ratings[item, : len(given)] = given
    return ratings
