"""What to score with: options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradewire.cli.pipeline import ScorePlan
from gradewire.metric_types import PRESETS, SYNTHETIC_MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Command = TypeVar("Command", bound="Callable[..., Any]")


def metric_options(command: Command) -> Command:
    """Adds the options that choose metrics; `plan_of` reads them."""
    for option in reversed(
        (
            click.option(
                "--metrics",
                default="smile",
                show_default=True,
                help="Comma-separated: names (smile, sbert, exact_match, easy_match), NAME:PRESET, or whole lines as a "
                "summary prints them.",
            ),
            click.option("--preset", type=click.Choice(PRESETS), help="For smile where --metrics names none."),
            click.option(
                "--synthetic",
                type=click.Choice(SYNTHETIC_MODES),
                help="What smile compares sentences with: the reference itself (none), the file's synthetic answers "
                "(inline), or prepared ones. Default: inline where the rows have them, else none.",
            ),
            click.option("--reference-set", metavar="NAME", help="With --synthetic prepared: what prepare printed."),
            click.option("--model", metavar="NAME[@DIGEST]", help="Encoder; default: the server's default."),
        )
    ):
        command = option(command)
    return command


def plan_of(options: Mapping[str, Any], *, scoring: bool = True) -> ScorePlan:
    """Reads the options of `metric_options`.

    Args:
        options: Values of the command's options by name; others are not looked at.
        scoring: Whether prepared answers are used, and their set has to be named, or are made.

    Raises:
        click.UsageError: --synthetic prepared and --reference-set do not go together.
    """
    named = options["reference_set"] or "reference_set=" in options["metrics"]
    if scoring and options["synthetic"] == "prepared" and not named:
        raise click.UsageError("--synthetic prepared needs --reference-set: the name that `gradewire prepare` prints")
    names = ("metrics", "preset", "synthetic", "model", "reference_set")
    return ScorePlan(**{name: options[name] for name in names})
