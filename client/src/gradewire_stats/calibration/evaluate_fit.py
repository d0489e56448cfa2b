"""Evaluate a stored fit of the metric `correctness` on many rows at once."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM

_AT_ONCE: Final = 2048

# gradewire_server.metrics.correctness, which evaluates fits in the server, repeats these three constants.
RULED_OUT: Final = 0.4
"""Maximum probability of an answer that one of the metric's rules calls wrong."""

MISTAKEN_FROM: Final = 0.5
MISTAKEN_SLOPE: Final = 1.25
"""The band at confidence c contains at least 1.25 (c - 0.5) of all wrong verdicts: half of them at c = 0.9."""
_ROUNDING_ERROR: Final = 1e-9


def log_odds(form: Mapping[str, Any], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log-odds from a form's trees and linear part, before the map to probabilities.

    Args:
        form: Result of `serialise_fit.tree_form`, optionally with `linear` from `fit_correctness.linear_form`.
        rows: float64[rows, features] with the form's features in order, NaN if a feature does not apply.

    Returns:
        float64[rows].
    """
    trees, widths = form["trees"], [feature["width"] for feature in form["features"]]
    total = np.full(len(rows), float(form["base"]))
    # Parents come before their children, so one pass is enough.
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


def _share_right(column: NDArray[np.float64], threshold: float, width: float) -> NDArray[np.float64]:
    if width <= 0:
        return (column > threshold).astype(np.float64)
    with np.errstate(over="ignore"):
        return ((column - threshold) / width + 0.5).clip(0.0, 1.0)


def probabilities(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return P(right) from a complete form, computed in the same way as in the server.

    Args:
        form: Result of `serialise_fit.fit_form`.
        rows: See `log_odds`.
        shapes: float64[rows, numbers]. None means that all rows are near the fitted rows, as in a form
            without a distance.

    Returns:
        float64[rows].
    """
    return ruled(_learnt(form, rows, shapes), rows[:, _flagged(form, "rules_out")])


def ruled(found: NDArray[np.float64], rules: NDArray[np.float64]) -> NDArray[np.float64]:
    """Limit a row's probability to RULED_OUT if any rule has a value of 1 or more in this row.

    `found` contains the probabilities, float64[rows]; `rules` is float64[rows, rules].
    """
    return np.where((rules >= 1).any(axis=1), np.minimum(found, RULED_OUT), found)


def _flagged(form: Mapping[str, Any], name: str) -> NDArray[np.bool_]:
    return np.array([feature.get(name, False) for feature in form["features"]], dtype=np.bool_)


def mapped(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the probability from the near map, the probability from the far map, and the far map's weight.

    All three are float64[rows]; see `probabilities` for the arguments.
    """
    found = log_odds(form, rows)
    near, far = (
        np.interp(found, band["map"]["log_odds"], band["map"]["probability"]) for band in (form, form.get("far", form))
    )
    return near, far, far_shares(form, shapes) if shapes is not None else np.zeros(len(rows))


def _learnt(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    near, far, share = mapped(form, rows, shapes)
    return np.asarray((1 - share) * near + share * far, dtype=np.float64)


def overruled(
    form: Mapping[str, Any], rows: NDArray[np.float64], shapes: NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    """Return bool[rows], True if the model calls the answer right, but a rule calls the answer wrong."""
    ruled_out = (rows[:, _flagged(form, "rules_out")] >= 1).any(axis=1)
    return np.asarray(ruled_out & (_learnt(form, rows, shapes) >= RIGHT_FROM), dtype=np.bool_)


def doubted(
    form: Mapping[str, Any], rows: NDArray[np.float64], probabilities: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return bool[rows], True if `probabilities` call an answer right that may only mention a reference."""
    return np.asarray(doubtful(form, rows) & (probabilities >= RIGHT_FROM), dtype=np.bool_)


def doubtful(form: Mapping[str, Any], rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return bool[rows], True if the verdict "right" would be uncertain, whatever its probability."""
    return np.asarray((rows[:, _flagged(form, "doubts")] >= 1).any(axis=1), dtype=np.bool_)


def without_doubted(probabilities: NDArray[np.float64], doubts: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return a band's evidence: `probabilities`, but 0.5 for doubted verdicts, which are uncertain without the band."""
    return np.where(doubts & (probabilities >= RIGHT_FROM), RIGHT_FROM, probabilities)


def far_shares(form: Mapping[str, Any], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64[rows]: 0 for rows that are near the fitted rows, 1 for far rows, and linear in between."""
    distance = form.get("distance")
    if distance is None:
        return np.zeros(len(shapes))
    return ramp(distances(distance, shapes), distance["near"], distance["far"])


def distances(stored: Mapping[str, Any], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64[rows], the distances of `shapes` from the rows that `serialise_fit.neighbourhood` kept.

    `stored` is the entry "distance" of the fit's form, and `shapes` is float64[rows, numbers].
    """
    scaled, rows = shapes / np.array(stored["scale"]), np.array(stored["rows"])
    nearest = min(int(stored["nearest"]), len(rows))
    found = [np.empty(0)]
    for start in range(0, len(scaled), _AT_ONCE):
        mine = scaled[start : start + _AT_ONCE]
        # Compute |a - b|² as a² + b² - 2ab with matrices, which is ten times as fast as all pairs of differences.
        squares = (mine**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * mine @ rows.T
        closest = np.partition(squares, nearest - 1, axis=1)[:, :nearest]
        found.append(np.sqrt(np.maximum(closest, 0.0)).mean(axis=1))
    return np.concatenate(found)


def ramp(found: NDArray[np.float64], near: float, far: float) -> NDArray[np.float64]:
    """Return float64[rows]: 0 up to the distance `near`, 1 from the larger distance `far` on, and linear in between."""
    return ((found - near) / (far - near)).clip(0.0, 1.0)


def uncertain(
    form: Mapping[str, Any], probabilities: NDArray[np.float64], confidence: float, shapes: NDArray[np.float64] | None
) -> NDArray[np.bool_]:
    """Return which verdicts are in the band of uncertain probabilities.

    Args:
        form: Result of `serialise_fit.fit_form`.
        probabilities: float64[rows], from `probabilities`.
        confidence: From 0.5 to below 1.
        shapes: float64[rows, numbers]. None means that all rows are near the fitted rows.

    Returns:
        bool[rows].
    """
    near = _band(form["conformal"], confidence)
    far = _band(form["far"]["conformal"], confidence) if "far" in form else (0.0, 1.0)
    share = far_shares(form, shapes) if shapes is not None else np.zeros(len(probabilities))
    lower = near[0] - share * (near[0] - min(near[0], far[0]))
    upper = near[1] + share * (max(near[1], far[1]) - near[1])
    return (probabilities >= lower) & (probabilities <= upper)


def _band(conformal: Mapping[str, Any], confidence: float) -> tuple[float, float]:
    lower = _value(conformal["right"], 1 - confidence, 0.0)
    upper = _value(conformal["wrong"], 1 - confidence, 1.0)
    held = MISTAKEN_SLOPE * (confidence - MISTAKEN_FROM)
    edge = _value(conformal["mistaken"], 1 - held, 1.0) if held > 0 and "mistaken" in conformal else RIGHT_FROM
    return min(lower, 1 - edge, RIGHT_FROM), max(upper, edge, RIGHT_FROM)


def _value(ranks: Mapping[str, Any], beyond: float, none: float) -> float:
    """Return the quantile beyond which at most the share `beyond` of rows lies; `none` if there are too few rows."""
    most = int(beyond * (ranks["count"] + 1) + _ROUNDING_ERROR)
    row = int(np.searchsorted(ranks["ranks"], most, side="right")) - 1
    return float(ranks["values"][row]) if row >= 0 else none
