"""Ratings of all models with intervals, biases of the judge, and its agreement with human ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, draws, estimate, ratio_draws
from gradewire_stats.model_ranks import kendall_of, pearson_of, spearman_of
from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts
from gradewire_stats.ratings.strengths import (
    Control,
    ControlledFit,
    bradley_terry,
    controlled_fit,
    elo_draws,
    elo_ratings,
    held_together,
)


@dataclass(frozen=True, slots=True)
class Bias:
    """Advantage of answers with a property over rivals without it.

    Attributes:
        matches: Decided matches in which exactly one answer has the property, by weight.
        won: Share of them that this answer won. 0.5 means no advantage; a higher share can also mean that better models
            have the property.
    """

    matches: float
    won: Estimate


def position_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """Measure how often the answer shown first wins; each match must be of one order."""
    return _bias(matches, matches.shown_first, resamples=resamples, seed=seed)


def length_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """Measure how often the answer with more words wins."""
    apart = np.nan_to_num(matches.words[:, 0] - matches.words[:, 1])
    return _bias(matches, np.sign(apart).astype(np.intp), resamples=resamples, seed=seed)


def _bias(matches: Matches, side: NDArray[np.intp], *, resamples: int, seed: int) -> Bias:
    """Measure the bias of a property that only A (1) or only B (-1) has, with draws of whole instructions."""
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
    """A judge's ratings compared with annotators' ratings, over the models in both.

    Attributes:
        kendall: tau-b of the two; NaN for fewer than three models.
        spearman: Rank correlation; NaN for fewer than three models.
        pearson: Linear correlation; NaN for fewer than three models.
    """

    models: int
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


def system_ranks(judge: Matches, human: Matches, *, resamples: int = 1000, seed: int = 0) -> SystemRanks:
    """Correlate Bradley and Terry's ratings, with intervals over draws of instructions.

    Args:
        judge: Matches decided by a judge.
        human: Matches of the same models decided by annotators; instructions with the same number in both are drawn
            together.
        resamples: Number of draws.
        seed: Seed of the draws.

    Raises:
        ValueError: The models differ.
    """
    if list(judge.models) != list(human.models):
        raise ValueError("judge and annotators rate different models: use the same models in the same order")
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
    """Rating of a model.

    Attributes:
        matches: Number of its matches.
        won: Matches that it won.
        tied: Ties.
        elo: Median over the draws of the rating after one pass, with its interval; without draws, `elo_once`.
        elo_once: Rating after one pass over all matches.
        bradley_terry: Rating by maximum likelihood, on Elo's scale; without an interval if it is not `bounded`.
        bounded: True if the matches bound that rating (`held_together`). If not, for instance because the model won all
            its matches, only the regularisation determines its distance from the others.
        controlled: The same, controlled for length or position; None without controls.
        win_share: Share of its matches that it won, with ties as half.
        against_reference: Share of its decided matches with the reference that it won; undefined without any.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of a control, as the factor of the odds to win."""

    control: Control
    odds: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTable:
    """Ratings of models.

    Attributes:
        models: Highest first, by the controlled rating if there is one, else by Bradley and Terry's; models without a
            match last.
        regularised: True if the wins do not connect all models (`Strengths.regularised`): ratings are then drawn
            towards the mean, and models that wins do not connect are not comparable.
        regularised_draws: Draws in which they do not connect.
        resamples: Number of draws.
        instructions: Number of instructions.
        effects: Effects of the controls.
        won: float64[models, models] in the order of `models`, matches that the row's model won against the column's.
        tied: float64[models, models], ties.
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
    """Controls of a fit.

    Attributes:
        names: At least one.
        ordered: Matches for the fit, one for each order in which a pair was shown, with the same instruction numbers;
            None: the matches of the table.
    """

    names: Sequence[Control]
    ordered: Matches | None = None


def rate(  # noqa: PLR0913 - the matches, and options for fits and draws
    matches: Matches,
    *,
    reference: str | None = None,
    anchor: str | None = None,
    controls: Controls | None = None,
    resamples: int = 1000,
    seed: int = 0,
    with_elo: bool = True,
) -> RatingTable:
    """Rate models: Elo, Bradley and Terry's strengths, shares of wins.

    Args:
        matches: One per pair of answers.
        reference: Model for the win rates.
        anchor: Model with the maximum-likelihood rating 1000; None: the mean of all models is 1000.
        controls: Controls of an additional fit; None: no such fit.
        resamples: Draws of whole instructions.
        seed: Seed of draws and orders.
        with_elo: Compute Elo, which takes most of the time; otherwise it is undefined.

    Raises:
        ValueError: There are no matches, or `reference` or `anchor` names no model.
        NotIdentifiedError: As `controlled_fit`.
    """
    if not len(matches):
        raise ValueError("no matches to rate models by")
    numbers = {name: number for number, name in enumerate(matches.models)}
    if unknown := [name for name in (reference, anchor) if name is not None and name not in numbers]:
        raise ValueError(f"no model {unknown[0]!r}; the models are: {', '.join(map(str, numbers))}")
    fixed = None if anchor is None else numbers[anchor]
    against = None if reference is None else numbers[reference]
    strata = np.zeros(matches.instruction_count, dtype=np.intp)

    def chunks() -> Iterator[NDArray[np.float64]]:
        """Yield the same draws each time; with many instructions, all at once would take gigabytes."""
        return draws(strata, resamples=resamples, seed=seed)

    whole = _DrawnRatings.of(matches, None, fixed, against)
    drawn = [_DrawnRatings.of(matches, chunk, fixed, against) for chunk in chunks()]
    elos = elo_draws(matches, chunks() if with_elo else [], seed=seed)
    once = elo_ratings(matches, seed=seed) if with_elo else np.full(len(numbers), np.nan)
    fit = None
    if controls is not None:
        fit = controlled_fit(controls.ordered or matches, controls.names, chunks(), anchor=fixed)
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
    # The matches do not determine these ratings, so a spread of draws would mislead.
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
    """Results of counts in each draw of a chunk; float64[draws, models]."""

    counts: PairCounts
    ratings: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    against: NDArray[np.float64]
    regularised: NDArray[np.bool_]

    @classmethod
    def of(cls, matches: Matches, chunk: NDArray[np.float64] | None, fixed: int | None, against: int | None) -> Self:
        counts = pair_counts(matches, chunk)
        strengths = bradley_terry(counts)
        shares = counts.win_shares
        return cls(
            counts,
            strengths.ratings(fixed),
            shares,
            np.full_like(shares, np.nan) if against is None else counts.shares_against(against),
            strengths.regularised,
        )


def _medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return medians over the draws with a value; NaN without any."""
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
