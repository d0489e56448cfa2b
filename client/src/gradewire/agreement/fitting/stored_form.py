"""The stored form of a fit of metric `calibrated`: written from fitted trees, and evaluated for many rows.

The form is described in docs/reference/calibrated.md. What a fitter measures (held-out probabilities, map, band) it
must measure with `log_odds`, since that is what a server computes of the form: splits are ramps there, not steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FORMAT: Final = 1
_ALWAYS_LEFT: Final = float(np.finfo(np.float64).max)
_MAX_RANKS: Final = 512
_FIRST_RANKS: Final = 128
_DIGITS: Final = 1e6


@dataclass(frozen=True, slots=True)
class FittedFeature:
    """A column of what was fitted.

    Attributes:
        name: As in the metric.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at its splits, in its own unit; 0: hard splits.
    """

    name: str
    monotone: int
    width: float


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
    """Probabilities, after the map, of rows that the trees which gave them have not seen.

    Attributes:
        right: float64[rows], of answers that people call right.
        wrong: float64[rows], of the others.
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def tree_form(models: Sequence[Any], features: Sequence[FittedFeature]) -> dict[str, Any]:
    """The trees of fitted models, whose log-odds are averaged.

    Args:
        models: HistGradientBoostingClassifier of scikit-learn, for two classes, without categorical features.
        features: Their columns.

    Returns:
        The keys `features`, `base` and `trees` of the form: enough for `log_odds`.

    Raises:
        ValueError: A model has more than two classes, categorical features, or other columns.
    """
    share = 1 / len(models)
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
            {"name": feature.name, "monotone": feature.monotone, "width": feature.width} for feature in features
        ],
        "base": base,
        "trees": trees,
    }


def log_odds(form: Mapping[str, Any], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds by the trees of a form, before the map.

    Args:
        form: At least what `tree_form` gives.
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
    return total


def fit_form(
    trees: Mapping[str, Any], points: Points, held_out: HeldOut, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """A whole fit, ready to be stored as JSON.

    Args:
        trees: Of `tree_form`.
        points: The map.
        held_out: For the band.
        provenance: `metric_version`, `model`, `model_digest`, and whatever else tells where the fit comes from.

    Raises:
        ValueError: No right or no wrong row was held out.
    """
    if not (len(held_out.right) and len(held_out.wrong)):
        raise ValueError("the rows are of one class only: a fit needs right answers and wrong ones")
    return {
        "format": FORMAT,
        **provenance,
        **trees,
        "map": {"log_odds": points.log_odds.tolist(), "probability": points.probability.tolist()},
        # Rounded to the side on which fewer verdicts are trusted.
        "conformal": {
            "right": _ranks(np.sort(held_out.right), down=True),
            "wrong": _ranks(np.sort(held_out.wrong)[::-1], down=False),
        },
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


def _share_right(column: NDArray[np.float64], threshold: float, width: float) -> NDArray[np.float64]:
    if width <= 0:
        return (column > threshold).astype(np.float64)
    with np.errstate(over="ignore"):
        return ((column - threshold) / width + 0.5).clip(0.0, 1.0)


def _ranks(values: NDArray[np.float64], *, down: bool) -> dict[str, Any]:
    """The first order statistics one by one, then fewer of them, up to the middle: confidences begin at one half."""
    last = len(values) // 2 + 1
    kept = np.unique(np.linspace(_FIRST_RANKS, last, _MAX_RANKS - _FIRST_RANKS).round().astype(int))
    ranks = [*range(1, min(_FIRST_RANKS, last + 1)), *(rank for rank in kept.tolist() if _FIRST_RANKS <= rank <= last)]
    edge = floor if down else ceil
    rounded = [min(1.0, max(0.0, edge(float(values[rank - 1]) * _DIGITS) / _DIGITS)) for rank in ranks]
    return {"count": len(values), "ranks": ranks, "values": rounded}
