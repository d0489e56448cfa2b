"""Elo ratings, and Bradley and Terry's strengths, which can be controlled for length or position."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts

K, BASE, SCALE, START = 4.0, 10.0, 400.0, 1000.0
# Number of steps of draws to lay out at a time, 32 bits each.
_STEPS_AT_A_TIME = 1 << 24
# Separates the orders of the matches from other draws with the same seed.
_ORDERS = 1

ELO_PER_NAT = SCALE / math.log(BASE)
"""Points on Elo's scale for one unit of strength."""
# Half a win and half a loss against a model of mean strength, if nothing else connects the strengths.
_PRIOR_MATCHES = 1.0
_MAX_STEP = 2.0
_ITERATIONS = 200
# Maximum share of unexplained points.
_TOLERANCE = 1e-10

Control = Literal["length", "position"]
CONTROLS: tuple[Control, ...] = ("length", "position")
_CONTROLLED_ITERATIONS = 60
_CONTROLLED_TOLERANCE = 1e-9
# Beyond odds of e^12 to 1, matches won by one side alone have no maximum.
_MAX_EFFECT = 12.0
_PRIOR = 0.25


def elo_ratings(matches: Matches, *, seed: int = 0) -> NDArray[np.float64]:
    """Return the ratings after one pass over all matches, in a seeded order.

    Every model starts at 1000. A match of A and B moves A by 4 (score - 1 / (1 + 10^((B - A) / 400))), and B by the
    same amount in the other direction; a tie has the score 0.5.

    Args:
        matches: Matches; their weights are ignored.
        seed: Seed of the order.

    Returns:
        float64[models]; NaN for a model without a match.
        float64[models]; NaN for a model without a match.
    """
    order = np.random.default_rng([seed, _ORDERS]).permutation(len(matches))
    (found,) = _passes(matches, order[:, None])
    return np.asarray(found)


def elo_draws(matches: Matches, draws: Iterable[NDArray[np.float64]], *, seed: int = 0) -> NDArray[np.float64]:
    """Return the ratings for every draw of instructions, each in its own order.

    Args:
        matches: Matches; their weights are ignored.
        draws: float64[draws, instructions], how often each was drawn, in any number of chunks.
        seed: Seed of the orders.

    Returns:
        float64[draws, models]; NaN for a model without a match in the draw.
    """
    random = np.random.default_rng([seed, _ORDERS])
    numbers = np.arange(len(matches), dtype=np.int32)
    found: list[NDArray[np.float64]] = []
    waiting: list[NDArray[np.int32]] = []

    def run() -> None:
        longest = max(map(len, waiting))
        # The number after the last match stands for no match.
        orders = np.full((longest, len(waiting)), len(matches), dtype=np.int32)
        for place, order in enumerate(waiting):
            orders[: len(order), place] = order
        found.append(_passes(matches, orders))
        waiting.clear()

    for chunk in draws:
        for counts in chunk:
            taken = np.repeat(numbers, counts.astype(np.intp)[matches.instructions])
            waiting.append(random.permutation(taken))
            if sum(map(len, waiting)) >= _STEPS_AT_A_TIME:
                run()
    if waiting:
        run()
    return np.concatenate(found) if found else np.empty((0, len(matches.models)))


def _passes(matches: Matches, orders: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the ratings after each column of orders, int[steps, draws], as float64[draws, models].

    A match depends on the one before it, so all draws advance one step at a time.
    """
    models, draws = len(matches.models), orders.shape[1]
    # A draw without matches left plays one more model against itself: at 0.5 it stays unchanged.
    a = np.append(matches.a, models)
    b = np.append(matches.b, models)
    scores = np.append(matches.score_a, 0.5)
    ratings = np.full(draws * (models + 1), START)
    row = np.arange(draws) * (models + 1)
    exponent = np.log(BASE) / SCALE
    for step in orders:
        one, other = row + a[step], row + b[step]
        at_one, at_other = ratings[one], ratings[other]
        moved = K * (scores[step] - 1 / (1 + np.exp((at_other - at_one) * exponent)))
        ratings[one] = at_one + moved
        ratings[other] = at_other - np.where(one == other, 0.0, moved)
    played = np.zeros((draws, models + 1), dtype=bool)
    for draw in range(draws):
        played[draw, a[orders[:, draw]]] = True
        played[draw, b[orders[:, draw]]] = True
    return np.asarray(np.where(played, ratings.reshape(draws, -1), np.nan)[:, :models])


class NotConvergedError(ArithmeticError):
    """No maximum of the likelihood was found."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """Strengths in each draw.

    Attributes:
        values: float64[draws, models], with mean 0 over the models with a match in the draw; NaN for the others.
        regularised: bool[draws]: the wins do not connect all models in both directions, so the likelihood alone would
            put some infinitely far from others, or nowhere. Each model then also has half a win and half a loss against
            a model of strength 0.
    """

    values: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    def ratings(self, anchor: int | None = None) -> NDArray[np.float64]:
        """Return the strengths on Elo's scale, float64[draws, models], with mean 1000, or with the anchor at 1000."""
        zero = 0.0 if anchor is None else self.values[:, anchor : anchor + 1]
        return np.asarray(START + ELO_PER_NAT * (self.values - zero))


def bradley_terry(counts: PairCounts) -> Strengths:
    """Return the strengths of the models; ties count as half a win for each side.

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
        # Strengths are relative: unless a prior fixes them, fix their mean at 0.
        both = played[left][:, :, None] & played[left][:, None, :]
        curvature += np.where(prior[left] > 0, 0.0, 1.0 / models)[:, :, None] * both
        step = np.linalg.solve(curvature, unexplained[open_][:, :, None])[:, :, 0]
        # Far from the maximum a step can overshoot, further each time.
        step *= np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        strengths[left] = values + step
    else:
        raise NotConvergedError(f"no maximum of the likelihood found in {_ITERATIONS} steps")
    values = np.where(played, strengths, np.nan)
    with np.errstate(invalid="ignore"):
        there = np.maximum(1, played.sum(axis=1, keepdims=True))
        values -= np.where(played, strengths, 0.0).sum(axis=1, keepdims=True) / there
    return Strengths(values, regularised)


def _reach(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which models each one reaches by wins in any number of steps; bool[draws, models, models]."""
    models = beats.shape[1]
    leads = (beats | np.eye(models, dtype=bool)).astype(np.float32)
    for _ in range(max(1, models - 1).bit_length()):
        leads = np.minimum(leads @ leads, 1.0)
    return np.asarray(leads > 0)


def connected(points: NDArray[np.float64], played: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[draws], True if wins connect all models that played, in both directions."""
    both = played[:, :, None] & played[:, None, :]
    return np.asarray((_reach(points > 0) | ~both).all(axis=(1, 2)))


def held_together(counts: PairCounts) -> NDArray[np.bool_]:
    """Return the largest group of models that wins connect in both directions; bool[draws, models].

    The matches determine the differences within the group. Only the regularisation determines the distance to other
    models, such as one that won or lost all its matches, or one that never met the group. All are False if two groups
    are equally large.
    """
    leads = _reach(counts.points > 0)
    sizes = (leads & leads.transpose(0, 2, 1)).sum(axis=2) * counts.played
    largest = sizes.max(axis=1, initial=0)[:, None]
    is_largest = (sizes == largest) & (sizes > 0)
    return np.asarray(is_largest & (is_largest.sum(axis=1, keepdims=True) == largest))


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))


class NotIdentifiedError(ValueError):
    """The matches cannot separate the effect of length or position from the models' strengths."""


@dataclass(frozen=True, slots=True)
class ControlledFit:
    """Strengths and effects, for all matches and for draws of their instructions.

    Attributes:
        controls: Controlled properties.
        ratings: float64[1 + draws, models] on Elo's scale, all matches first; NaN for a model without a match, and for
            all models in a draw without a maximum.
        effects: float64[1 + draws, controls], log odds of an answer's gain: for one standard deviation of the relative
            difference in words; for being shown first.
        regularised: True if the wins of all matches do not connect the models, as in `Strengths`.
    """

    controls: Sequence[Control]
    ratings: NDArray[np.float64]
    effects: NDArray[np.float64]
    regularised: bool


def length_difference(matches: Matches) -> NDArray[np.float64]:
    """Return (words of A - words of B) / (both), over its root mean square; 0 for unknown words; float64[matches]."""
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
) -> ControlledFit:
    """Fit strengths with controls by maximum likelihood; a tie counts as half a win for each side.

    Args:
        matches: Matches with their weights; with position as a control, each of one order.
        controls: At least one.
        draws: float64[draws, instructions], how often each instruction was drawn, in chunks.
        anchor: Model with the rating 1000; None: the mean of all is 1000.

    Raises:
        NotIdentifiedError: A control does not vary, cannot be separated from the models, or has no finite effect.
    """
    columns = {"length": length_difference(matches), "position": matches.shown_first.astype(np.float64)}
    for control in controls:
        if not columns[control].any():
            raise NotIdentifiedError(f"{control} is unknown or equal for both answers in all matches")
    fit = _Fit(matches, np.stack([columns[control] for control in controls], axis=1))
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
    ratings = START + ELO_PER_NAT * (strengths - zero)
    return ControlledFit(controls, ratings, values[:, models:], fit.regularised)


class _Fit:
    def __init__(self, matches: Matches, columns: NDArray[np.float64]) -> None:
        self._matches, self._columns = matches, columns
        self._models = len(matches.models)
        self._cells = matches.a * self._models + matches.b
        self.regularised = self._is_disconnected(np.ones(matches.instruction_count))

    def maximum(
        self, counts: NDArray[np.float64], start: NDArray[np.float64], *, check_rank: bool = False
    ) -> NDArray[np.float64] | None:
        """Return strengths (NaN for models without a match), then effects; None without a finite maximum."""
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
                    "length or position depends on the models, so their effects cannot be separated"
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
