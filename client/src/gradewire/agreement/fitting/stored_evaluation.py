"""What a stored fit says of many rows: what a server computes of the form for one (docs/reference/correctness.md)."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.distance import distances, ramp
from gradewire.agreement.point_estimates import RIGHT_FROM

RULED_OUT: Final = 0.4
"""The highest probability of an answer that a rule of the metric calls wrong."""


def log_odds(form: Mapping[str, Any], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds by the trees of a form and by its linear part, before the map.

    Args:
        form: At least what `tree_form` gives; `linear` as in `linear_form`, where it has that.
        rows: float64[rows, features], columns as in the form, NaN where a feature does not apply.

    Returns:
        float64[rows].
    """
    trees, widths = form["trees"], [feature["width"] for feature in form["features"]]
    total = np.full(len(rows), float(form["base"]))
    # A child stands behind its parent, so one pass meets every node after the share that reaches it is known.
    reach: dict[int, NDArray[np.float64]] = {root: np.ones(len(rows)) for root in trees["roots"]}
    for node, feature in enumerate(trees["feature"]):
        here = reach.pop(node)
        if feature < 0:
            total += here * trees["value"][node]
            continue
        column = rows[:, feature]
        right = _share_right(column, trees["threshold"][node], widths[feature])
        right[np.isnan(column)] = 0.0 if trees["missing_left"][node] else 1.0
        reach[trees["left"][node]] = here * (1 - right)
        reach[trees["right"][node]] = here * right
    if linear := form.get("linear"):
        known = np.where(np.isnan(rows), linear["missing"], np.clip(rows, linear["low"], linear["high"]))
        total += known @ np.array(linear["weight"], dtype=np.float64)
    return total


def probabilities(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """P(right) as a server computes it of a whole form.

    Args:
        form: Of `fit_form`.
        rows: As of `log_odds`.
        shapes: float64[rows, numbers]; None: all rows are near, as they are for a form without a distance.

    Returns:
        float64[rows].
    """
    return ruled(_learnt(form, rows, shapes), rows[:, _rules(form)])


def ruled(found: NDArray[np.float64], rules: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows], probabilities of at most RULED_OUT where one of float64[rows, rules] is 1 or more."""
    return np.where((rules >= 1).any(axis=1), np.minimum(found, RULED_OUT), found)


def far_shares(form: Mapping[str, Any], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows], 0 (near) to 1 (far), of rows with these shapes."""
    distance = form.get("distance")
    if distance is None:
        return np.zeros(len(shapes))
    return ramp(distances(distance, shapes), distance["near"], distance["far"])


def _share_right(column: NDArray[np.float64], threshold: float, width: float) -> NDArray[np.float64]:
    if width <= 0:
        return (column > threshold).astype(np.float64)
    with np.errstate(over="ignore"):
        return ((column - threshold) / width + 0.5).clip(0.0, 1.0)


def overruled(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    """bool[rows], which answers a rule calls wrong that the rest calls right; arguments as of `probabilities`."""
    ruled_out = (rows[:, _rules(form)] >= 1).any(axis=1)
    return np.asarray(ruled_out & (_learnt(form, rows, shapes) >= RIGHT_FROM), dtype=np.bool_)


def _rules(form: Mapping[str, Any]) -> NDArray[np.bool_]:
    return np.array([feature.get("rules_out", False) for feature in form["features"]], dtype=np.bool_)


def _learnt(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    found = log_odds(form, rows)
    near, far = (
        np.interp(found, regime["map"]["log_odds"], regime["map"]["probability"])
        for regime in (form, form.get("far", form))
    )
    share = far_shares(form, shapes) if shapes is not None else np.zeros(len(rows))
    return np.asarray((1 - share) * near + share * far, dtype=np.float64)
