"""Options for files, choices and groups of rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from typing_extensions import override

from gradewire_cli.options.help import option, stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Command = TypeVar("Command", bound="Callable[..., Any]")

INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)

FailOn = Literal["failure", "no-score", "never"]

Grouping = tuple[str, ...]
"""Names of columns. Rows that have equal values in all of these columns form a group."""


class FiniteRange(click.FloatRange):
    """A finite number within bounds. click.FloatRange alone accepts nan, and also inf if there is no upper bound."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def choice_option(*names: str, among: Sequence[str]) -> Callable[[Command], Command]:
    """Return an option that accepts one of the values in `among`. The first value is the default."""
    return option(*names, type=click.Choice(among), default=among[0])


quiet_option = option("--quiet", is_flag=True)
everyday_quiet_option = option("--quiet", is_flag=True, rare=False)


def seed_option(default: int | None) -> Callable[[Command], Command]:
    """Return the option --seed."""
    return option("--seed", type=click.IntRange(min=0), default=default)


resume_options = stacked(
    option("--resume", is_flag=True),
    option("--overwrite", is_flag=True),
)
rare_resume_options = stacked(
    option("--resume", is_flag=True, rare=True),
    option("--overwrite", is_flag=True),
)
fail_on_option = choice_option("--fail-on", among=get_args(FailOn))


def written_options(given: Mapping[str, object]) -> list[str]:
    """Return options as command-line arguments, without empty options."""
    return [word for name, value in given.items() if value for word in (name, str(value))]


def check_resume(options: Mapping[str, Any], out: str | Path | None) -> None:
    """Raise click.UsageError if --resume and --overwrite are both given, or if one is given without an output file."""
    if options["resume"] and options["overwrite"]:
        raise click.UsageError("--resume and --overwrite are mutually exclusive. Leave one out")
    if out is None and (options["resume"] or options["overwrite"]):
        raise click.UsageError("--resume and --overwrite need --out FILE")


grouping_options = stacked(
    option("--group-by", multiple=True), option("--baseline", rare=True, show_default="the first in FILE")
)


def read_groupings(given: Sequence[str]) -> tuple[Grouping, ...]:
    """Read --group-by.

    Raises:
        click.UsageError: A column name is missing, or one group names a column twice.
    """
    groupings = []
    for written in (part for text in given for part in text.split(",")):
        columns = tuple(name.strip() for name in written.split("+"))
        if not all(columns):
            raise click.UsageError(f"--group-by {','.join(given)}: write COLUMN, COLUMN,COLUMN or COLUMN+COLUMN")
        if len(set(columns)) < len(columns):
            raise click.UsageError(f"--group-by {written} names a column twice. Name it once")
        groupings.append(columns)
    return tuple(dict.fromkeys(groupings))


def groupings_of(options: Mapping[str, Any]) -> tuple[Grouping, ...]:
    """Read `grouping_options`. Return () for commands without these options."""
    if "group_by" not in options:
        return ()
    groupings = read_groupings(options["group_by"])
    if options.get("baseline") is not None and not groupings:
        raise click.UsageError("--baseline needs --group-by. Give both")
    return groupings


def written(grouping: Grouping) -> str:
    """Return a grouping in the format of --group-by."""
    return "+".join(grouping)
