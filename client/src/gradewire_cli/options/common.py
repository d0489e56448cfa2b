"""Options that several commands take (files, choices, groups of rows), and the ends of their help."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from cloup import option_group
from typing_extensions import override

from gradewire_cli.options.help import option

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


def stacked(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, arguments or groups of options, in this order."""

    def add(command: Command) -> Command:
        for each in reversed(options):
            command = each(command)
        return command

    return add


def choice_option(*names: str, among: Sequence[str], about: str, rare: bool = False) -> Callable[[Command], Command]:
    """Return an option with one of these values; the first is its default."""
    return option(*names, type=click.Choice(among), default=among[0], help=about, rare=rare)


quiet_option = option("--quiet", is_flag=True, help="Print the result alone: no progress, no summary.")


def seed_option(default: int | None, about: str = "") -> Callable[[Command], Command]:
    """Return --seed; `about` says more of what is drawn."""
    return option(
        "--seed",
        type=click.IntRange(min=0),
        default=default,
        help=f"Draw with this seed: the same seed, the same draws.{about}",
        rare=True,
    )


def dry_run_option(about: str) -> Callable[[Command], Command]:
    """Return --dry-run; `about` says what a trial run does."""
    return option("--dry-run", is_flag=True, help=f"Make a trial run: {about}.")


def where_option(**attributes: Any) -> Callable[[Command], Command]:
    """Return --where."""
    return option(
        "--where",
        metavar="COLUMN=VALUE,…",
        multiple=True,
        help="Use only the rows with these values. Repeatable.",
        **attributes,
    )


resume_options = stacked(
    option("--resume", is_flag=True, help="Continue where an earlier run stopped. Retry rows that timed out."),
    option("--overwrite", is_flag=True, help="Replace the output of an earlier run.", rare=True),
)
fail_on_option = choice_option(
    "--fail-on",
    among=get_args(FailOn),
    about="Exit 1 for failed rows, for any row without a score, or never.",
    rare=True,
)


def written_options(given: Mapping[str, object]) -> list[str]:
    """Return options as a command line has them, without those that say nothing."""
    return [word for name, value in given.items() if value for word in (name, str(value))]


def check_resume(options: Mapping[str, Any], out: str | Path | None) -> None:
    """Refuse --resume with --overwrite, and either where no file is written; raises click.UsageError."""
    if options["resume"] and options["overwrite"]:
        raise click.UsageError("--resume and --overwrite exclude each other: leave one out")
    if out is None and (options["resume"] or options["overwrite"]):
        raise click.UsageError("--resume and --overwrite need --out FILE")


group_by_option = option(
    "--group-by",
    metavar="COLUMN,…",
    multiple=True,
    help="Print results by these columns: model, dataset, group, file or any other, or model+dataset.",
)


def baseline_option(*names: str, **attributes: Any) -> Callable[[Command], Command]:
    """Return --baseline, under other names of the parameter."""
    return option("--baseline", *names, metavar="NAME", help="Compare the others with NAME.", **attributes)


grouping_options = option_group("Statistics", group_by_option, baseline_option(show_default="the first in FILE"))


def read_groupings(given: Sequence[str]) -> tuple[Grouping, ...]:
    """Read --group-by.

    Raises:
        click.UsageError: A name is missing, or stands twice in one group.
    """
    groupings = []
    for written in (part for text in given for part in text.split(",")):
        columns = tuple(name.strip() for name in written.split("+"))
        if not all(columns):
            raise click.UsageError(f"--group-by {','.join(given)}: write COLUMN, COLUMN,COLUMN or COLUMN+COLUMN")
        if len(set(columns)) < len(columns):
            raise click.UsageError(f"--group-by {written}: a column stands there twice")
        groupings.append(columns)
    return tuple(dict.fromkeys(groupings))


def groupings_of(options: Mapping[str, Any]) -> tuple[Grouping, ...]:
    """Read `grouping_options`; empty for commands that do not have it."""
    if "group_by" not in options:
        return ()
    groupings = read_groupings(options["group_by"])
    if options.get("baseline") is not None and not groupings:
        raise click.UsageError("--baseline needs --group-by: give both")
    return groupings


def written(grouping: Grouping) -> str:
    """Return a grouping as --group-by takes it."""
    return "+".join(grouping)
