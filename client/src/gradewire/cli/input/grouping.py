"""By which columns rows are told apart: the option --by."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gradewire.cli.options.group import option_group

Grouping = tuple[str, ...]
"""Columns whose values together name a group."""

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
