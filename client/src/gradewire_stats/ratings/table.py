"""Ratings of all models with intervals, biases of the judge, and its agreement with people on the ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, draws, estimate, ratio_draws
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
from gradewire_stats.systems import kendall_of, pearson_of, spearman_of


@dataclass(frozen=True, slots=True)
class Bias:
    """How often an answer wins that has some property and its rival has not.

    Attributes:
        matches: Decided matches in which one answer has it alone, by their weight.
        won: Share of them that it won; 0.5 says nothing of it, and so does more where better models have it.
    """

    matches: float
    won: Estimate


def position_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """How often the answer wins that was shown first; matches of one order each."""
    return _bias(matches, matches.shown_first, resamples=resamples, seed=seed)


def length_bias(matches: Matches, *, resamples: int = 1000, seed: int = 0) -> Bias:
    """How often the answer with more words wins."""
    apart = np.nan_to_num(matches.words[:, 0] - matches.words[:, 1])
    return _bias(matches, np.sign(apart).astype(np.intp), resamples=resamples, seed=seed)


def _bias(matches: Matches, side: NDArray[np.intp], *, resamples: int, seed: int) -> Bias:
    """Of a property that A has alone (1), or B (-1); whole instructions are drawn."""
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
    """Ratings from a judge beside ratings from people, over the models that both have.

    Attributes:
        kendall: tau-b of the two; NaN for fewer than three models.
        spearman: Their rank correlation, likewise.
        pearson: Their linear correlation, likewise.
    """

    models: int
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


def system_ranks(judge: Matches, people: Matches, *, resamples: int = 1000, seed: int = 0) -> SystemRanks:
    """Correlations of Bradley and Terry's ratings, with intervals over draws of instructions.

    Args:
        judge: Matches that a judge decided.
        people: Matches of the same models that people decided; instructions have the same numbers in both, and those
            that share a number are drawn together.
        resamples: Draws.
        seed: Same seed, same intervals.

    Raises:
        ValueError: The models differ.
    """
    if list(judge.models) != list(people.models):
        raise ValueError("judge and people have to rate the same models, in the same order")
    instructions = max(judge.instruction_count, people.instruction_count)
    sides: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = ([], [])
    strata = np.zeros(instructions, dtype=np.intp)
    for chunk in (None, *draws(strata, resamples=resamples, seed=seed)):
        for side, matches in zip(sides, (judge, people), strict=True):
            side.append(bradley_terry(pair_counts(matches, chunk)).values)
    ours, theirs = (np.concatenate(side) for side in sides)
    both = ~np.isnan(ours[0]) & ~np.isnan(theirs[0])
    behind = len(np.intersect1d(judge.instructions, people.instructions))
    found = {}
    for name, how in (("kendall", kendall_of), ("spearman", spearman_of), ("pearson", pearson_of)):
        values = how(ours[:, both], theirs[:, both])
        found[name] = estimate(float(values[0]), values[1:], questions=behind)
    return SystemRanks(models=int(both.sum()), **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRating:
    """Where a model stands.

    Attributes:
        matches: Matches that it took part in.
        won: Those that it won.
        tied: Those that nobody won.
        elo: Median over the draws of its rating after one pass, with the interval; `Estimate.value` is that of the
            matches themselves where nothing was drawn.
        elo_once: The rating after one pass over the matches themselves.
        bradley_terry: Rating by maximum likelihood, on Elo's scale; without an interval where it is not `bounded`.
        bounded: Whether the matches bound that rating (`held_together`); where they do not, for instance because the
            model won all of them, it is as far from the others as the regularisation puts it.
        controlled: The same with length or position held fixed; None where that was not asked.
        win_share: Share of its matches that it won, ties half.
        against_reference: Share of its decided matches with the reference that it won; not defined without one.
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
    """Effect of a control: the factor by which it multiplies the odds to win."""

    control: Control
    odds: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTable:
    """Ratings of models.

    Attributes:
        models: The highest first, by the controlled rating where there is one, else by Bradley and Terry's; models
            without a match last.
        regularised: Whether the wins do not connect all models (`Strengths.regularised`): ratings are then drawn
            towards the mean, and models that no chain of wins joins are not comparable.
        regularised_draws: Draws in which they do not.
        resamples: Draws in all.
        instructions: Instructions that were drawn.
        effects: Of the controls.
        won: float64[models, models] in the order of `models`, matches that the row's model won against the column's.
        tied: float64[models, models], their ties.
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
    """What is held fixed in a fit.

    Attributes:
        names: One at least.
        ordered: The matches of the fit: one for each order in which a pair was shown; None: those of the others. It
            numbers the instructions alike.
    """

    names: Sequence[Control]
    ordered: Matches | None = None


def rate(  # noqa: PLR0913 - the matches, and what may be said of the fits and draws
    matches: Matches,
    *,
    reference: str | None = None,
    anchor: str | None = None,
    controls: Controls | None = None,
    resamples: int = 1000,
    seed: int = 0,
    with_elo: bool = True,
) -> RatingTable:
    """Rates models: Elo, Bradley and Terry's strengths, shares of wins.

    Args:
        matches: One a pair of answers.
        reference: The model that win rates are against.
        anchor: The model whose rating by maximum likelihood is 1000; None: the mean of all models is.
        controls: What is held fixed in a further fit; None: there is none.
        resamples: Draws of whole instructions.
        seed: Of draws and orders.
        with_elo: Whether Elo is wanted, which takes the time; where not, its figures are not defined.

    Raises:
        ValueError: There is no match, or `reference` or `anchor` names no model.
        NotIdentifiedError: Of `controlled_fit`.
    """
    if not len(matches):
        raise ValueError("there are no matches to rate models by")
    numbers = {name: number for number, name in enumerate(matches.models)}
    if unknown := [name for name in (reference, anchor) if name is not None and name not in numbers]:
        raise ValueError(f"there is no model {unknown[0]!r}; the models are: {', '.join(map(str, numbers))}")
    fixed = None if anchor is None else numbers[anchor]
    against = None if reference is None else numbers[reference]
    strata = np.zeros(matches.instruction_count, dtype=np.intp)

    def chunks() -> Iterator[NDArray[np.float64]]:
        """The same draws each time; of many instructions all at once would take gigabytes."""
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
    # Draws spread by what the matches say, and of these ratings they say nothing.
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
    """What counts give, in each draw of a chunk; float64[draws, models]."""

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
    """Over draws, of those in which there is a value; NaN where there is none in any."""
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
