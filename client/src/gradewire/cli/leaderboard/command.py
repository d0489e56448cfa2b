"""`gradewire leaderboard`: rates models by verdicts on pairs of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.input.files import InputFile, input_file, input_options, named_columns
from gradewire.cli.leaderboard.people import voted
from gradewire.cli.leaderboard.reading import PAIR_COLUMNS
from gradewire.cli.leaderboard.result import RatingOptions, leaderboard_of
from gradewire.cli.leaderboard.tables import further, headline, notes
from gradewire.cli.leaderboard.verdicts import Verdicts
from gradewire.cli.options.group import INPUT_FILE, OUTPUT_FILE
from gradewire.cli.options.labelled import draw_options
from gradewire.cli.output.files import FigureFiles, all_tables_option, figure_file_options
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.output.tables import FURTHER_TABLES, show_figures
from gradewire.cli.problems import InputError, exit_codes
from gradewire.cli.run.labelled_run import described_draws
from gradewire.ratings import CONTROLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.leaderboard.result import Leaderboard
    from gradewire.ratings import Control

RESAMPLES = 1000


def _controls(_: click.Context, __: click.Parameter, value: str | None) -> tuple[Control, ...]:
    given = [each.strip() for each in (value or "").split(",") if each.strip()]
    if unknown := [each for each in given if each not in CONTROLS]:
        raise click.BadParameter(f"{unknown[0]}: write one or both of {', '.join(CONTROLS)}")
    return tuple(control for control in CONTROLS if control in given)


@click.command(
    "leaderboard",
    epilog=f"""\b
Columns of a file of pairs, by the first of these names that a row has:
{chr(10).join(f"  {name:<15} {' '.join(usual)}" for name, usual in PAIR_COLUMNS.items())}

A winner is model_a, model_b, tie, A, B, both_bad, "tie (bothbad)" or the name of the model; an answer is a text, or a
conversation as a list of messages. Votes are a list of winners, one for each person, or counts.

\b
Examples:
  gradewire leaderboard pairs.jsonl --reference human --html leaderboard.html
  gradewire leaderboard arena.jsonl --control length,position --all-tables
  gradewire leaderboard pairs.jsonl --human votes.jsonl --json leaderboard.json --latex leaderboard.tex

{exit_codes(failed_rows="")}""",
)
@input_options
@click.option("--reference", metavar="MODEL", help="Win rates are against this model; ties are left out of them.")
@click.option("--anchor", metavar="MODEL", help="This model is rated 1000. Default: the mean of all models is.")
@click.option(
    "--control",
    "controls",
    metavar="length,position",
    callback=_controls,
    help="Hold the difference in length or the position of the answers fixed in a further fit, which then orders the "
    "models.",
)
@click.option(
    "--human",
    type=INPUT_FILE,
    help="Pairs with people's votes or winners; how often the judge says the same, and whether it ranks models as they "
    "do. Default: the votes in FILE.",
)
@draw_options(resamples=RESAMPLES)
@all_tables_option
@figure_file_options
@click.option("--html", type=OUTPUT_FILE, help="Write a page here that loads nothing.")
@click.pass_context
def leaderboard_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    reference: str | None,
    anchor: str | None,
    controls: Sequence[Control],
    human: Path | None,
    resamples: int,
    seed: int,
    all_tables: bool,
    html: Path | None,
    **options: Any,
) -> None:
    """Rate models by the judged pairs of FILE: Elo, Bradley-Terry, win rates, with intervals over instructions.

    Pairs without a winner, because the two orders disagree or the verdict could not be read, count as ties and are
    counted.
    """
    files = FigureFiles.of(options)
    names = _pair_names(options["columns"])
    source = input_file({**options, "columns": ()})
    read = source.named_paths | ({"--human": str(human)} if human else {})
    check_outputs([*files.named, ("--html", html)], read)
    verdicts = Verdicts.read(source.records(), names)
    people = _people(verdicts, human, options, names)
    rating = RatingOptions(reference=reference, anchor=anchor, controls=controls, resamples=resamples, seed=seed)
    found = leaderboard_of(verdicts, rating, people)
    tables = [*headline(found, rating), *further(found, rating)]
    aside = [*verdicts.left_out.sentences("rows"), *_human_notes(found, people, human)]
    if all_tables:
        show_figures(tables, notes(found, rating, families=True), aside)
    else:
        show_figures(headline(found, rating), notes(found, rating, families=False), [*aside, FURTHER_TABLES])
    every_note = [*notes(found, rating, families=True), *aside]
    files.write(_document(source, found, rating), tables, every_note)


def _pair_names(given: Sequence[str]) -> dict[str, Sequence[str]]:
    mapped = named_columns("--map", given, PAIR_COLUMNS)
    return {name: (mapped[name],) if name in mapped else usual for name, usual in PAIR_COLUMNS.items()}


def _people(
    verdicts: Verdicts, human: Path | None, options: Mapping[str, Any], names: Mapping[str, Sequence[str]]
) -> Verdicts | None:
    """The votes of the file of people, or of the pairs themselves; None without any."""
    if human is None:
        with_votes = [pair for pair in verdicts.pairs if pair.votes]
        return voted(with_votes) if with_votes else None
    read = Verdicts.read(input_file({**options, "columns": (), "files": (str(human),)}).records(), names)
    found = voted(read.pairs)
    if not found.pairs:
        raise InputError(f"--human {human}: {'; '.join(read.left_out.sentences('rows')) or 'there is no vote'}")
    found.left_out = read.left_out
    return found


def _human_notes(found: Leaderboard, people: Verdicts | None, human: Path | None) -> list[str]:
    if people is None:
        return []
    left_out = people.left_out.sentences("rows of people")
    if found.people is None:
        return [*left_out, f"--human {human}: none of its pairs is among those of the leaderboard"]
    strata = found.people.strata
    counts = {
        "people know pairs that the judge does not": found.people.unmatched,
        "pairs of people were left out: no majority": strata.no_majority,
        "pairs of people were left out: most call them a tie": strata.voted_tie,
    }
    return [*left_out, *(f"{number} {what}" for what, number in counts.items() if number)]


def _document(source: InputFile, found: Leaderboard, options: RatingOptions) -> dict[str, Any]:
    read, agree = found.verdicts.both_orders()
    ratings = found.ratings
    return {
        "file": source.name,
        "pairs": len(found.verdicts.pairs),
        "instructions": ratings.instructions,
        "left_out": dict(found.verdicts.left_out.counts),
        "without_winner": dict(found.verdicts.without_winner),
        "both_orders": {"pairs": read, "same_winner": agree},
        "reference": options.reference,
        "anchor": options.anchor,
        "controls": list(options.controls),
        "bootstrap": described_draws(options.resamples, options.seed, unit="instruction"),
        "regularised": ratings.regularised,
        "regularised_draws": ratings.regularised_draws,
        "models": ratings.models,
        "effects": ratings.effects,
        "wins": {"models": [line.model for line in ratings.models], "won": ratings.won.tolist()},
        "ties": ratings.tied.tolist(),
        "position_bias": found.position,
        "length_bias": found.length,
        "families": {family: table.models for family, table in found.families.items()},
        "human": found.people,
    }
