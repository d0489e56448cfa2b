"""The command ``gradewire models train``."""

from typing import Any

import click

from gradewire_train.cli.grader import grader
from gradewire_train.cli.grader_texts import grader_texts
from gradewire_train.cli.settings import setting_options, train_as, training_imports, training_options
from gradewire_train.cli.texts import (
    COLUMN_OPTION,
    FILE,
    NLI_OPTION,
    QUESTIONS_OPTION,
    SKIP_OPTION,
    WORDNET_OPTION,
    texts,
)
from gradewire_train.examples import GROUPS, TASKS
from gradewire_train.recipes.recipe import Recipe


@click.group()
def train() -> None:
    """Train encoders for the metrics `sfve` and `grader`, and look at what they are trained on."""


train.add_command(texts)
train.add_command(grader_texts)
train.add_command(grader)


@train.command()
@training_options(Recipe)
@QUESTIONS_OPTION
@NLI_OPTION
@SKIP_OPTION
@COLUMN_OPTION
@WORDNET_OPTION
@click.option("--examples", "examples_path", type=FILE, help="Ready examples in JSON lines; nothing else is read then.")
@click.option("--dev", type=FILE, help="JSON lines with question, references, prediction, label: they select the step.")
@click.option(
    "--dev-half",
    type=click.Choice(["a", "b"]),
    help="Only dev rows whose field half is this: a, the fit split, or b, held out.",
)
@click.option("--dev-rows", type=click.IntRange(min=0), default=600, show_default=True, help="At most so many; 0: all.")
@click.option("--evaluate-every", type=click.IntRange(min=1), default=100, show_default=True, help="Steps between.")
@click.option("--only", multiple=True, metavar="TASK", help=f"Train on this alone: {', '.join(TASKS)}. Repeatable.")
@click.option("--without", multiple=True, metavar="TASK", help=f"Leave out; a group is all of it: {', '.join(GROUPS)}.")
@setting_options(Recipe)
def sfve(**given: Any) -> None:
    """Train an encoder for SFVE by contrast: answers that mean the same against answers that only look it.

    Without files it trains on texts made from WordNet; with your own questions and pairs, on those as well. What comes
    out is an adapter (``gradewire models build --adapter OUT BASE``) or, with --method full, a folder
    (``gradewire models export OUT``). Ctrl-C ends it after the step (and the look at --dev) that it is in and leaves a
    checkpoint; --resume goes on from it. A second Ctrl-C ends at once; the checkpoint before it stays.
    """
    with training_imports():
        from gradewire_train.run.command import Request, run  # noqa: PLC0415 - needs the extra and takes seconds
    train_as(Request, run, given)
