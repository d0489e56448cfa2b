"""A leaderboard's values and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradewire_cli.leaderboard.published import (
    rank_intervals,
    rank_notes,
    rank_tables,
    ranks_against,
    rating_tables,
)
from gradewire_cli.leaderboard.verdicts import (
    HumanAgreement,
    ModelFamilies,
    Verdicts,
    human_agreement,
)
from gradewire_cli.problems import InputError
from gradewire_cli.results.interval_notes import NamedEstimate, interval_notes
from gradewire_cli.results.tables import Cell, Table, Value, count, estimated, points
from gradewire_stats.ratings import (
    USUAL_SCALE,
    Controls,
    NotIdentifiedError,
    RatingScale,
    family_bias,
    length_bias,
    position_bias,
    rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradewire_cli.scoring.choosers import DrawsOver
    from gradewire_cli.scoring.labelled_run import Draws
    from gradewire_stats.bootstrap import Estimate
    from gradewire_stats.ratings import Bias, Control, ModelRating, PublishedRanks, RatingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingOptions:
    """Options of the ratings.

    Attributes:
        reference: The model against which the other models' win rates are computed, or None.
        anchor: The model with the scale's starting rating. None means that the mean rating is.
        model_families: Families for the control own-family.
        each_vote: Count each annotator's vote as a match. False means that the majority's winner counts.
        draws_over: Units of the bootstrap draws.
        published: Names of printed tables, or paths of files with ratings, to compare with.
        published_gap: Difference above which the order of two published ratings is checked.
    """

    reference: str | None = None
    anchor: str | None = None
    controls: Sequence[Control] = ()
    scale: RatingScale = USUAL_SCALE
    model_families: ModelFamilies = field(default_factory=ModelFamilies)
    each_vote: bool = False
    draws_over: DrawsOver = "instructions"
    published: Sequence[str] = ()
    published_gap: float = 60.0
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Ratings and biases from judged pairs.

    Attributes:
        groups: Ratings by group of instructions, without Elo.
        own_family: The judge's preference for answers of its own model family.
        published: Comparisons with published ratings, by name.
        people: Annotators' agreement with the judge, or None if annotators voted on none of these pairs.
    """

    verdicts: Verdicts
    ratings: RatingTable
    groups: Mapping[str, RatingTable]
    position: Bias
    length: Bias
    own_family: Bias
    published: Mapping[str, PublishedRanks]
    people: HumanAgreement | None


def leaderboard_of(verdicts: Verdicts, options: RatingOptions, people: Verdicts | None = None) -> Leaderboard:
    """Compute a leaderboard's values.

    Raises:
        InputError: There are no pairs, an option names an unknown model, or a control's effect cannot be determined.
    """
    if not verdicts.rated:
        why = [*filter(None, [verdicts.without_winner_sentence()]), *verdicts.left_out.sentences("rows")]
        raise InputError(f"found no judged pairs: {'; '.join(why) or 'no rows'}")
    draws: Draws = {"resamples": options.resamples, "seed": options.seed}
    verdicts = verdicts.drawn_over(options.draws_over)
    rated = verdicts.each_vote() if options.each_vote else verdicts
    ordered, named = rated.ordered(options.model_families), (options.reference, options.anchor)
    controls = Controls(options.controls, ordered) if options.controls else None
    scale = options.scale
    try:
        ratings = rate(rated.matches(), reference=named[0], anchor=named[1], controls=controls, scale=scale, **draws)
    except NotIdentifiedError as error:
        raise InputError(f"--control {error}") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    groups = {}
    for group in verdicts.groups:
        part = rated.of_group(group)
        reference, anchor = (name if name in part.models else None for name in named)
        groups[group] = rate(part.matches(), reference=reference, anchor=anchor, scale=scale, with_elo=False, **draws)
    agreement = None
    if people is not None:
        people = people.drawn_over(options.draws_over)
        agreement = human_agreement(verdicts, people, each_vote=options.each_vote, **draws)
    return Leaderboard(
        verdicts=verdicts,
        ratings=ratings,
        groups=groups,
        position=position_bias(ordered, **draws),
        length=length_bias(rated.matches(), **draws),
        own_family=family_bias(ordered, **draws),
        published=ranks_against(rated.matches(), options.published, gap=options.published_gap, **draws),
        people=agreement,
    )


def headline(result: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield the tables to show by default, without empty tables."""
    yield ratings(result, options)
    yield from rank_tables(result.published, options.published_gap)
    yield from biases(result)
    yield from people(result)


def optional_tables(result: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield the win matrix and the tables by group."""
    yield win_matrix(result)
    yield from rating_tables(result.published, result.ratings)
    yield from group_tables(result, options)


def _columns(options: RatingOptions) -> list[tuple[str, str, Callable[[Estimate], Value], str]]:
    """Return the rating table's columns: head, field of `ModelRating`, formatter and meaning."""
    held, reference = " and ".join(options.controls), options.reference
    controlled = (f"held fixed:\n{held}", "controlled", points, f"rating with {held} held fixed")
    against = (f"won against\n{reference}", "against_reference", estimated, "ties left out; n matches are left")
    return [
        *([controlled] if options.controls else []),
        ("Bradley-Terry", "bradley_terry", points, "maximum-likelihood rating on Elo's scale"),
        ("Elo", "elo", points, "median over draws of the instructions, each draw in a different order"),
        ("win share", "win_share", estimated, "share of matches won; ties count half"),
        *([against] if reference is not None else []),
    ]


def ratings(result: Leaderboard, options: RatingOptions) -> Table:
    """Return the table of ratings, best model first."""
    columns = _columns(options)
    rows: list[list[Cell]] = [
        [
            count(place),
            line.model,
            *(_rating(line, name, written) for _, name, written, _ in columns),
            count(line.matches),
            count(line.tied),
        ]
        for place, line in enumerate(result.ratings.models, 1)
    ]
    return Table(
        "Ratings",
        ["", "model", *(head for head, *_ in columns), "matches", "ties"],
        rows,
        heads=2,
        explained={head: meaning for head, *_, meaning in columns},
    )


def _rating(line: ModelRating, name: str, written: Callable[[Estimate], Value]) -> Value:
    value = written(getattr(line, name))
    counted = name == "against_reference" and line.decided_against_reference
    return value.beside(f"n={line.decided_against_reference}") if counted else value


def win_matrix(result: Leaderboard) -> Table:
    """Return a table of each model's win share against every other model, best model first."""
    models = [line.model for line in result.ratings.models]
    return Table(
        "Share of matches that the row's model won against the column's model; ties count half",
        ["", *models],
        [
            [model, *(_share(result.ratings, row, column) for column in range(len(models)))]
            for row, model in enumerate(models)
        ],
    )


def group_tables(result: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield tables of ratings and win shares by group, if there are groups."""
    if not result.groups:
        return
    models = [line.model for line in result.ratings.models]
    by_group = {group: {line.model: line for line in table.models} for group, table in result.groups.items()}
    for title, name, written in (
        ("Bradley-Terry ratings by group", "bradley_terry", points),
        ("Win shares by group; ties count half", "win_share", estimated),
        (f"Won against {options.reference}, by group", "against_reference", estimated),
    ):
        if name == "against_reference" and options.reference is None:
            continue
        rows: list[list[Cell]] = []
        for group, lines in by_group.items():
            cells = (written(getattr(lines[model], name)) if model in lines else Value("-") for model in models)
            rows.append([group, *cells])
        yield Table(title, ["group", *models], rows)


def notes(result: Leaderboard, options: RatingOptions, *, groups: bool) -> list[str]:
    """Return notes on the ratings. With `groups`, also return notes on the intervals by group."""
    lines = list(_basis(result, options))
    if missing := result.verdicts.without_winner_sentence():
        lines.append(missing)
    if unrated := result.verdicts.unrated_models:
        lines.append(f"no rating, because no pair has a winner: {', '.join(unrated)}")
    if contradictory := result.verdicts.contradictory:
        lines.append(f"{contradictory} pairs count as ties, because their two orders have different verdicts")
    if blank := result.verdicts.lost_blank:
        lines.append(f"in {blank} pairs, a blank answer lost without a judge")
    read, agree = result.verdicts.both_orders()
    if read:
        lines.append(f"both orders have the same winner in {agree} of {read} pairs ({agree / read:.1%})")
    if 2 * agree < read:
        lines.append(
            "for most pairs, swapping the answers changes the winner. So this judge hardly distinguishes these "
            "answers, and the resulting ties affect the ratings more than the models do"
        )
    if result.ratings.regularised:
        lines.append(
            "some models have no chain of wins to every other model. So each model gets half a win and half a loss "
            "against an average model, which pulls ratings towards the mean. Models that no chain of matches connects "
            "are not comparable, and ratings that depend only on the added matches have no interval"
        )
    elif result.ratings.regularised_draws:
        lines.append(
            f"in {result.ratings.regularised_draws} of {result.ratings.resamples} draws, some models have no chain of "
            "wins to every other model, so these draws pull ratings towards the mean"
        )
    if options.controls:
        lines.append(f"models are ordered by ratings with {' and '.join(options.controls)} held fixed")
    lines += rank_notes(result.published)
    return [*lines, *interval_notes(_intervals(result, options, groups=groups))]


def _basis(result: Leaderboard, options: RatingOptions) -> Iterator[str]:
    """Yield notes on the number of pairs and votes, and on the scale."""
    start = f"{options.scale.start:g}"
    scale = f"mean rating {start}" if options.anchor is None else f"{options.anchor} rated {start}"
    units = "instructions" if options.draws_over == "instructions" else "distinct instruction texts"
    yield f"{len(result.verdicts.rated)} pairs on {result.ratings.instructions} {units}, {scale}"
    if options.each_vote:
        votes = sum(len(pair.votes) for pair in result.verdicts.pairs if pair.by_votes)
        yield f"each of {votes} votes is a match"
    if options.scale != USUAL_SCALE:
        yield f"Elo's K is {options.scale.k:g}, and a lead of {options.scale.scale:g} points means odds of 10 to 1"


def _share(table: RatingTable, row: int, column: int) -> Value:
    wins, ties, losses = table.won[row, column], table.tied[row, column], table.won[column, row]
    all_ = wins + ties + losses
    if row == column or not all_:
        return Value("-")
    share = float((wins + ties / 2) / all_)
    return Value(f"{share:.2f}", share, notes=(f"of {all_:.0f}",))


def _influences(result: Leaderboard) -> list[tuple[str, Bias, Control]]:
    return [
        ("shown first", result.position, "position"),
        ("longer", result.length, "length"),
        ("of the judge's family", result.own_family, "own-family"),
    ]


def biases(result: Leaderboard) -> Iterator[Table]:
    """Yield the table of biases if a bias is known."""
    odds: dict[str, Value] = {effect.control: estimated(effect.odds) for effect in result.ratings.effects}
    rows: list[list[Cell]] = [
        [name, estimated(bias.won), odds.get(control, Value("-")), Value(f"{bias.matches:g}", bias.matches)]
        for name, bias, control in _influences(result)
        if bias.matches
    ]
    if rows:
        yield Table("Influences besides the answer", ["", "share won", "odds, held fixed", "matches"], rows)


def people(result: Leaderboard) -> Iterator[Table]:
    """Yield the tables of agreement with annotators, if there are annotators."""
    if result.people is None:
        return
    strata, systems = result.people.strata.evaluators[0].strata, result.people.systems
    yield Table(
        "Annotators' majority votes that evaluators reproduced, by size of the majority",
        ["", *(f"{stratum.stratum}\n{stratum.pairs} pairs" for stratum in strata), "ties"],
        [
            [each.evaluator, *(estimated(stratum.reproduced) for stratum in each.strata), count(each.strata[-1].ties)]
            for each in result.people.strata.evaluators
        ],
    )
    yield Table(
        "Ratings by the judge and by annotators",
        ["", "Kendall", "Spearman", "Pearson", "models"],
        [["correlation", *map(estimated, (systems.kendall, systems.spearman, systems.pearson)), count(systems.models)]],
    )


def _intervals(result: Leaderboard, options: RatingOptions, *, groups: bool) -> Iterator[NamedEstimate]:
    for line in result.ratings.models:
        for head, name, *_ in _columns(options):
            yield NamedEstimate(line.model, head.replace("\n", " "), "all pairs", getattr(line, name))
    for name, bias, control in _influences(result):
        # Families are known only if the options name them.
        if bias.matches or control != "own-family":
            yield NamedEstimate(name, "share won", "all pairs", bias.won)
    yield from rank_intervals(result.published)
    for group, table in result.groups.items() if groups else ():
        for line in table.models:
            yield NamedEstimate(line.model, "Bradley-Terry", group, line.bradley_terry)
