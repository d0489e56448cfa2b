"""Options of commands that have pairs chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from gradewire.comparison.preferences import TIE_MARGIN
from gradewire.metric_types import COMPARISON_TYPES
from gradewire_proto.conventions.metric_lines import LINE

if TYPE_CHECKING:
    from gradewire.comparison.preferences import TieMargin

_BY_VERDICT = "verdict"


def is_comparison(by: str) -> bool:
    """Whether --by names a judge that is shown both answers, and no metric."""
    found = LINE.fullmatch(by.strip())
    return found is not None and found["name"] in COMPARISON_TYPES


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
