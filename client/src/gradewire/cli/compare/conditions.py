"""Holds the figures of a comparison against --fail-if."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gradewire.cli.problems import InputError
from gradewire.cli.run.labels import label_named
from gradewire.comparison.conditions import CHOOSER_FIGURES, UNMATCHED, Condition, figure_value, parse_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.cli.compare.result import CompareResult, SideComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCondition:
    """A condition, and the figure of one candidate that it was held against."""

    condition: str
    candidate: str
    value: float
    holds: bool


def parse_conditions(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[Condition, ...]:
    """Reads --fail-if; raises click.BadParameter where one is no condition."""
    try:
        return tuple(parse_condition(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def check_names(conditions: Sequence[Condition], labels: Sequence[str], chooser: str) -> None:
    """Refuses conditions on metrics that there are not, before anything is scored; raises InputError."""
    for condition in conditions:
        _name(condition, labels, chooser)


def _name(condition: Condition, labels: Sequence[str], chooser: str) -> str:
    """The metric or chooser that a condition is about; raises InputError where there is none."""
    if condition.figure in CHOOSER_FIGURES and condition.metric == chooser:
        return chooser
    if condition.metric == chooser and chooser not in labels:
        raise InputError(
            f"--fail-if '{condition}': {chooser} gives no scores, it has {', '.join(sorted(CHOOSER_FIGURES))}"
        )
    return label_named(labels, condition.metric, "--fail-if")


def check_conditions(conditions: Sequence[Condition], found: CompareResult) -> list[CheckedCondition]:
    """Holds every condition against every candidate.

    Raises:
        InputError: A figure is not defined, or made of scores that do not compare: neither is a pass.
    """
    return [_checked(condition, side, found.chooser) for condition in conditions for side in found.sides]


def _checked(condition: Condition, side: SideComparison, chooser: str) -> CheckedCondition:
    name = _name(condition, list(side.overall.metrics), chooser)
    if name in side.unlike:
        raise InputError(
            f"--fail-if '{condition}': {side.baseline} and {side.candidate} were scored by different definitions of "
            f"{name}, so that their scores do not compare: score one of them again"
        )
    value = side.unmatched if condition.figure == UNMATCHED else figure_value(side.overall, name, condition.figure)
    if math.isnan(value):
        why = _why(side, name, condition)
        raise InputError(f"--fail-if '{condition}': {condition.figure} of {side.candidate} is not defined: {why}")
    return CheckedCondition(
        condition=str(condition), candidate=side.candidate, value=value, holds=condition.holds(value)
    )


def _why(side: SideComparison, name: str, condition: Condition) -> str:
    metric = side.overall.metrics.get(name)
    if metric is not None and not metric.scored:
        return f"no pair has two scores of {name}"
    if metric is not None and condition.figure.startswith("accuracy") and metric.verdicts is None:
        return f"{name} gives no verdicts"
    if not side.overall.outcomes[name].pairs:
        return f"{name} prefers no answer of any pair"
    return "there are too few questions for an interval"
