"""Elo ratings, and Bradley and Terry's strengths by maximum likelihood, also with length or position held fixed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts

K, BASE, SCALE, START = 4.0, 10.0, 400.0, 1000.0
# Steps of draws that are laid out at a time: 32 bits each.
_STEPS_AT_A_TIME = 1 << 24
# Tells the orders of the matches from other draws of the same seed.
_ORDERS = 1

ELO_PER_NAT = SCALE / math.log(BASE)
"""Points on Elo's scale for one unit of strength."""
# Against a model of mean strength, where nothing else holds the strengths together: half a win and half a loss.
_PRIOR_MATCHES = 1.0
_MAX_STEP = 2.0
_ITERATIONS = 200
# Points that are left unexplained, of those that there are.
_TOLERANCE = 1e-10

Control = Literal["length", "position"]
CONTROLS: tuple[Control, ...] = ("length", "position")
_CONTROLLED_ITERATIONS = 60
_CONTROLLED_TOLERANCE = 1e-9
# Beyond e^12 to 1, matches that are won by one side alone leave no maximum.
_MAX_EFFECT = 12.0
_PRIOR = 0.25


def elo_ratings(matches: Matches, *, seed: int = 0) -> NDArray[np.float64]:
    """Ratings after one pass over all matches, in an order drawn by the seed.

    Every model starts at 1000. A match of A and B moves A by 4 (score - 1 / (1 + 10^((B - A) / 400))), and B by as
    much the other way; a tie has the score 0.5.

    Args:
        matches: Their weights are not looked at.
        seed: Of the order.

    Returns:
        float64[models]; NaN for a model without a match.
    """
    order = np.random.default_rng([seed, _ORDERS]).permutation(len(matches))
    (found,) = _passes(matches, order[:, None])
    return np.asarray(found)


def elo_draws(matches: Matches, draws: Iterable[NDArray[np.float64]], *, seed: int = 0) -> NDArray[np.float64]:
    """The same for every draw of instructions, each in an order of its own.

    Args:
        matches: As above.
        draws: float64[draws, instructions], how often each was drawn; as many chunks as one likes.
        seed: Of the orders.

    Returns:
        float64[draws, models]; NaN for a model without a match in that draw.
    """
    random = np.random.default_rng([seed, _ORDERS])
    numbers = np.arange(len(matches), dtype=np.int32)
    found: list[NDArray[np.float64]] = []
    waiting: list[NDArray[np.int32]] = []

    def run() -> None:
        longest = max(map(len, waiting))
        # The number behind the last match stands for none.
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
    """Ratings after each column of orders, int[steps, draws]; float64[draws, models].

    A match waits for the one before it, so all draws take a step at a time.
    """
    models, draws = len(matches.models), orders.shape[1]
    # One more model meets itself where a draw has no match left: at 0.5 it stays where it is.
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
    """The likelihood has no maximum that could be found."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """Strengths in each draw.

    Attributes:
        values: float64[draws, models], of mean 0 over the models that have a match in the draw; NaN for the others.
        regularised: bool[draws]: the wins do not connect all models in both directions, so that the likelihood alone
            would put some infinitely far from others, or nowhere. Each model then has half a win and half a loss
            against a model of strength 0 besides.
    """

    values: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    def ratings(self, anchor: int | None = None) -> NDArray[np.float64]:
        """The strengths on Elo's scale, float64[draws, models]: mean 1000, or the anchor at 1000."""
        zero = 0.0 if anchor is None else self.values[:, anchor : anchor + 1]
        return np.asarray(START + ELO_PER_NAT * (self.values - zero))


def bradley_terry(counts: PairCounts) -> Strengths:
    """Strengths of the models; ties count as half a win for either side.

    Raises:
        NotConvergedError: No maximum was found, which finite counts do not cause.
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
        # Strengths are differences: where no prior holds it, the mean is held at 0.
        both = played[left][:, :, None] & played[left][:, None, :]
        curvature += np.where(prior[left] > 0, 0.0, 1.0 / models)[:, :, None] * both
        step = np.linalg.solve(curvature, unexplained[open_][:, :, None])[:, :, 0]
        # From far away a step may lead beyond the maximum, and further each time.
        step *= np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        strengths[left] = values + step
    else:
        raise NotConvergedError(f"no maximum of the likelihood after {_ITERATIONS} steps")
    values = np.where(played, strengths, np.nan)
    with np.errstate(invalid="ignore"):
        there = np.maximum(1, played.sum(axis=1, keepdims=True))
        values -= np.where(played, strengths, 0.0).sum(axis=1, keepdims=True) / there
    return Strengths(values, regularised)


def _reach(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return to which models wins lead from each one in any number of steps; bool[draws, models, models]."""
    models = beats.shape[1]
    leads = (beats | np.eye(models, dtype=bool)).astype(np.float32)
    for _ in range(max(1, models - 1).bit_length()):
        leads = np.minimum(leads @ leads, 1.0)
    return np.asarray(leads > 0)


def connected(points: NDArray[np.float64], played: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether, in each draw, wins lead from every model to every other one that played; bool[draws]."""
    both = played[:, :, None] & played[:, None, :]
    return np.asarray((_reach(points > 0) | ~both).all(axis=(1, 2)))


def held_together(counts: PairCounts) -> NDArray[np.bool_]:
    """Which models wins join, in both directions, to more than any other such group has; bool[draws, models].

    Differences between them are what the matches say. How far all others are from them, a model that has won or lost
    all its matches, or one that never met them, only the regularisation says. All are False where two groups are the
    largest.
    """
    leads = _reach(counts.points > 0)
    sizes = (leads & leads.transpose(0, 2, 1)).sum(axis=2) * counts.played
    largest = sizes.max(axis=1, initial=0)[:, None]
    is_largest = (sizes == largest) & (sizes > 0)
    return np.asarray(is_largest & (is_largest.sum(axis=1, keepdims=True) == largest))


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))


class NotIdentifiedError(ValueError):
    """The matches cannot tell the effect of length or position from the models' strengths."""


@dataclass(frozen=True, slots=True)
class ControlledFit:
    """Strengths and effects, in the matches themselves and in draws of their instructions.

    Attributes:
        controls: What is held fixed.
        ratings: float64[1 + draws, models] on Elo's scale, the matches themselves first; NaN for a model without a
            match, and for all in a draw that has no maximum.
        effects: float64[1 + draws, controls], logarithms of the odds by which an answer gains: for one standard
            deviation of the relative difference in words; for being shown first.
        regularised: Whether the wins of all matches do not connect the models, as in `Strengths`.
    """

    controls: Sequence[Control]
    ratings: NDArray[np.float64]
    effects: NDArray[np.float64]
    regularised: bool


def length_difference(matches: Matches) -> NDArray[np.float64]:
    """(words of A - words of B) / (both), over its root mean square; 0 where words are not known; float64[matches]."""
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
    """Fits strengths with controls by maximum likelihood; a tie counts as half a win for either side.

    Args:
        matches: With their weights; those of one order each, where position is a control.
        controls: One at least.
        draws: float64[draws, instructions], how often each instruction was drawn, in chunks.
        anchor: The model whose rating is 1000; None: the mean of all.

    Raises:
        NotIdentifiedError: A control does not vary, goes with the models, or has no finite effect.
    """
    columns = {"length": length_difference(matches), "position": matches.shown_first.astype(np.float64)}
    for control in controls:
        if not columns[control].any():
            raise NotIdentifiedError(f"{control}: it is not known, or the same for both answers, in all matches")
    fit = _Fit(matches, np.stack([columns[control] for control in controls], axis=1))
    start = np.concatenate([np.nan_to_num(bradley_terry(pair_counts(matches)).values[0]), np.zeros(len(controls))])
    whole = fit.maximum(np.ones(matches.instruction_count), start, check_rank=True)
    if whole is None:
        raise NotIdentifiedError(f"{' and '.join(controls)}: the matches leave an effect without a bound")
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
        """Strengths, then effects; NaN strengths of models without a match. None where there is no finite maximum."""
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
                raise NotIdentifiedError("length or position goes with the models: their effects cannot be told apart")
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
