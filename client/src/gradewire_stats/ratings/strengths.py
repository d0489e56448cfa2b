"""Strengths from Bradley and Terry's model, which can be controlled for length, position or the judge's own family."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.elo import USUAL_SCALE, RatingScale
from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts

# Weight of the additional half win and half loss against a model of strength 0, if wins do not connect the models.
_PRIOR_MATCHES = 1.0
_MAX_STEP = 2.0
_ITERATIONS = 200
# Maximum share of points that may remain unexplained when a fit ends.
_TOLERANCE = 1e-10

Control = Literal["length", "position", "own-family"]
CONTROLS: tuple[Control, ...] = ("length", "position", "own-family")
_CONTROLLED_ITERATIONS = 60
_CONTROLLED_TOLERANCE = 1e-9
# An effect beyond odds of e^12 to 1 means that the likelihood has no maximum, because only one side wins.
_MAX_EFFECT = 12.0
_PRIOR = 0.25


class NotConvergedError(ArithmeticError):
    """Raised when the search for the likelihood's maximum does not converge."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """Strengths in each draw.

    Attributes:
        values: float64[draws, models], NaN for models without a match in the draw. The mean is 0.
        regularised: bool[draws], True if wins do not connect all models in both directions, so that the likelihood has
            no finite maximum. Each model then gets an additional half win and half loss against a model of strength 0.
    """

    values: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    def ratings(self, anchor: int | None = None, scale: RatingScale = USUAL_SCALE) -> NDArray[np.float64]:
        """Return the ratings, float64[draws, models]. The anchor's rating, or the mean rating, is the scale's start."""
        zero = 0.0 if anchor is None else self.values[:, anchor : anchor + 1]
        return np.asarray(scale.start + scale.per_nat * (self.values - zero))


def bradley_terry(counts: PairCounts) -> Strengths:
    """Return the models' strengths. A tie counts as half a win for each side.

    Raises:
        NotConvergedError: No maximum was found, which cannot happen with finite counts.
    """
    points, played = counts.points, counts.played
    regularised = ~connected(points, played)
    draws, models = played.shape
    met = points + points.transpose(0, 2, 1)
    own, prior = points.sum(axis=2), np.where(regularised, _PRIOR_MATCHES, 0.0)[:, None]
    tolerance = _TOLERANCE * np.maximum(1.0, own.sum(axis=1))
    strengths = np.zeros((draws, models))
    left = np.arange(draws)
    diagonal = np.arange(models)
    for _ in range(_ITERATIONS):
        values = strengths[left]
        expected = _sigmoid(values[:, :, None] - values[:, None, :])
        by_prior = _sigmoid(values)
        unexplained = (
            own[left] - (met[left] * expected).sum(axis=2) + prior[left] * np.where(played[left], 0.5 - by_prior, 0.0)
        )
        open_ = np.abs(unexplained).max(axis=1, initial=0.0) > tolerance[left]
        if not open_.any():
            break
        left, values, expected = left[open_], values[open_], expected[open_]
        bend = met[left] * expected * (1 - expected)
        curvature = -bend
        curvature[:, diagonal, diagonal] = (
            bend.sum(axis=2) + prior[left] * by_prior[open_] * (1 - by_prior[open_]) + ~played[left]
        )
        # Only differences between strengths matter. Without a prior, fix the mean at 0.
        both = played[left][:, :, None] & played[left][:, None, :]
        curvature += np.where(prior[left] > 0, 0.0, 1.0 / models)[:, :, None] * both
        step = np.linalg.solve(curvature, unexplained[open_][:, :, None])[:, :, 0]
        # Far from the maximum, steps can overshoot further and further, so limit their size.
        step *= np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        strengths[left] = values + step
    else:
        raise NotConvergedError(f"found no maximum of the likelihood in {_ITERATIONS} steps")
    values = np.where(played, strengths, np.nan)
    with np.errstate(invalid="ignore"):
        there = np.maximum(1, played.sum(axis=1, keepdims=True))
        values -= np.where(played, strengths, 0.0).sum(axis=1, keepdims=True) / there
    return Strengths(values, regularised)


def _reach(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[draws, models, models], True if a chain of wins leads from the row's model to the column's model."""
    models = beats.shape[1]
    leads = (beats | np.eye(models, dtype=bool)).astype(np.float32)
    for _ in range(max(1, models - 1).bit_length()):
        leads = np.minimum(leads @ leads, 1.0)
    return np.asarray(leads > 0)


def connected(points: NDArray[np.float64], played: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[draws], True if every model that played has a chain of wins to every other model that played."""
    both = played[:, :, None] & played[:, None, :]
    return np.asarray((_reach(points > 0) | ~both).all(axis=(1, 2)))


def held_together(counts: PairCounts) -> NDArray[np.bool_]:
    """Return bool[draws, models], True for the largest group of models that are connected by wins in both directions.

    Matches determine the differences within the group. The distance to other models, such as a model that won all its
    matches, depends only on the regularisation. If the two largest groups are equally large, all values are False.
    """
    leads = _reach(counts.points > 0)
    sizes = (leads & leads.transpose(0, 2, 1)).sum(axis=2) * counts.played
    largest = sizes.max(axis=1, initial=0)[:, None]
    is_largest = (sizes == largest) & (sizes > 0)
    return np.asarray(is_largest & (is_largest.sum(axis=1, keepdims=True) == largest))


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))


class NotIdentifiedError(ValueError):
    """Raised when matches cannot separate a control's effect from the models' strengths."""


@dataclass(frozen=True, slots=True)
class ControlledFit:
    """Ratings and effects, first for all matches, then for each draw of instructions.

    Attributes:
        ratings: float64[1 + draws, models] on Elo's scale, NaN for a model without a match, and for all models in a
            draw whose likelihood has no maximum.
        effects: float64[1 + draws, controls], an answer's gain in log-odds of winning. For "length", this is the gain
            from a `length_difference` of 1. For "position", this is the gain from being shown first. For "own-family",
            this is the gain from a judge of the answer's model family.
        regularised: True if wins over all matches do not connect the models (see `Strengths`).
    """

    controls: Sequence[Control]
    ratings: NDArray[np.float64]
    effects: NDArray[np.float64]
    regularised: bool


def length_difference(matches: Matches) -> NDArray[np.float64]:
    """Return (A's words - B's words) / (A's words + B's words), divided by its root mean square, float64[matches].

    The value is 0 if the numbers of words are unknown.
    """
    total = matches.words.sum(axis=1)
    known = total > 0
    relative = np.zeros(len(matches))
    np.divide(matches.words[:, 0] - matches.words[:, 1], total, out=relative, where=known)
    spread = np.sqrt(np.mean(relative[known] ** 2)) if known.any() else 0.0
    return np.asarray(relative / spread if spread > 0 else relative)


def controlled_fit(
    matches: Matches,
    controls: Sequence[Control],
    draws: Iterable[NDArray[np.float64]] = (),
    *,
    anchor: int | None = None,
    scale: RatingScale = USUAL_SCALE,
) -> ControlledFit:
    """Fit strengths with controls by maximum likelihood. A tie counts as half a win for each side.

    Args:
        matches: Matches with their weights. The control "position" needs a separate match for each order.
        controls: At least one control.
        draws: Chunks of float64[draws, instructions], number of times each instruction was drawn.
        anchor: Number of the model with the scale's starting rating. None means that the mean rating has this value.
        scale: Scale of the ratings.

    Raises:
        NotIdentifiedError: A control does not vary, cannot be separated from the models, or has no finite effect.
    """
    columns = {
        "length": length_difference(matches),
        "position": matches.shown_first.astype(np.float64),
        "own-family": matches.own_family.astype(np.float64),
    }
    for control in controls:
        if not columns[control].any():
            raise NotIdentifiedError(f"{control} is unknown or equal for both answers in all matches")
    fit = _Fit(matches, np.stack([columns[control] for control in controls], axis=1), controls)
    start = np.concatenate([np.nan_to_num(bradley_terry(pair_counts(matches)).values[0]), np.zeros(len(controls))])
    whole = fit.maximum(np.ones(matches.instruction_count), start, check_rank=True)
    if whole is None:
        raise NotIdentifiedError(f"the matches do not bound the effect of {' and '.join(controls)}")
    found = [whole]
    lost = np.full(len(whole), np.nan)
    for chunk in draws:
        for counts in chunk:
            there = fit.maximum(counts, whole)
            found.append(lost if there is None else there)
    values = np.stack(found)
    models = len(matches.models)
    strengths = values[:, :models]
    with np.errstate(invalid="ignore"):
        centre = np.nanmean(np.where(np.isnan(strengths), 0.0, strengths), axis=1, keepdims=True)
        counted = np.maximum(1, np.count_nonzero(~np.isnan(strengths), axis=1))[:, None]
        zero = centre * models / counted if anchor is None else strengths[:, anchor : anchor + 1]
    ratings = scale.start + scale.per_nat * (strengths - zero)
    return ControlledFit(controls, ratings, values[:, models:], fit.regularised)


class _Fit:
    def __init__(self, matches: Matches, columns: NDArray[np.float64], controls: Sequence[Control]) -> None:
        self._matches, self._columns, self._controls = matches, columns, controls
        self._models = len(matches.models)
        self._cells = matches.a * self._models + matches.b
        self.regularised = self._is_disconnected(np.ones(matches.instruction_count))

    def maximum(
        self, counts: NDArray[np.float64], start: NDArray[np.float64], *, check_rank: bool = False
    ) -> NDArray[np.float64] | None:
        """Return strengths (NaN for models without a match), then effects, at the likelihood's maximum.

        If the likelihood has no finite maximum, return None.
        """
        matches, models = self._matches, self._models
        weights = counts[matches.instructions] * matches.weights
        where = np.flatnonzero(weights)
        weights, a, b = weights[where], matches.a[where], matches.b[where]
        columns, score = self._columns[where], matches.score_a[where]
        played = np.bincount(a, minlength=models) + np.bincount(b, minlength=models) > 0
        prior = _PRIOR if self._is_disconnected(counts) else 0.0
        found = np.where(np.append(played, np.ones(columns.shape[1], bool)), start, 0.0)
        for step_number in range(_CONTROLLED_ITERATIONS):
            strengths, effects = found[:models], found[models:]
            expected = 1 / (1 + np.exp(strengths[b] - strengths[a] - columns @ effects))
            missed, bend = weights * (score - expected), weights * expected * (1 - expected)
            slope = np.concatenate([self._by_model(missed, a, b), missed @ columns])
            by_prior = 1 / (1 + np.exp(-strengths))
            slope[:models] += 4 * prior * np.where(played, 0.5 - by_prior, 0.0)
            curvature = self._curvature(bend, columns, self._cells[where], a, b)
            if check_rank and step_number == 0 and np.linalg.matrix_rank(curvature) < played.sum() + len(effects) - 1:
                raise NotIdentifiedError(
                    f"{' or '.join(self._controls)} depends on the models, so their effects cannot be separated"
                )
            diagonal = np.arange(models)
            curvature[diagonal, diagonal] += 4 * prior * by_prior * (1 - by_prior) + ~played
            if not prior:
                curvature[:models, :models] += np.outer(played, played) / models
            if np.abs(slope).max() <= _CONTROLLED_TOLERANCE * max(1.0, weights.sum()):
                return np.concatenate([np.where(played, strengths, np.nan), effects])
            try:
                step = np.linalg.solve(curvature, slope)
            except np.linalg.LinAlgError:
                return None
            found = found + step * min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300))
            if np.abs(found[models:]).max() > _MAX_EFFECT:
                return None
        return None

    def _is_disconnected(self, counts: NDArray[np.float64]) -> bool:
        found = pair_counts(self._matches, counts[None])
        return not connected(found.points, found.played)[0]

    def _by_model(self, values: NDArray[np.float64], a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(a, values, self._models) - np.bincount(b, values, self._models))

    def _curvature(
        self,
        bend: NDArray[np.float64],
        columns: NDArray[np.float64],
        cells: NDArray[np.intp],
        a: NDArray[np.intp],
        b: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        models, controls = self._models, columns.shape[1]
        found = np.zeros((models + controls, models + controls))
        met = np.bincount(cells, bend, models**2).reshape(models, models)
        met = met + met.T
        found[:models, :models] = np.diag(met.sum(axis=1)) - met
        for control in range(controls):
            found[:models, models + control] = self._by_model(bend * columns[:, control], a, b)
        found[models:, :models] = found[:models, models:].T
        found[models:, models:] = (columns * bend[:, None]).T @ columns
        return found
