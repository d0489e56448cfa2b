"""Models' ratings with intervals, a judge's biases, and a judge's agreement with human ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, draws, estimate, ratio_draws
from gradewire_stats.model_ranks import kendall_of, pearson_of, spearman_of
from gradewire_stats.ratings.elo import USUAL_SCALE, RatingScale, elo_draws, elo_ratings
from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts
from gradewire_stats.ratings.strengths import (
    Control,
    ControlledFit,
    bradley_terry,
    controlled_fit,
    held_together,
)


@dataclass(frozen=True, slots=True)
class Bias:
    """The advantage of answers with a property (shown first, or longer) over answers without this property.

    Attributes:
        matches: Total weight of decided matches in which exactly one answer has the property.
        won: Share of these matches that the answer with the property won. 0.5 means no advantage. A higher share can
            also mean that better models have the property.
    """

    matches: float
    won: Estimate


def position_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """Measure how often the answer shown first wins. `matches` needs a separate match for each order."""
    return _bias(matches, matches.shown_first, resamples=resamples, seed=seed)


def length_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """Measure how often the answer with more words wins."""
    apart = np.nan_to_num(matches.words[:, 0] - matches.words[:, 1])
    return _bias(matches, np.sign(apart).astype(np.intp), resamples=resamples, seed=seed)


def family_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """Measure how often the answer from the judge's own model family wins against an answer from another family."""
    return _bias(matches, matches.own_family, resamples=resamples, seed=seed)


def _bias(matches: Matches, side: NDArray[np.intp], *, resamples: int, seed: int) -> Bias:
    """Measure the advantage of a property that only A has (`side` is 1) or only B has (-1)."""
    counted = np.flatnonzero(matches.decided & (side != 0))
    if not len(counted):
        return Bias(0.0, estimate(np.nan, np.array([]), questions=0))
    _, instructions = np.unique(matches.instructions[counted], return_inverse=True)
    weights = matches.weights[counted]
    has_won = (matches.score_a[counted] == 1.0) == (side[counted] == 1)
    won, all_ = (np.bincount(instructions, values) for values in (weights * has_won, weights))
    drawn = ratio_draws(won[:, None], all_[:, None], resamples=resamples, seed=seed)[:, 0]
    return Bias(float(all_.sum()), estimate(float(won.sum() / all_.sum()), drawn, questions=len(all_)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRanks:
    """Correlations between a judge's and annotators' ratings, over the models that both the judge and annotators rate.

    Attributes:
        models: Number of compared models. With fewer than three models, the correlations are NaN.
    """

    models: int
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


def system_ranks(judge: Matches, human: Matches, *, resamples: int = 1000, seed: int = 0) -> SystemRanks:
    """Correlate Bradley-Terry ratings by a judge with ratings by annotators. Intervals come from draws of instructions.

    Args:
        judge: Matches decided by a judge.
        human: Matches decided by annotators, between the same models as in `judge`. Instructions with the same number
            in `judge` and `human` are drawn together.
        resamples: Number of draws.
        seed: Seed for the draws.

    Raises:
        ValueError: The models differ.
    """
    if list(judge.models) != list(human.models):
        raise ValueError("judge and annotators rate different models. Use the same models in the same order")
    instructions = max(judge.instruction_count, human.instruction_count)
    sides: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = ([], [])
    strata = np.zeros(instructions, dtype=np.intp)
    for chunk in (None, *draws(strata, resamples=resamples, seed=seed)):
        for side, matches in zip(sides, (judge, human), strict=True):
            side.append(bradley_terry(pair_counts(matches, chunk)).values)
    ours, theirs = (np.concatenate(side) for side in sides)
    both = ~np.isnan(ours[0]) & ~np.isnan(theirs[0])
    behind = len(np.intersect1d(judge.instructions, human.instructions))
    found = {}
    for name, how in (("kendall", kendall_of), ("spearman", spearman_of), ("pearson", pearson_of)):
        values = how(ours[:, both], theirs[:, both])
        found[name] = estimate(float(values[0]), values[1:], questions=behind)
    return SystemRanks(models=int(both.sum()), **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRating:
    """A model's ratings.

    Attributes:
        elo: Median Elo rating over the draws, with its interval; without draws, `elo_once`.
        bradley_terry: Bradley-Terry rating by maximum likelihood, on Elo's scale. It has no interval unless `bounded`.
        bounded: True if the matches determine `bradley_terry` (see `held_together`). If not, for instance because the
            model won all its matches, the distance to other models depends only on the regularisation.
        controlled: Bradley-Terry rating with the controls held fixed, or None without controls.
        win_share: Share of matches that the model won, with ties counted as half wins.
        against_reference: Share of wins among the model's decided matches against the reference. Undefined without
            such matches.
        decided_against_reference: Number of these decided matches. Ties are left out.
    """

    model: str
    matches: int
    won: int
    tied: int
    elo: Estimate
    elo_once: float
    bradley_terry: Estimate
    bounded: bool
    controlled: Estimate | None
    win_share: Estimate
    against_reference: Estimate
    decided_against_reference: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The factor by which a controlled property multiplies an answer's odds of winning."""

    control: Control
    odds: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTable:
    """All models' ratings.

    Attributes:
        models: One rating for each model, best first by `controlled`, or by `bradley_terry` if `controlled` is None.
            Models without a match come last.
        regularised: True if wins do not connect all models (see `Strengths`). Ratings are then pulled towards the mean,
            and models that are not connected by wins are not comparable.
        won: float64[models, models] in the order of `models`, number of matches that the row's model won against the
            column's model.
    """

    models: Sequence[ModelRating]
    regularised: bool
    regularised_draws: int
    resamples: int
    instructions: int
    effects: Sequence[Effect]
    won: NDArray[np.float64]
    tied: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Controls:
    """Controls for a fit.

    Attributes:
        names: At least one control.
        ordered: Matches for the fit, with a separate match for each order in which a pair was shown, and with the
            table's instruction numbers. None means the table's matches.
    """

    names: Sequence[Control]
    ordered: Matches | None = None


def rate(  # noqa: PLR0913 - the matches, and options for fits and draws
    matches: Matches,
    *,
    reference: str | None = None,
    anchor: str | None = None,
    controls: Controls | None = None,
    scale: RatingScale = USUAL_SCALE,
    resamples: int = 1000,
    seed: int = 0,
    with_elo: bool = True,
) -> RatingTable:
    """Rate models by Elo, by Bradley and Terry's model, and by shares of wins.

    Args:
        matches: A match for each pair of answers.
        reference: Name of the model for `against_reference`.
        anchor: Name of the model whose Bradley-Terry rating is the scale's start. None means that the mean rating is.
        controls: Controls for an additional fit. None means no additional fit.
        scale: Scale of all ratings, with Elo's K.
        resamples: Number of draws of whole instructions.
        seed: Seed for draws and orders.
        with_elo: Compute Elo, which takes most of the time. If False, Elo is NaN.

    Raises:
        ValueError: There are no matches, or `reference` or `anchor` is not a model's name.
        NotIdentifiedError: See `controlled_fit`.
    """
    if not len(matches):
        raise ValueError("there are no matches to rate models by")
    numbers = {name: number for number, name in enumerate(matches.models)}
    if unknown := [name for name in (reference, anchor) if name is not None and name not in numbers]:
        raise ValueError(f"there is no model {unknown[0]!r}. The models are {', '.join(map(str, numbers))}")
    fixed = None if anchor is None else numbers[anchor]
    against = None if reference is None else numbers[reference]
    strata = np.zeros(matches.instruction_count, dtype=np.intp)

    def chunks() -> Iterator[NDArray[np.float64]]:
        """Yield the same draws each time, because keeping all draws would need gigabytes with many instructions."""
        return draws(strata, resamples=resamples, seed=seed)

    whole = _DrawnRatings.of(matches, None, fixed, against, scale)
    drawn = [_DrawnRatings.of(matches, chunk, fixed, against, scale) for chunk in chunks()]
    elos = elo_draws(matches, chunks() if with_elo else [], scale=scale, seed=seed)
    once = elo_ratings(matches, scale=scale, seed=seed) if with_elo else np.full(len(numbers), np.nan)
    fit = None
    if controls is not None:
        fit = controlled_fit(controls.ordered or matches, controls.names, chunks(), anchor=fixed, scale=scale)
    columns = {
        "elo": (_medians(elos) if len(elos) else once, elos),
        "bradley_terry": (whole.ratings[0], np.concatenate([each.ratings for each in drawn])),
        "win_share": (whole.win_shares[0], np.concatenate([each.win_shares for each in drawn])),
        "against_reference": (whole.against[0], np.concatenate([each.against for each in drawn])),
    }
    if fit is not None:
        columns["controlled"] = (fit.ratings[0], fit.ratings[1:])
    bounded = held_together(whole.counts)[0]
    if fixed is not None and not bounded[fixed]:
        bounded = np.zeros_like(bounded)
    # Matches do not determine these ratings, so an interval from draws would mislead.
    for name in {"bradley_terry", "controlled"} & columns.keys():
        columns[name][1][:, ~bounded] = np.nan
    ruling = columns["bradley_terry" if fit is None else "controlled"][0]
    order = sorted(numbers.values(), key=lambda model: (np.isnan(ruling[model]), -ruling[model], matches.models[model]))
    won, tied = whole.counts.won[0], whole.counts.tied[0]
    behind = [matches.instructions_of(model) for model in range(len(numbers))]

    def found(model: int, name: str) -> Estimate:
        point, values = columns[name]
        return estimate(float(point[model]), values[:, model], questions=behind[model])

    return RatingTable(
        models=[
            ModelRating(
                model=matches.models[model],
                matches=int((won[model] + won[:, model] + tied[model]).sum()),
                won=int(won[model].sum()),
                tied=int(tied[model].sum()),
                elo_once=float(once[model]),
                controlled=found(model, "controlled") if fit is not None else None,
                elo=found(model, "elo"),
                bradley_terry=found(model, "bradley_terry"),
                bounded=bool(bounded[model]),
                win_share=found(model, "win_share"),
                against_reference=found(model, "against_reference"),
                decided_against_reference=0 if against is None else int(won[model, against] + won[against, model]),
            )
            for model in order
        ],
        regularised=bool(whole.regularised[0]),
        regularised_draws=sum(int(each.regularised.sum()) for each in drawn),
        resamples=resamples,
        instructions=matches.instruction_count,
        effects=[] if fit is None else _effects(fit, matches.instruction_count),
        won=won[np.ix_(order, order)],
        tied=tied[np.ix_(order, order)],
    )


@dataclass(frozen=True, slots=True)
class _DrawnRatings:
    counts: PairCounts
    ratings: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    against: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        matches: Matches,
        chunk: NDArray[np.float64] | None,
        fixed: int | None,
        against: int | None,
        scale: RatingScale,
    ) -> Self:
        counts = pair_counts(matches, chunk)
        strengths = bradley_terry(counts)
        shares = counts.win_shares
        return cls(
            counts,
            strengths.ratings(fixed, scale),
            shares,
            np.full_like(shares, np.nan) if against is None else counts.shares_against(against),
            strengths.regularised,
        )


def _medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
    there = np.where(np.isnan(values).all(axis=0), 0.0, values)
    return np.asarray(np.where(np.isnan(values).all(axis=0), np.nan, np.nanmedian(there, axis=0)))


def _effects(fit: ControlledFit, instructions: int) -> list[Effect]:
    return [
        Effect(
            control=control,
            odds=estimate(float(values[0]), values[1:], questions=instructions),
        )
        for control, values in zip(fit.controls, np.exp(fit.effects).T, strict=True)
    ]
