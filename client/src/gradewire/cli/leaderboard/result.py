"""All figures of a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradewire.cli.leaderboard.people import HumanAgreement, human_agreement
from gradewire.cli.problems import InputError
from gradewire.ratings import Bias, Control, NotIdentifiedError, RatingTable, length_bias, position_bias, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.leaderboard.verdicts import Verdicts


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
