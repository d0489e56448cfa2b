"""Options of commands that have pairs chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from gradewire._calls.arguments import check_comparison
from gradewire.cli.options.prompts import with_prompts
from gradewire.comparison.preferences import TIE_MARGIN
from gradewire.errors import InvalidRequest
from gradewire.metric_types import COMPARISON_TYPES
from gradewire_proto.conventions.metric_lines import LINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.cli.options.prompts import GivenPrompt
    from gradewire.comparison.preferences import TieMargin
    from gradewire.metric_types import Compare

_BY_VERDICT = "verdict"


def is_comparison(by: str) -> bool:
    """Whether --by names a judge that is shown both answers, and no metric."""
    found = LINE.fullmatch(by.strip())
    return found is not None and found["name"] in COMPARISON_TYPES


def comparison_of(by: str, judge: str | None, prompts: Sequence[GivenPrompt]) -> Compare:
    """Return the comparison that --by names, with --judge and its --prompt.

    Raises:
        click.UsageError: --by is wrong.
        InputError: Two prompt files are for it, or one is for another metric.
    """
    try:
        (filled,) = with_prompts([check_comparison(by, judge)], prompts)
    except InvalidRequest as error:
        raise click.UsageError(f"--by {by}: {error}") from error
    return check_comparison(filled, judge)


def _tie_margin(_: click.Context, __: click.Parameter, value: str) -> TieMargin:
    if value == _BY_VERDICT:
        return "verdict"
    try:
        margin = float(value)
    except ValueError:
        margin = math.nan
    if not (math.isfinite(margin) and margin >= 0):
        raise click.BadParameter(f"{value!r} is no margin: give a number from 0 upward, or {_BY_VERDICT}")
    return margin


tie_margin_option = click.option(
    "--tie-margin",
    metavar="X|verdict",
    default=str(TIE_MARGIN),
    callback=_tie_margin,
    help="Answers whose scores differ by X or less are a tie; verdict: those with the same verdict are.",
)
