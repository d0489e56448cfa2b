"""One option for each setting of a recipe, and the option that names a recipe."""

from collections.abc import Callable
from pathlib import Path

import click

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


def recipe_option(recipe: type) -> Callable[[Command], Command]:
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
