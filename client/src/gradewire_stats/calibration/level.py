"""Fit the level of a stored `correctness` fit to a few labelled rows: an offset and a slope of its log-odds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.calibration.evaluate_fit import doubtful, mapped, ruled, without_doubted
from gradewire_stats.calibration.labelled_rows import folds_of_keys
from gradewire_stats.calibration.serialise_fit import DistanceBand, Points, distance_band_form

LEAST_ROWS: Final = 20
LEVEL_FOLDS: Final = 10

# Chosen on draws of 50 rows from three sources (docs/research/correctness.md#rows-of-other-sources).
_OFFSET_SPREAD: Final = 0.5
"""Standard deviation of the prior for the offset, a normal distribution around 0."""
_SLOPE_SPREAD: Final = 0.4
"""Standard deviation of the prior for the slope's logarithm, a normal distribution around 0."""

_LEAST_PROBABILITY: Final = 1e-9
_DECIMALS: Final = 9
_MOST_PIECES: Final = 512


@dataclass(frozen=True, slots=True)
class Level:
    """A map of probabilities: the log-odds become `offset` + `slope` times the log-odds. The slope is above 0."""

    offset: float
    slope: float

    def __call__(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map probabilities, float64[rows]. The probabilities 0 and 1 stay 0 and 1."""
        with np.errstate(divide="ignore", over="ignore"):
            log_odds = np.log(probabilities) - np.log1p(-probabilities)
            return np.asarray(1 / (1 + np.exp(-(self.offset + self.slope * log_odds))))


UNCHANGED: Final = Level(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class LevelRows:
    """Labelled rows with a stored fit's probabilities.

    Attributes:
        near: float64[rows], probabilities from the map for items near the fitted rows.
        far: float64[rows], probabilities from the map for items far from the fitted rows.
        share: float64[rows], the weight of `far`, 0 to 1.
        rules: float64[rows, rules], the values of the features that rule answers out.
        right: bool[rows], human labels.
        keys: Each row's question key. Rows with the same key are in the same fold.
        doubts: bool[rows], True if the verdict "right" would be uncertain, whatever its probability.
    """

    near: NDArray[np.float64]
    far: NDArray[np.float64]
    share: NDArray[np.float64]
    rules: NDArray[np.float64]
    right: NDArray[np.bool_]
    keys: Sequence[str]
    doubts: NDArray[np.bool_]

    @classmethod
    def of_form(
        cls,
        form: Mapping[str, Any],
        values: NDArray[np.float64],
        shapes: NDArray[np.float64] | None,
        right: NDArray[np.bool_],
        keys: Sequence[str],
    ) -> "LevelRows":
        """Compute the form's probabilities; see `evaluate_fit.probabilities` for `values` and `shapes`."""
        rules = values[:, [feature.get("rules_out", False) for feature in form["features"]]]
        return cls(*mapped(form, values, shapes), rules, right, keys, doubtful(form, values))

    def where(self, kept: NDArray[np.bool_]) -> "LevelRows":
        """Return the rows that a mask, bool[rows], selects."""
        keys = [key for key, is_kept in zip(self.keys, kept, strict=True) if is_kept]
        mapped_to = (self.near[kept], self.far[kept], self.share[kept])
        return LevelRows(*mapped_to, self.rules[kept], self.right[kept], keys, self.doubts[kept])

    def probabilities(self, level: Level = UNCHANGED) -> NDArray[np.float64]:
        """Return the rows' probabilities at a level, float64[rows]."""
        return ruled((1 - self.share) * level(self.near) + self.share * level(self.far), self.rules)


def check_level_rows(rows: LevelRows) -> None:
    """Raise ValueError unless there are enough rows, right rows and wrong rows among them."""
    if len(rows.right) < LEAST_ROWS:
        raise ValueError(f"{len(rows.right)} rows are too few for a level. Label at least {LEAST_ROWS}")
    if rows.right.all() or not rows.right.any():
        raise ValueError(
            f"all rows are {'right' if rows.right.all() else 'wrong'}, but a level needs right and wrong answers"
        )


def fit_level(rows: LevelRows) -> Level:
    """Return the most probable level, given the labels and a prior around offset 0 and slope 1.

    The prior keeps few rows from moving the level far, and the slope is always above 0, so the order of answers stays.
    Rows that a rule calls wrong do not count, because a level does not change their verdict.

    Raises:
        ImportError: SciPy is not installed.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the extra `calibrate`, and slow

    rows = rows.where(np.asarray((rows.rules < 1).all(axis=1), np.bool_))
    shares = np.stack([1 - rows.share, rows.share])
    bounded = np.stack([rows.near, rows.far]).clip(_LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    log_odds = np.log(bounded / (1 - bounded))

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        offset, slope = found[0], np.exp(found[1])
        # The log-odds stay below 100, so the exponential cannot overflow and the probabilities cannot be 0 or 1.
        parts = 1 / (1 + np.exp(-(offset + slope * log_odds).clip(-100, 100)))
        of_label = np.where(rows.right, (shares * parts).sum(axis=0), (shares * (1 - parts)).sum(axis=0))
        slopes = np.where(rows.right, -1.0, 1.0) / of_label * shares * parts * (1 - parts)
        total = -np.log(of_label).sum() + (offset / _OFFSET_SPREAD) ** 2 / 2 + (found[1] / _SLOPE_SPREAD) ** 2 / 2
        gradient = [
            slopes.sum() + offset / _OFFSET_SPREAD**2,
            slope * (slopes * log_odds).sum() + found[1] / _SLOPE_SPREAD**2,
        ]
        return float(total), np.array(gradient)

    solved = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B")
    return Level(round(float(solved.x[0]), 6), round(float(np.exp(solved.x[1])), 6))


def cross_fitted(rows: LevelRows) -> NDArray[np.float64]:
    """Return float64[rows], each row's probability at a level that was fitted on other questions."""
    folds = folds_of_keys(rows.keys, LEVEL_FOLDS)
    found = np.empty(len(folds))
    for fold in np.unique(folds):
        inside = folds == fold
        found[inside] = rows.where(inside).probabilities(fit_level(rows.where(~inside)))
    return found


def levelled_form(
    form: Mapping[str, Any], level: Level, rows: LevelRows, held_out: NDArray[np.float64]
) -> dict[str, Any]:
    """Return a form with the level applied to its maps and bands. Everything else stays the same.

    A band's evidence is the form's own evidence at the new level, and `rows`. For right answers, and for wrong answers,
    both have the same weight. As in `fit_correctness.fitted_form`, the band need not hold doubted verdicts.

    Args:
        form: A complete form, see `serialise_fit.fit_form`.
        level: Result of `fit_level`.
        rows: The labelled rows, with both classes.
        held_out: float64[rows], result of `cross_fitted`.
    """
    held_out = without_doubted(held_out, rows.doubts)
    has_doubts = any(feature.get("doubts") for feature in form["features"])
    own = DistanceBand(_points(form, level), held_out, rows.right, 1 - rows.share)
    found = {**form, **_levelled(form, level, own, has_doubts=has_doubts)}
    if far := form.get("far"):
        own = DistanceBand(_points(far, level), held_out, rows.right, rows.share)
        found["far"] = _levelled(far, level, own, has_doubts=has_doubts)
    return found


def _points(band: Mapping[str, Any], level: Level) -> Points:
    log_odds, probability = (np.array(band["map"][name], np.float64) for name in ("log_odds", "probability"))
    return Points(log_odds, level(probability).round(_DECIMALS))


def _levelled(band: Mapping[str, Any], level: Level, own: DistanceBand, *, has_doubts: bool) -> dict[str, Any]:
    probabilities, right, weights = own.probabilities, own.right, own.weights
    for name, is_right in (("right", True), ("wrong", False)):
        stored, shares = _stored_evidence(band["conformal"][name], beyond=float(is_right))
        moved = level(stored)
        if has_doubts:
            # The stored evidence has exactly this probability for doubted verdicts, which no level makes certain.
            moved = np.where(stored == RIGHT_FROM, np.minimum(moved, RIGHT_FROM), moved)
        probabilities = np.concatenate([probabilities, moved])
        right = np.concatenate([right, np.full(len(stored), is_right, np.bool_)])
        weights = np.concatenate([weights, shares * int((own.right == is_right).sum())])
    return distance_band_form(DistanceBand(own.points, probabilities, right, weights))


def _stored_evidence(ranks: Mapping[str, Any], *, beyond: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return probabilities and their shares of a class, both float64[values].

    A form keeps only the half of a class that lies towards the other class. The rest gets the probability `beyond`.
    """
    count = max(int(ranks["count"]), int(ranks["ranks"][-1]))
    shares = np.diff(np.array(ranks["ranks"], np.float64), prepend=0.0) / count
    rest = count - int(ranks["ranks"][-1])
    pieces = min(rest, _MOST_PIECES)
    values = np.concatenate([np.array(ranks["values"], np.float64), np.full(pieces, beyond)])
    return values, np.concatenate([shares, np.full(pieces, rest / count / max(1, pieces))])
