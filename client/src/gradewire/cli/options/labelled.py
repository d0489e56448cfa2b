"""How labelled rows are judged: the options that `agree`, `bench` and `calibrate` share, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from gradewire.agreement.annotators.labels import LabelRule

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any]")


def labelled_options(*, resamples: int) -> Callable[[Command], Command]:
    """Adds which rows count, whose scores and labels are taken, and how figures are drawn; `judging_by` reads them.

    Args:
        resamples: Draws of the bootstrap where --resamples says nothing.
    """

    def add(command: Command) -> Command:
        for option in reversed(
            (
                click.option(
                    "--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these rows. May be repeated."
                ),
                click.option(
                    "--scores",
                    type=click.Path(dir_okay=False, path_type=Path),
                    multiple=True,
                    help="Take the scores from this output of gradewire score; nothing is scored. May be repeated.",
                ),
                click.option(
                    "--labels",
                    type=click.Choice(get_args(LabelRule)),
                    help="What several annotators make together. Default: the row's own label, else their mean.",
                ),
                click.option(
                    "--without-flag",
                    "without_flags",
                    metavar="FLAG",
                    multiple=True,
                    help="Leave out rows with this flag (column flags). May be repeated.",
                ),
                click.option(
                    "--resamples",
                    type=click.IntRange(min=100),
                    default=resamples,
                    show_default=True,
                    help="Draws of the intervals.",
                ),
                click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same intervals."),
                click.option("--quiet", is_flag=True, help="No progress."),
            )
        ):
            command = option(command)
        return command

    return add
