"""Options that several commands take (files, choices, groups of rows), and the ends of their help."""

from __future__ import annotations

import functools
import math
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from typing_extensions import override

from gradewire_cli.problems import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Command = TypeVar("Command", bound="Callable[..., Any]")

# A file that is read, and one that is written.
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)

FailOn = Literal["failure", "no-score", "never"]

Grouping = tuple[str, ...]
"""Columns whose values together name a group."""


class FiniteRange(click.FloatRange):
    """A number within bounds; neither inf nor nan, which every comparison with a bound lets pass."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


def choice_option(*names: str, among: Sequence[str], about: str) -> Callable[[Command], Command]:
    """Return an option with one of these values; the first is its default."""
    return click.option(*names, type=click.Choice(among), default=among[0], help=about)


fail_on_option = choice_option(
    "--fail-on",
    among=get_args(FailOn),
    about="Exit 1 on rows that failed, on rows without a score (empty predictions too), or never.",
)


def written_options(given: Mapping[str, object]) -> list[str]:
    """Return options as a command line has them, without those that say nothing."""
    return [word for option, value in given.items() if value for word in (option, str(value))]


def option_group(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, arguments or further groups, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def help_text(name: str) -> str:
    """Return a text of help.toml: the end of a command's --help, or a block that several have."""
    text: str = _help_texts()[name]["text"]
    return text


def epilog(command: str, *, failed_rows: str = "", condition: str = "", **blocks: str) -> str:
    """Return the end of a command's --help, with columns, exit codes (as `exit_codes`) and these blocks in it."""
    codes = exit_codes(failed_rows=failed_rows, condition=condition)
    return help_text(command).format(columns=help_text("columns"), exit_codes=codes, **blocks)


def column_lines(usual: Mapping[str, Sequence[str]]) -> str:
    """Return a line for each field with the columns in which it may stand."""
    width = max(map(len, usual)) + 1
    return "\n".join(f"  {name:<{width}} {' '.join(columns)}" for name, columns in usual.items())


@functools.cache
def _help_texts() -> dict[str, Any]:
    return tomllib.loads((resources.files("gradewire_cli") / "help.toml").read_text(encoding="utf-8"))


def check_resume(options: Mapping[str, Any], out: str | Path | None) -> None:
    """Refuse --resume with --overwrite, and either where no file is written; raises click.UsageError."""
    if options["resume"] and options["overwrite"]:
        raise click.UsageError("--resume and --overwrite exclude each other: leave one out")
    if out is None and (options["resume"] or options["overwrite"]):
        raise click.UsageError("--resume and --overwrite need --out FILE")


grouping_options = option_group(
    click.option(
        "--by",
        "grouped_by",
        metavar="COLUMN,…",
        multiple=True,
        help="Group the means by model, dataset, group, file or any column; model+dataset: by both; repeatable.",
    ),
    click.option(
        "--baseline", metavar="VALUE", help="With --by: compare the others with this value. Default: the first in FILE."
    ),
)


def read_groupings(given: Sequence[str], option: str = "--by") -> tuple[Grouping, ...]:
    """Read --by, or the option that is called so for the messages.

    Raises:
        click.UsageError: A name is missing, or stands twice in one group.
    """
    groupings = []
    for written in (part for text in given for part in text.split(",")):
        columns = tuple(name.strip() for name in written.split("+"))
        if not all(columns):
            raise click.UsageError(f"{option} {','.join(given)}: write COLUMN, COLUMN,COLUMN or COLUMN+COLUMN")
        if len(set(columns)) < len(columns):
            raise click.UsageError(f"{option} {written}: a column stands there twice")
        groupings.append(columns)
    return tuple(dict.fromkeys(groupings))


def groupings_of(options: Mapping[str, Any]) -> tuple[Grouping, ...]:
    """Read `grouping_options`; empty without --by, and for commands that do not have it."""
    if "grouped_by" not in options:
        return ()
    groupings = read_groupings(options["grouped_by"])
    if options["baseline"] is not None and not groupings:
        raise click.UsageError("--baseline says what --by compares with: give --by too")
    return groupings


def written(grouping: Grouping) -> str:
    """Return a grouping as --by takes it."""
    return "+".join(grouping)
