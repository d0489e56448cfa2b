"""Which labelled rows count and how figures are drawn: options that `agree`, `bench` and `calibrate` share."""

from collections.abc import Callable
from typing import get_args

import click

from gradewire_cli.options.common import OUTPUT_FILE, Command, option_group
from gradewire_stats.annotators import LabelRule

against_option = click.option(
    "--against",
    metavar="METRIC",
    help="Take this metric's verdicts and scores in the place of people's labels, which FILE then does not need: lave, "
    "for instance. It is scored too, or read from --scores.",
)


def draw_options(*, resamples: int) -> Callable[[Command], Command]:
    """Adds how intervals are drawn, by default from this many draws of the bootstrap, and --quiet."""
    return option_group(
        click.option(
            "--resamples",
            type=click.IntRange(min=100),
            default=resamples,
            help="Bootstrap draws behind the intervals.",
        ),
        click.option("--seed", type=int, default=0, help="Same seed, same intervals."),
        click.option("--quiet", is_flag=True, help="Show no progress."),
    )


def labelled_options(*, resamples: int) -> Callable[[Command], Command]:
    """Adds which rows count, whose scores and labels are taken, and `draw_options`."""
    return option_group(
        click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these rows. May be repeated."),
        click.option(
            "--scores",
            type=OUTPUT_FILE,
            multiple=True,
            help="Take the scores from this output of gradewire score; nothing is scored. May be repeated.",
        ),
        click.option(
            "--labels",
            type=click.Choice(get_args(LabelRule)),
            help="How the labels of several annotators become one. Default: the row's own label, else their mean.",
        ),
        click.option(
            "--without-flag",
            "without_flags",
            metavar="FLAG",
            multiple=True,
            help="Leave out rows with this flag (column flags). May be repeated.",
        ),
        draw_options(resamples=resamples),
    )
