"""The values of a leaderboard and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradewire_cli.leaderboard.verdicts import HumanAgreement, human_agreement
from gradewire_cli.problems import InputError
from gradewire_cli.results.interval_notes import NamedEstimate, interval_notes
from gradewire_cli.results.tables import Cell, Table, Value, count, estimated, points
from gradewire_stats.ratings import Bias, Control, NotIdentifiedError, RatingTable, length_bias, position_bias, rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.leaderboard.verdicts import Verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingOptions:
    """What the options say of the ratings.

    Attributes:
        reference: The model that win rates are against; None for none.
        anchor: The model whose rating is 1000; None: the mean is.
        controls: What is held fixed.
        resamples: Draws of instructions.
        seed: Of draws, orders of matches, and coins.
    """

    reference: str | None = None
    anchor: str | None = None
    controls: Sequence[Control] = ()
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """A leaderboard.

    Attributes:
        verdicts: What it is made of.
        ratings: Of all pairs.
        families: Of the pairs of each family, without Elo.
        position: How often the answer shown first wins.
        length: How often the longer answer wins.
        people: Agreement with people; None where there are no votes on these pairs.
    """

    verdicts: Verdicts
    ratings: RatingTable
    families: Mapping[str, RatingTable]
    position: Bias
    length: Bias
    people: HumanAgreement | None


def leaderboard_of(verdicts: Verdicts, options: RatingOptions, people: Verdicts | None = None) -> Leaderboard:
    """Computes all figures.

    Raises:
        InputError: There is no pair, an option names no model, or a control cannot be told from the models.
    """
    if not verdicts.pairs:
        raise InputError(
            f"there are no pairs to rate models by: {'; '.join(verdicts.left_out.sentences('rows')) or 'no rows'}"
        )
    resamples, seed = options.resamples, options.seed
    ordered = verdicts.ordered()
    try:
        ratings = rate(
            verdicts.matches(),
            reference=options.reference,
            anchor=options.anchor,
            controls=options.controls,
            ordered=ordered,
            resamples=resamples,
            seed=seed,
        )
    except NotIdentifiedError as error:
        raise InputError(f"--control {error}") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    families = {}
    for family in verdicts.families:
        part = verdicts.of_family(family)
        reference, anchor = (name if name in part.models else None for name in (options.reference, options.anchor))
        families[family] = rate(
            part.matches(), reference=reference, anchor=anchor, with_elo=False, resamples=resamples, seed=seed
        )
    return Leaderboard(
        verdicts=verdicts,
        ratings=ratings,
        families=families,
        position=position_bias(ordered, resamples=resamples, seed=seed),
        length=length_bias(verdicts.matches(), resamples=resamples, seed=seed),
        people=None if people is None else human_agreement(verdicts, people, resamples=resamples, seed=seed),
    )


def headline(found: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield ratings, then biases, then agreement with people where there is some."""
    yield ratings(found, options)
    yield from biases(found)
    yield from people(found)


def optional_tables(found: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield the win matrix, then tables by family."""
    yield win_matrix(found)
    yield from families(found, options)


def ratings(found: Leaderboard, options: RatingOptions) -> Table:
    """Return the ratings, the best model first."""
    controlled = f"held fixed:\n{' and '.join(options.controls)}"
    against = f"won against\n{options.reference}"
    rows: list[list[Cell]] = []
    for place, line in enumerate(found.ratings.models, 1):
        rows.append(
            [
                count(place),
                line.model,
                *([points(line.controlled)] if line.controlled is not None else []),
                points(line.bradley_terry),
                points(line.elo),
                estimated(line.win_share),
                *([estimated(line.against_reference)] if options.reference is not None else []),
                count(line.matches),
                count(line.tied),
            ]
        )
    return Table(
        "Ratings",
        [
            "",
            "model",
            *([controlled] if options.controls else []),
            "Bradley-Terry",
            "Elo",
            "win share",
            *([against] if options.reference is not None else []),
            "matches",
            "ties",
        ],
        rows,
        heads=2,
        explained={
            controlled: f"rating with {' and '.join(options.controls)} held fixed",
            against: "ties left out",
            "Bradley-Terry": "rating by maximum likelihood, on Elo's scale",
            "Elo": "median over draws of the instructions, each in another order",
            "win share": "share of its matches, ties half",
        },
    )


def win_matrix(found: Leaderboard) -> Table:
    """Return the share of matches that each model won against each other one, in the order of the ratings."""
    models = [line.model for line in found.ratings.models]
    return Table(
        "Share of matches that the row's model won against the column's, ties half",
        ["", *models],
        [
            [
                model,
                *(_share(found.ratings.won, found.ratings.tied, row, column) for column in range(len(models))),
            ]
            for row, model in enumerate(models)
        ],
    )


def families(found: Leaderboard, options: RatingOptions) -> Iterator[Table]:
    """Yield ratings and win shares by family; nothing without families."""
    if not found.families:
        return
    models = [line.model for line in found.ratings.models]
    by_family = {family: {line.model: line for line in table.models} for family, table in found.families.items()}
    for title, name, written in (
        ("Bradley-Terry ratings by family", "bradley_terry", points),
        ("Win shares by family, ties half", "win_share", estimated),
        (f"Won against {options.reference}, by family", "against_reference", estimated),
    ):
        if name == "against_reference" and options.reference is None:
            continue
        yield Table(
            title,
            ["family", *models],
            [
                [
                    family,
                    *(written(getattr(lines[model], name)) if model in lines else Value("-") for model in models),
                ]
                for family, lines in by_family.items()
            ],
        )


def notes(found: Leaderboard, options: RatingOptions, *, families: bool) -> list[str]:
    """What is to be known of the figures, in sentences."""
    lines = [f"{len(found.verdicts.pairs)} pairs on {found.ratings.instructions} instructions, {_scale(options)}"]
    if missing := found.verdicts.without_winner:
        listed = ", ".join(f"{status} {times}" for status, times in sorted(missing.items()))
        lines.append(f"{missing.total()} pairs without a winner count as ties: {listed}")
    if blank := found.verdicts.lost_blank:
        lines.append(f"{blank} pairs were lost by a blank answer")
    read, agree = found.verdicts.both_orders()
    if read:
        lines.append(f"both orders have the same winner in {agree} of {read} pairs ({agree / read:.1%})")
    if 2 * agree < read:
        lines.append(
            "most pairs have another winner where the other answer is shown first: this judge hardly tells these "
            "answers apart, and ratings say more of its ties than of the models"
        )
    if found.ratings.regularised:
        lines.append(
            "wins do not lead from every model to every other one: ratings were drawn towards the mean by half a win "
            "and half a loss of each model against an average one; models that no chain of matches joins are not "
            "comparable, and ratings that rest on this alone have no interval"
        )
    elif found.ratings.regularised_draws:
        lines.append(
            f"in {found.ratings.regularised_draws} of {found.ratings.resamples} draws wins do not lead from every "
            "model to every other one: ratings were drawn towards the mean there"
        )
    if options.controls:
        lines.append(f"models are ordered by the ratings with {' and '.join(options.controls)} held fixed")
    return [*lines, *interval_notes(_intervals(found, options, families=families))]


def _scale(options: RatingOptions) -> str:
    return f"{options.anchor} rated 1000" if options.anchor is not None else "mean rating 1000"


def _share(won: object, tied: object, row: int, column: int) -> Value:
    wins, ties, losses = won[row, column], tied[row, column], won[column, row]  # type: ignore[index]
    all_ = wins + ties + losses
    if row == column or not all_:
        return Value("-")
    share = float((wins + ties / 2) / all_)
    return Value(f"{share:.2f}", share, remarks=(f"of {all_:.0f}",))


def biases(found: Leaderboard) -> Iterator[Table]:
    """Yield the table of what wins beside the answer; nothing where nothing is known."""
    if rows := list(_biases(found)):
        yield Table("What wins beside the answer", ["", "share won", "odds, held fixed", "matches"], rows)


def _biases(found: Leaderboard) -> Iterator[list[Cell]]:
    odds: dict[str, Value] = {effect.control: estimated(effect.odds) for effect in found.ratings.effects}
    each: tuple[tuple[str, Bias, str], ...] = (
        ("shown first", found.position, "position"),
        ("longer", found.length, "length"),
    )
    for name, bias, control in each:
        if bias.matches:
            yield [name, estimated(bias.won), odds.get(control, Value("-")), Value(f"{bias.matches:g}", bias.matches)]


def people(found: Leaderboard) -> Iterator[Table]:
    """Yield agreement with people; nothing without any."""
    if found.people is None:
        return
    strata, systems = found.people.strata.evaluators[0].strata, found.people.systems
    yield Table(
        "People's majority votes reproduced, by how many agree",
        ["", *(f"{stratum.stratum}\n{stratum.pairs} pairs" for stratum in strata), "ties"],
        [
            [each.evaluator, *(estimated(stratum.reproduced) for stratum in each.strata), count(each.strata[-1].ties)]
            for each in found.people.strata.evaluators
        ],
    )
    yield Table(
        "Ratings by the judge and by people",
        ["", "Kendall", "Spearman", "Pearson", "models"],
        [
            [
                "correlation",
                *(estimated(each) for each in (systems.kendall, systems.spearman, systems.pearson)),
                count(systems.models),
            ]
        ],
    )


def _intervals(found: Leaderboard, options: RatingOptions, *, families: bool) -> Iterator[NamedEstimate]:
    for line in found.ratings.models:
        named = {"Bradley-Terry": line.bradley_terry, "Elo": line.elo, "win share": line.win_share}
        if line.controlled is not None:
            named["held fixed"] = line.controlled
        if options.reference is not None:
            named[f"won against {options.reference}"] = line.against_reference
        for name, each in named.items():
            yield NamedEstimate(line.model, name, "all pairs", each)
    for name, bias in (("shown first", found.position), ("longer", found.length)):
        yield NamedEstimate(name, "share won", "all pairs", bias.won)
    for family, table in found.families.items() if families else ():
        for line in table.models:
            yield NamedEstimate(line.model, "Bradley-Terry", family, line.bradley_terry)
