"""Convert fitted trees and held-out rows to the JSON form that stores a fit of the metric `correctness`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil, floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.calibration.labelled_rows import FittedFeature

FORMAT: Final = 1
_ROUNDING: Final = 1e-9
_ALWAYS_LEFT: Final = float(np.finfo(np.float64).max)
_MAX_RANKS: Final = 512
_FIRST_RANKS: Final = 128
_DIGITS: Final = 1e6

KEPT_ROWS: Final = 384
"""Maximum number of rows that a fit keeps. The rows are a sample with an equal share from each source."""
NEAREST: Final = 4
_LEAST_SPREAD: Final = 0.25
_DISTANCE_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Points:
    """A map from log-odds to probability, linear between its points and constant outside.

    Attributes:
        log_odds: float64[points], strictly ascending.
        probability: float64[points], 0 to 1, nondecreasing.
    """

    log_odds: NDArray[np.float64]
    probability: NDArray[np.float64]

    def __call__(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map log-odds, float64[rows], to probabilities."""
        return np.interp(log_odds, self.log_odds, self.probability)


@dataclass(frozen=True, slots=True)
class DistanceBand:
    """Evidence about items near the fitted rows, or about items far from the fitted rows.

    Attributes:
        probabilities: float64[rows], mapped probabilities, each from a model that has not seen the row.
        right: bool[rows], human labels, with both classes.
        weights: float64[rows], 0 or more.
    """

    points: Points
    probabilities: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64]


def tree_form(models: Sequence[Any], features: Sequence[FittedFeature], *, weight: float = 1.0) -> dict[str, Any]:
    """Return the trees of fitted models, whose log-odds are averaged.

    Args:
        models: Instances of scikit-learn's HistGradientBoostingClassifier, for two classes and without categorical
            features.
        features: The models' columns.
        weight: Factor for the average.

    Returns:
        The form's keys `features`, `base` and `trees`, which `log_odds` needs.

    Raises:
        ValueError: A model has categorical features, does not have two classes, or has more or fewer columns than
            `features`.
    """
    share = weight / len(models)
    base = 0.0
    trees: dict[str, list[Any]] = {
        name: [] for name in ("roots", "feature", "threshold", "missing_left", "left", "right", "value")
    }
    for model in models:
        if len(model.classes_) != 2 or model.n_features_in_ != len(features):
            raise ValueError(f"a model must have two classes and {len(features)} columns")
        # scikit-learn has no public way to read the trees. Tests compare our log-odds with scikit-learn's predictions.
        base += share * float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001 - see above
        for (predictor,) in model._predictors:  # noqa: SLF001 - see above
            _append(trees, predictor.nodes, share)
    return {
        "features": [
            {"name": feature.name, "monotone": feature.monotone, "width": feature.width}
            | {name: True for name in ("rules_out", "doubts") if getattr(feature, name)}
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
    distance: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a complete fit, ready to be stored as JSON.

    Args:
        model: Result of `tree_form`, with or without `linear`.
        near: Evidence about items near the fitted rows.
        provenance: `metric_version`, `model`, `model_digest`, and anything else that identifies the fit.
        far: Evidence about items far from the fitted rows. None means that far items get the probability of near items,
            and that verdicts on far items are never certain.
        distance: How to measure an item's distance from the fitted rows: `shape` (names of the numbers that describe
            the type of item), the result of `neighbourhood`, and the distances at which `near` ends and `far` starts.
            None means that all items are near.

    Raises:
        ValueError: The held-out rows are all right or all wrong.
    """
    form = {"format": FORMAT, **provenance, **model, **distance_band_form(near)}
    if distance is not None:
        form["distance"] = dict(distance)
        if far is not None:
            form["far"] = distance_band_form(far)
    return form


def distance_band_form(held: DistanceBand) -> dict[str, Any]:
    """Return the map and the conformal ranks of near items or of far items, ready to be stored as JSON.

    Raises:
        ValueError: The held-out rows are all right or all wrong.
    """
    if held.right.all() or not held.right.any():
        raise ValueError("all held-out rows have the same label, but a fit needs right and wrong answers")
    mistaken = (held.probabilities >= RIGHT_FROM) != held.right
    certainty = np.maximum(held.probabilities, 1 - held.probabilities)
    conformal = {
        # Round in the direction that makes fewer verdicts certain.
        "right": _ranks(held.probabilities[held.right], held.weights[held.right], down=True),
        "wrong": _ranks(held.probabilities[~held.right], held.weights[~held.right], down=False),
    }
    if mistaken.any():
        conformal["mistaken"] = _ranks(certainty[mistaken], held.weights[mistaken], down=False, whole=True)
    return {
        "map": {"log_odds": held.points.log_odds.tolist(), "probability": held.points.probability.tolist()},
        "conformal": conformal,
    }


def _append(trees: dict[str, list[Any]], nodes: NDArray[Any], share: float) -> None:
    """Add a tree's nodes, each child after its parent."""
    if nodes["is_categorical"].any():
        raise ValueError("a model has categorical features, which the form does not support")
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
        threshold = min(float(node["num_threshold"]), _ALWAYS_LEFT)  # infinity separates only missing values
        trees["feature"].append(-1 if leaf else int(node["feature_idx"]))
        trees["threshold"].append(0.0 if leaf else threshold)
        trees["missing_left"].append(bool(node["missing_go_to_left"]) and not leaf)
        trees["left"].append(-1 if leaf else place[int(node["left"])])
        trees["right"].append(-1 if leaf else place[int(node["right"])])
        trees["value"].append(_short(share * float(node["value"])) if leaf else 0.0)


def _short(value: float) -> float:
    # Rounding halves the file's size. It keeps the order of values, so the model stays monotone.
    return float(f"{value:.9g}")


def _ranks(
    values: NDArray[np.float64], weights: NDArray[np.float64], *, down: bool, whole: bool = False
) -> dict[str, Any]:
    """Return order statistics of weighted rows.

    With `down`, start at the lowest value and round values down. Otherwise, start at the highest value and round values
    up. The count is the effective number of rows. With `whole`, ranks end at the last row. Without `whole`, ranks end
    at the middle, because confidences start at one half.
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
    """Return each column's standard deviation, at least 0.25, float64[numbers]. `shapes` is float64[rows, numbers]."""
    found: NDArray[np.float64] = np.maximum(shapes.std(axis=0), _LEAST_SPREAD).round(_DISTANCE_DIGITS)
    return found


def neighbourhood(
    shapes: NDArray[np.float64], scale: NDArray[np.float64], keys: Sequence[str], sources: Sequence[str]
) -> dict[str, Any]:
    """Choose the rows that a fit keeps. A new item's distance is measured from these rows.

    Args:
        shapes: float64[rows, numbers], finite.
        scale: float64[numbers], from `scales`: the unit for each number.
        keys: Each row's question key.
        sources: Each row's source. Each source adds the same number of rows, or all of its rows if there are fewer.

    Returns:
        `scale`, the kept `rows` in these units, and `nearest`, the number of nearest rows that a distance averages.
    """
    order = sorted(range(len(keys)), key=lambda row: (blake2b(f"{keys[row]}\0{row}".encode()).digest(), row))
    named = sorted(set(sources))
    each = max(1, KEPT_ROWS // len(named))
    drawn = [row for source in named for row in [row for row in order if sources[row] == source][:each]]
    rows = (shapes[drawn] / scale).round(_DISTANCE_DIGITS)
    return {"scale": scale.tolist(), "rows": rows.tolist(), "nearest": min(NEAREST, len(drawn))}
