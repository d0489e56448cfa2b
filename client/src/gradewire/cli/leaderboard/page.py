"""Makes the HTML page of a leaderboard."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import click

from gradewire.cli.leaderboard.pairs import INCONSISTENT, OK
from gradewire.cli.leaderboard.verdicts import questionable
from gradewire.cli.problems import InputError, named_errors
from gradewire.report import MissingJinjaError, ReportTooLargeError
from gradewire.report.leaderboard import BiasLine, LeaderboardInput, QuestionablePair, write_leaderboard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gradewire.cli.leaderboard.pairs import JudgedPair
    from gradewire.cli.leaderboard.result import Leaderboard, RatingOptions

_QUESTIONABLE = 1000
_WINNERS = {"model_a": "A", "model_b": "B", "tie": "a tie", None: "no verdict"}


def write_page(  # noqa: PLR0913 - what is shown, and where
    path: Path, found: Leaderboard, options: RatingOptions, notes: Sequence[str], *, source: str, by: str, quiet: bool
) -> None:
    """Writes the page.

    Raises:
        InputError: It cannot be written, or what makes it is not installed.
    """
    effects = {effect.control: effect for effect in found.ratings.effects}
    board = LeaderboardInput(
        source=source,
        created=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        by=by,
        pairs=len(found.verdicts.pairs),
        ratings=found.ratings,
        families=found.families,
        reference=options.reference or "",
        controls=options.controls,
        biases=[
            BiasLine(name="shown first", bias=found.position, effect=effects.get("position")),
            BiasLine(name="longer", bias=found.length, effect=effects.get("length")),
        ],
        people=None if found.people is None else (found.people.strata, found.people.systems),
        questionable=[_shown(pair) for pair in questionable(found.verdicts.pairs, most=_QUESTIONABLE)],
        notes=[f"{note[0].upper()}{note[1:]}." for note in notes if note],
    )
    try:
        with named_errors(path):
            size = write_leaderboard(path, board)
    except (MissingJinjaError, ReportTooLargeError) as error:
        raise InputError(f"--html {path}: {error}") from error
    if not quiet:
        click.echo(f"{path}: {size / 1e6:.1f} MB", err=True)


def _shown(pair: JudgedPair) -> QuestionablePair:
    why = {INCONSISTENT: "The two orders have different winners", OK: "The judge is not sure"}
    return QuestionablePair(
        why=why.get(pair.status, f"No verdict: {pair.status}"),
        question=pair.question,
        models=pair.models,
        answers=pair.answers,
        orders=[
            f"{'A' if order.first == 'model_a' else 'B'} first: {_WINNERS[order.winner]}"
            for order in (pair.orders if len(pair.orders) > 1 else ())
        ],
        probability_a=pair.probability_a,
    )
