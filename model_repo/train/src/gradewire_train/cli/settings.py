"""Options of all trainings: one for each setting of a recipe, the recipe's name, folder and checkpoints of a run."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any

import click

from gradewire_models.cli.errors import needs
from gradewire_models.cli.options import WHEELS_OPTION
from gradewire_models.errors import ModelError
from gradewire_proto.conventions.exit_codes import ExitCode
from gradewire_train.recipes.recipe import CHOICES, sections, specs
from gradewire_train.recipes.recipe_file import option, shipped_recipes

Command = Callable[..., None]


def setting_options(recipe: type) -> Callable[[Command], Command]:
    """Adds the options of a kind of recipe, each with its explanation as help."""

    def add(command: Command) -> Command:
        for table, kind in reversed(sections(recipe).items()):
            for name, spec in reversed(specs(kind).items()):
                kept = type(spec.default)
                shown = ("none" if kept is tuple else spec.default) if spec.default != () else "all"
                command = click.option(
                    option(name),
                    name,
                    type=click.Choice(CHOICES[name]) if name in CHOICES else str if kept is tuple else kept,
                    multiple=kept is tuple,
                    help=f"{spec.metadata['help']}  [recipe: {table}.{name}, default {shown}]",
                )(command)
        return command

    return add


def training_options(recipe: type) -> Callable[[Command], Command]:
    """Adds the options of every training but its settings."""
    options = (
        click.option(
            "--out",
            "directory",
            required=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder for checkpoints and, in the end, the trained weights with their card.",
        ),
        _recipe_option(recipe),
        click.option(
            "--resume", is_flag=True, help="Go on from the checkpoint in --out, to the same weights bit for bit."
        ),
        click.option(
            "--checkpoint-every", type=click.IntRange(min=1), default=100, show_default=True, help="Steps between."
        ),
        WHEELS_OPTION,
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def _recipe_option(recipe: type) -> Callable[[Command], Command]:
    """The option ``--recipe``: a file, or one of the shipped recipes of a kind by its name."""
    shipped = shipped_recipes(recipe)

    def path(_context: click.Context, _option: click.Parameter, value: str | None) -> Path | None:
        if value is None or Path(value).is_file():
            return None if value is None else Path(value)
        if value not in shipped:
            raise click.BadParameter(f"{value!r} is no file and no recipe of gradewire's ({', '.join(shipped)})")
        return shipped[value]

    found: Callable[[Command], Command] = click.option(
        "--recipe",
        "recipe_path",
        metavar="FILE|NAME",
        callback=path,
        help=f"TOML with any of the settings below, or one that is shipped: {', '.join(shipped)}. "
        "An option overrules it.",
    )
    return found


@contextmanager
def training_imports() -> Iterator[None]:
    """Around the import of a training; raises MissingPackageError where the extra `train` is not installed."""
    # A training talks to no hub, and the libraries are not to try; they read this when they are imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with needs("train", "training"):
        yield


def train_as(request: type[Any], run: Callable[[Any], bool], given: dict[str, Any]) -> None:
    """Trains with a command's options: those that `request` has as fields, and settings, which are all others.

    Raises:
        click.ClickException: It cannot be done; the message says what to do.
        click.exceptions.Exit: It was interrupted, and left a checkpoint.
    """
    own = {each.name: given.pop(each.name) for each in fields(request) if each.name != "settings"}
    # An option that may be repeated is an empty tuple where it is not given.
    settings = {name: value for name, value in given.items() if value is not None and value != ()}
    try:
        finished = run(request(**own, settings=settings))
    except (ModelError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if not finished:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)
