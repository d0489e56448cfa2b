"""Options that several commands take: files, groups of rows, prices of a judge's tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Command = TypeVar("Command", bound="Callable[..., Any]")

# A file that is read, and one that is written.
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)

FailOn = Literal["failure", "no-score", "never"]

_MILLION = 1e6
_FLAGS = ("--judge-input-price", "--judge-output-price")

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
    """An option with one of these values; the first is its default."""
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
    """A decorator that adds options, arguments or further groups, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def check_resume(options: Mapping[str, Any], out: str | Path | None) -> None:
    """Refuses --resume with --overwrite, and either where no file is written; raises click.UsageError."""
    if options["resume"] and options["overwrite"]:
        raise click.UsageError("--resume and --overwrite exclude each other: leave one out")
    if out is None and (options["resume"] or options["overwrite"]):
        raise click.UsageError("--resume and --overwrite need --out FILE")


@dataclass(frozen=True, slots=True)
class JudgePrices:
    """Prices of a million tokens, in any currency; None: not known.

    Attributes:
        read: Of those that the judge reads.
        written: Of those that it writes.
    """

    read: float | None = None
    written: float | None = None

    @property
    def are_known(self) -> bool:
        """Whether both are."""
        return self.read is not None and self.written is not None

    def text(self, read: int, written: int, *, at_most: bool = False, estimated: bool = False) -> str:
        """The price of these tokens, for people; says which flags are missing where it is not known.

        Args:
            read: Tokens that the judge reads.
            written: Tokens that it writes.
            at_most: Both are bounds.
            estimated: One of them is estimated, so that the price is no bound.
        """
        if self.read is None or self.written is None:
            given = (self.read, self.written)
            missing = [flag for flag, price in zip(_FLAGS, given, strict=True) if price is None]
            return f"price unknown (give {' and '.join(missing)}, for a million tokens)"
        price = (read * self.read + written * self.written) / _MILLION
        if estimated:
            return f"price about {price:.4g}, estimated"
        return f"price {'at most ' if at_most else ''}{price:.4g}"


price_options = option_group(
    *(
        click.option(
            flag,
            type=click.FloatRange(min=0),
            metavar="PRICE",
            envvar=f"GRADEWIRE_{flag[2:].replace('-', '_').upper()}",
            show_envvar=True,
            help=f"Price of a million tokens that a judge {what}, for the summary and --dry-run.",
        )
        for flag, what in zip(_FLAGS, ("reads", "writes"), strict=True)
    )
)


def prices_of(options: Mapping[str, Any]) -> JudgePrices:
    """Reads the options of `price_options`.

    Raises:
        click.UsageError: A price is no number.
    """
    prices = JudgePrices(options["judge_input_price"], options["judge_output_price"])
    for flag, price in zip(_FLAGS, (prices.read, prices.written), strict=True):
        if price is not None and not math.isfinite(price):
            raise click.UsageError(f"{flag} {price}: give a number, the price of a million tokens")
    return prices


grouping_options = option_group(
    click.option(
        "--by",
        "grouped_by",
        metavar="COLUMN,…",
        multiple=True,
        help="Tell the figures by model, dataset, group, file or any column too; model+dataset: by both together. "
        "May be repeated.",
    ),
    click.option(
        "--baseline",
        metavar="VALUE",
        help="With --by: the value that the others are compared with, on the questions that both answered. Default: "
        "the first in FILE.",
    ),
)


def read_groupings(given: Sequence[str], option: str = "--by") -> tuple[Grouping, ...]:
    """Reads --by, or the option that is called so for the messages.

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
    """Reads `grouping_options`; empty without --by, and for commands that do not have it.

    Raises:
        click.UsageError: As `read_groupings`; or there is a baseline of nothing.
    """
    if "grouped_by" not in options:
        return ()
    groupings = read_groupings(options["grouped_by"])
    if options["baseline"] is not None and not groupings:
        raise click.UsageError("--baseline says what --by compares with: give --by too")
    return groupings


def written(grouping: Grouping) -> str:
    """A grouping as --by takes it."""
    return "+".join(grouping)
