"""``gradewire models train grader``: a cross-encoder that grades, trained on drawn rows and on rows of the user's."""

import math
from pathlib import Path
from typing import Any

import click

from gradewire_train.cli.settings import setting_options, train_as, training_imports, training_options
from gradewire_train.cli.texts import FILE, WORDNET_OPTION
from gradewire_train.recipes.grader_recipe import GraderRecipe


def _fold(_context: click.Context, _option: click.Parameter, given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    number, slash, count = given.partition("/")
    if (
        not slash
        or not (number.isdecimal() and count.isdecimal())
        or not 1 <= int(number) <= int(count)
        or int(count) < 2
    ):
        raise click.BadParameter(f"{given!r}: K/N is expected, as in 1/5, with K from 1 to N and N at least 2")
    return int(number), int(count)


def _finite(_context: click.Context, _option: click.Parameter, given: float) -> float:
    if not math.isfinite(given):
        raise click.BadParameter(f"{given} is no number above 0; 1 leaves logits as they are")
    return given


@click.command()
@training_options(GraderRecipe)
@click.option(
    "--rows",
    type=FILE,
    multiple=True,
    help="Labelled rows in JSON lines: question, references, prediction, label from 0 (wrong) to 1 (right), or labels "
    "of several people. Sources (the field dataset, else the file) weigh the same. Repeatable.",
)
@click.option(
    "--half",
    type=click.Choice(["a", "b"]),
    help="Only rows whose question is in this split: a, to fit, or b, held out.",
)
@click.option(
    "--leave-out-fold",
    "left_out",
    metavar="K/N",
    callback=_fold,
    help="Leave out the questions of fold K of N, and write the logits of their rows to logits.jsonl.",
)
@click.option(
    "--score", type=FILE, multiple=True, help="Labelled rows that only get logits, in logits.jsonl. Repeatable."
)
@click.option(
    "--start",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Go on from a grader that was trained before: a folder that this command left in its --out.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    callback=_finite,
    help="Logits are divided by it before they are probabilities.",
)
@WORDNET_OPTION
@setting_options(GraderRecipe)
def grader(**given: Any) -> None:
    """Train a grader: an encoder that reads question, reference and answer together and says how right the answer is.

    Without --rows it trains on drawn rows alone (`gradewire models train grader-texts` shows them). What comes out is
    an adapter with a head (``gradewire models build --adapter OUT --name NAME all-MiniLM-L6-v2``). Ctrl-C ends it after
    the step that it is in and leaves a checkpoint; --resume goes on from it.
    """
    with training_imports():
        from gradewire_train.grader.command import Fold, Request, run  # noqa: PLC0415 - needs the extra, takes seconds
    if given["left_out"] is not None:
        number, count = given["left_out"]
        given["left_out"] = Fold(number=number, count=count)
    train_as(Request, run, given)
