"""The stored form of a fit of metric `correctness`: written from fitted trees, and evaluated for many rows at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil, floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.point_estimates import RIGHT_FROM

FORMAT: Final = 1
_ROUNDING: Final = 1e-9
_ALWAYS_LEFT: Final = float(np.finfo(np.float64).max)
_MAX_RANKS: Final = 512
_FIRST_RANKS: Final = 128
_DIGITS: Final = 1e6

KEPT_ROWS: Final = 384
"""Rows that stand for all of them in a fit, the same number of each source."""
NEAREST: Final = 4
_LEAST_SPREAD: Final = 0.25
_AT_ONCE: Final = 2048
_DISTANCE_DIGITS: Final = 4

RULED_OUT: Final = 0.4
"""The highest probability of an answer that a rule of the metric calls wrong."""

MISTAKEN_FROM: Final = 0.5
MISTAKEN_SLOPE: Final = 1.25
"""At confidence c the rows in the band hold (c - 1/2) 5/4 of the wrong verdicts and more: half of them at 0.9."""
_ROUNDING_ERROR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class FittedFeature:
    """A column of what was fitted.

    Attributes:
        name: As in the metric.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at its splits, in its own unit; 0: hard splits.
        rules_out: Whether from 1 on a rule calls the answer wrong.
    """

    name: str
    monotone: int
    width: float
    rules_out: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A map from log-odds to probability, linear between its points and constant outside.

    Attributes:
        log_odds: float64[points], strictly ascending.
        probability: float64[points], 0 to 1, never falling.
    """

    log_odds: NDArray[np.float64]
    probability: NDArray[np.float64]

    def __call__(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities of float64[rows]."""
        return np.interp(log_odds, self.log_odds, self.probability)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Probabilities, after the map, of rows that what gave them has not seen.

    Attributes:
        probabilities: float64[rows].
        right: bool[rows], whether people call the answer right; both kinds.
        weights: float64[rows], 0 or more.
    """

    probabilities: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DistanceBand:
    """What log-odds mean for items of one kind: near to the fitted rows, or far from them.

    Attributes:
        points: From log-odds to probability.
        held_out: What the band rests on.
    """

    points: Points
    held_out: HeldOut


@dataclass(frozen=True, slots=True)
class Distance:
    """How far an item is from the fitted rows.

    Attributes:
        shape: Names of the numbers that say what kind of item it is.
        stored: As `neighbourhood` gives it.
        near: Distance up to which an item is near.
        far: Distance from which it is far; between the two it is both, in shares.
    """

    shape: Sequence[str]
    stored: Mapping[str, Any]
    near: float
    far: float


def tree_form(models: Sequence[Any], features: Sequence[FittedFeature], *, weight: float = 1.0) -> dict[str, Any]:
    """The trees of fitted models, whose log-odds are averaged.

    Args:
        models: HistGradientBoostingClassifier of scikit-learn, for two classes, without categorical features.
        features: Their columns.
        weight: What the average is multiplied by.

    Returns:
        The keys `features`, `base` and `trees` of the form: enough for `log_odds`.

    Raises:
        ValueError: A model has more than two classes, categorical features, or other columns.
    """
    share = weight / len(models)
    base = 0.0
    trees: dict[str, list[Any]] = {
        name: [] for name in ("roots", "feature", "threshold", "missing_left", "left", "right", "value")
    }
    for model in models:
        if len(model.classes_) != 2 or model.n_features_in_ != len(features):
            raise ValueError(f"a model must have two classes and {len(features)} columns")
        # scikit-learn has no public way to read the trees; tests compare what is read with its own predictions.
        base += share * float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001 - see above
        for (predictor,) in model._predictors:  # noqa: SLF001 - see above
            _append(trees, predictor.nodes, share)
    return {
        "features": [
            {"name": feature.name, "monotone": feature.monotone, "width": feature.width}
            | ({"rules_out": True} if feature.rules_out else {})
            for feature in features
        ],
        "base": base,
        "trees": trees,
    }


def fit_form(
    model: Mapping[str, Any],
    near: DistanceBand,
    provenance: Mapping[str, Any],
    *,
    far: DistanceBand | None = None,
    distance: Distance | None = None,
) -> dict[str, Any]:
    """A whole fit, ready to be stored as JSON.

    Args:
        model: Of `tree_form`, with or without `linear`.
        near: For items near the fitted rows.
        provenance: `metric_version`, `model`, `model_digest`, and whatever else tells where the fit comes from.
        far: For items far from them; None: there the probability is as near them, and no verdict is trusted.
        distance: None: all items are near.

    Raises:
        ValueError: No right or no wrong row was held out.
    """
    form = {"format": FORMAT, **provenance, **model, **_distance_band(near)}
    if distance is not None:
        form["distance"] = {
            "shape": list(distance.shape),
            **distance.stored,
            "near": distance.near,
            "far": distance.far,
        }
        if far is not None:
            form["far"] = _distance_band(far)
    return form


def _distance_band(regime: DistanceBand) -> dict[str, Any]:
    points, held = regime.points, regime.held_out
    if held.right.all() or not held.right.any():
        raise ValueError("the rows are of one class only: a fit needs right answers and wrong ones")
    mistaken = (held.probabilities >= RIGHT_FROM) != held.right
    certainty = np.maximum(held.probabilities, 1 - held.probabilities)
    conformal = {
        # Rounded to the side on which fewer verdicts are trusted.
        "right": _ranks(held.probabilities[held.right], held.weights[held.right], down=True),
        "wrong": _ranks(held.probabilities[~held.right], held.weights[~held.right], down=False),
    }
    if mistaken.any():
        conformal["mistaken"] = _ranks(certainty[mistaken], held.weights[mistaken], down=False, whole=True)
    return {
        "map": {"log_odds": points.log_odds.tolist(), "probability": points.probability.tolist()},
        "conformal": conformal,
    }


def _append(trees: dict[str, list[Any]], nodes: NDArray[Any], share: float) -> None:
    """Adds the nodes of one tree, a child always behind its parent."""
    if nodes["is_categorical"].any():
        raise ValueError("a model has categorical features, which the form does not have")
    order, found = [0], 0
    while found < len(order):
        node = nodes[order[found]]
        if not node["is_leaf"]:
            order += [int(node["left"]), int(node["right"])]
        found += 1
    start = len(trees["feature"])
    place = {node: start + position for position, node in enumerate(order)}
    trees["roots"].append(start)
    for node in (nodes[position] for position in order):
        leaf = bool(node["is_leaf"])
        threshold = min(float(node["num_threshold"]), _ALWAYS_LEFT)  # infinity asks only whether the feature is there
        trees["feature"].append(-1 if leaf else int(node["feature_idx"]))
        trees["threshold"].append(0.0 if leaf else threshold)
        trees["missing_left"].append(bool(node["missing_go_to_left"]) and not leaf)
        trees["left"].append(-1 if leaf else place[int(node["left"])])
        trees["right"].append(-1 if leaf else place[int(node["right"])])
        trees["value"].append(_short(share * float(node["value"])) if leaf else 0.0)


def _short(value: float) -> float:
    # Half the size of the file; the order of values is kept, so nothing that was monotone ceases to be.
    return float(f"{value:.9g}")


def _ranks(
    values: NDArray[np.float64], weights: NDArray[np.float64], *, down: bool, whole: bool = False
) -> dict[str, Any]:
    """Order statistics of weighted rows, from the lowest up (`down`) or from the highest down, as of fewer equal ones.

    The first are kept one by one, then fewer of them, up to the middle, since confidences begin at one half; or all
    through (`whole`).
    """
    count = max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))
    last = count if whole else count // 2 + 1
    spread = np.unique(np.linspace(_FIRST_RANKS, last, _MAX_RANKS - _FIRST_RANKS).round().astype(int))
    ranks = [
        *range(1, min(_FIRST_RANKS, last + 1)),
        *(rank for rank in spread.tolist() if _FIRST_RANKS <= rank <= last),
    ]
    order = np.argsort(values if down else -values, kind="stable")
    passed = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(passed, np.array(ranks) / count - _ROUNDING).clip(0, len(values) - 1)
    edge = floor if down else ceil
    rounded = [min(1.0, max(0.0, edge(value * _DIGITS) / _DIGITS)) for value in values[order][places].tolist()]
    return {"count": count, "ranks": ranks, "values": rounded}


def scales(shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[numbers], how far each of float64[rows, numbers] spreads; not below 0.25."""
    found: NDArray[np.float64] = np.maximum(shapes.std(axis=0), _LEAST_SPREAD).round(_DISTANCE_DIGITS)
    return found


def neighbourhood(
    shapes: NDArray[np.float64], scale: NDArray[np.float64], keys: Sequence[str], sources: Sequence[str]
) -> dict[str, Any]:
    """What of the rows a fit keeps to tell how unlike another item is.

    Args:
        shapes: float64[rows, numbers], finite.
        scale: float64[numbers], of `scales`: the units of distances.
        keys: Of the rows' questions: rows are drawn in the order of their hashes.
        sources: Of the rows; of each the same number is drawn, as far as it has them.

    Returns:
        `scale`, one for each number, `rows`, in units of it, and `nearest`.
    """
    order = sorted(range(len(keys)), key=lambda row: (blake2b(f"{keys[row]}\0{row}".encode()).digest(), row))
    named = sorted(set(sources))
    each = max(1, KEPT_ROWS // len(named))
    drawn = [row for source in named for row in [row for row in order if sources[row] == source][:each]]
    rows = (shapes[drawn] / scale).round(_DISTANCE_DIGITS)
    return {"scale": scale.tolist(), "rows": rows.tolist(), "nearest": min(NEAREST, len(drawn))}


def distances(stored: Mapping[str, Any], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows], how far float64[rows, numbers] are from what `neighbourhood` kept."""
    scaled, rows = shapes / np.array(stored["scale"]), np.array(stored["rows"])
    nearest = min(int(stored["nearest"]), len(rows))
    found = [np.empty(0)]
    for start in range(0, len(scaled), _AT_ONCE):
        mine = scaled[start : start + _AT_ONCE]
        # |a - b|^2 = a^2 + b^2 - 2ab, as matrices: differences of all pairs would take ten times as long.
        squares = (mine**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * mine @ rows.T
        closest = np.partition(squares, nearest - 1, axis=1)[:, :nearest]
        found.append(np.sqrt(np.maximum(closest, 0.0)).mean(axis=1))
    return np.concatenate(found)


def ramp(found: NDArray[np.float64], near: float, far: float) -> NDArray[np.float64]:
    """float64[rows], 0 up to the distance `near`, 1 from the larger one `far`, a straight line between them."""
    return ((found - near) / (far - near)).clip(0.0, 1.0)


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


def uncertain(
    form: Mapping[str, Any], probabilities: NDArray[np.float64], confidence: float, shapes: NDArray[np.float64] | None
) -> NDArray[np.bool_]:
    """Which verdicts lie in the band.

    Args:
        form: Of `fit_form`.
        probabilities: float64[rows], of `probabilities`.
        confidence: From 0.5 to below 1.
        shapes: float64[rows, numbers]; None: all rows are near.

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
    """The value that at most the share `beyond` of its rows lies beyond; `none` where they are too few to say."""
    most = int(beyond * (ranks["count"] + 1) + _ROUNDING_ERROR)
    row = int(np.searchsorted(ranks["ranks"], most, side="right")) - 1
    return float(ranks["values"][row]) if row >= 0 else none
