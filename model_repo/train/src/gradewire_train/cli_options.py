"""The options that the commands of ``gradewire models train`` share."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import click
import cloup
from pydantic.fields import FieldInfo

from gradewire_models.cli.help import Command, RareOption, rare_option
from gradewire_models.cli.options import WHEELS_OPTION, grouped, needs, without_traceback
from gradewire_proto.exit_codes import ExitCode
from gradewire_train.examples import Files
from gradewire_train.recipes import option, sections, settings_of, shipped_recipes

_EVERYDAY = frozenset({"base", "method", "steps", "batch_size", "learning_rate"})
"""Settings of recipes that --help shows. --help-all shows every setting."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

WORDNET_OPTION = rare_option(
    "--wordnet",
    type=click.Path(file_okay=False, path_type=Path),
    help="Read WordNet's files in this directory; by default $WNSEARCHDIR, $WNHOME/dict or /usr/share/wordnet.",
)

NOTICE_OPTION = rare_option(
    "--notice",
    default="",
    metavar="TEXT",
    help="Add TEXT to the model card, for example the licences of your files.",
)


def number_option(
    flag: str, default: int, least: int, text: str, kind: type[click.Option] = click.Option
) -> Callable[[Command], Command]:
    """Return an option for a whole number of at least `least`."""
    return click.option(
        flag, type=click.IntRange(min=least), default=default, show_default=True, metavar="N", help=text, cls=kind
    )


def output_option(action: str, reader: str) -> Callable[[Command], Command]:
    """Return --out for a file of JSON lines that the command `reader` reads."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        metavar="FILE",
        help=f"{action} to FILE as JSON lines for {reader}, and print only counts.",
    )


def setting_options(recipe: type) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for every setting in a recipe, with a group for each table."""

    def setting(table: str, name: str, info: FieldInfo) -> Callable[[Command], Command]:
        choices, several = get_args(info.annotation), info.default == ()
        value = str if several else click.Choice(choices) if choices else type(info.default)
        text = f"{info.description}  [recipe: {table}.{name}, default {'all' if several else info.default}]"
        shown = click.Option if name in _EVERYDAY else RareOption
        return click.option(option(name), name, type=value, multiple=several, help=text, cls=shown)

    groups = [
        cloup.option_group(
            f"Settings in [{table}]", *(setting(table, name, info) for name, info in settings_of(kind).items())
        )
        for table, kind in sections(recipe).items()
    ]
    return lambda command: reduce(lambda made, group: group(made), reversed(groups), command)


def training_options(recipe: type) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of all training commands, except the settings."""
    return cloup.option_group(
        "Training",
        click.option(
            "--out",
            "directory",
            required=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Write checkpoints, and later the trained weights and their card, into this folder.",
        ),
        _recipe_option(recipe),
        click.option(
            "--resume",
            is_flag=True,
            help="Continue from the checkpoint in --out. The weights equal those of an uninterrupted run, bit for bit.",
        ),
        click.option(
            "--device",
            type=click.Choice(["cpu", "cuda"]),
            default="cpu",
            show_default=True,
            help="Train on the processor or on the first GPU. A GPU is about a hundred times as fast.",
        ),
        rare_option(
            "--checkpoint-every",
            type=click.IntRange(min=1),
            default=100,
            show_default=True,
            metavar="N",
            help="Save a checkpoint every N steps.",
        ),
        WHEELS_OPTION,
    )


def _recipe_option(recipe: type) -> Callable[[Command], Command]:
    shipped = shipped_recipes(recipe)

    def path(_context: click.Context, _option: click.Parameter, value: str | None) -> Path | None:
        if value is None or Path(value).is_file():
            return None if value is None else Path(value)
        if value not in shipped:
            raise click.BadParameter(f"{value!r} is neither a file nor a recipe of gradewire ({', '.join(shipped)})")
        return shipped[value]

    found: Callable[[Command], Command] = click.option(
        "--recipe",
        "recipe_path",
        metavar="FILE|NAME",
        callback=path,
        help=f"Read the settings below from this TOML file or shipped recipe ({', '.join(shipped)}). Options override "
        "the recipe.",
    )
    return found


@contextmanager
def training_imports() -> Iterator[None]:
    """Wrap the imports for training.

    Raises:
        MissingPackageError: The extra `train` is not installed.
    """
    # Training needs no model hub. The libraries read this variable when they are imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with needs("train", "training"):
        yield


def train_as(request: type[Any], run: Callable[[Any], bool], given: dict[str, Any]) -> None:
    """Train with a command's options; options that are not fields of `request` become `settings`.

    Raises:
        click.ClickException: The training failed.
        click.exceptions.Exit: The training was interrupted and left a checkpoint.
    """
    own = {each.name: given.pop(each.name) for each in fields(request) if each.name in given}
    # A repeatable option that is not given is an empty tuple.
    settings = {name: value for name, value in given.items() if value is not None and value != ()}
    with without_traceback(OSError):
        finished = run(request(**own, settings=settings))
    if not finished:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [each for each, (name, _, field) in zip(given, pairs, strict=True) if not name or not field]:
        raise click.BadParameter(f"{wrong[0]!r} must have the format OURS=YOURS, for example answers=labels")
    return {name: field for name, _, field in pairs}


FILES_OPTIONS = grouped(
    "files",
    Files,
    cloup.option_group(
        "Your files",
        click.option(
            "--questions",
            type=FILE,
            multiple=True,
            help="Add your own VQA or QA set: JSON lines with question, and answer, answers or references; or the two "
            "official files of VQA. Repeatable.",
        ),
        # `nli` is already the name of a setting.
        click.option(
            "--nli-pairs",
            type=FILE,
            multiple=True,
            help="Add your own sentence pairs in JSON lines or tables with tabs. Repeatable.",
        ),
        rare_option(
            "--half",
            type=click.Choice(["a", "b"]),
            help="Use only questions of your files in this half: a (to fit) or b (held out).",
        ),
        rare_option("--skip-bad-lines", is_flag=True, help="Skip and count lines in these files that cannot be read."),
        rare_option(
            "--column",
            "columns",
            multiple=True,
            metavar="OURS=YOURS",
            callback=_columns,
            help="Read our field OURS from your field YOURS. Repeatable. Fields: question, answer, answers, premise, "
            "hypothesis, label, anchor, positive, negative, negatives.",
        ),
    ),
)
