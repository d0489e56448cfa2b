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
    """A condition, and the figure of one candidate that it was held against.

    Attributes:
        value: NaN where there is none.
        problem: Why there is none that could be held against it: that is no pass; "" where there is one.
    """

    condition: str
    candidate: str
    value: float
    holds: bool
    problem: str = ""

    def __str__(self) -> str:
        """What came of it, as a sentence."""
        if self.problem:
            return f"--fail-if '{self.condition}': {self.problem}"
        outcome = "holds" if self.holds else "does not hold"
        return f"--fail-if '{self.condition}' {outcome} of {self.candidate}: it is {self.value:.6g}"


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
    """Holds every condition against every candidate."""
    return [_checked(condition, side, found.chooser) for condition in conditions for side in found.sides]


def parts_only(conditions: Sequence[Condition], found: CompareResult) -> list[str]:
    """Which conditions rest on a part of the baseline's rows, in sentences: a row without a score fails none."""
    told: dict[str, None] = {}
    for condition in conditions:
        for side in found.sides:
            name = _name(condition, list(side.overall.metrics), found.chooser)
            rows, pairs = len(side.matching.baseline.rows), side.overall.pairs
            metric = side.overall.metrics.get(name)
            scored = side.overall.outcomes[name].pairs if metric is None else metric.scored
            if side.matching.only_baseline or scored < pairs:
                there = f"{side.candidate} answers {pairs} of {rows} rows of {side.baseline}"
                told[
                    f"figures of {name} rest on {scored} pairs: {there}; conditions on {name}.unmatched, .empty, "
                    ".failed and .unscored look at the others"
                ] = None
    return list(told)


def _checked(condition: Condition, side: SideComparison, chooser: str) -> CheckedCondition:
    name = _name(condition, list(side.overall.metrics), chooser)
    value = side.unmatched if condition.figure == UNMATCHED else figure_value(side.overall, name, condition.figure)
    problem = ""
    if name in side.unlike:
        problem = (
            f"{side.baseline} and {side.candidate} were scored by different definitions of {name}, so that their "
            "scores do not compare: score one of them again"
        )
    elif math.isnan(value):
        problem = f"{condition.figure} of {side.candidate} is not defined: {_why(side, name, condition)}"
    return CheckedCondition(
        condition=str(condition),
        candidate=side.candidate,
        value=math.nan if problem else value,
        holds=not problem and condition.holds(value),
        problem=problem,
    )


def _why(side: SideComparison, name: str, condition: Condition) -> str:
    metric = side.overall.metrics.get(name)
    if metric is not None and not metric.scored:
        return f"no pair has two scores of {name}"
    if metric is not None and condition.figure.startswith("share_right") and metric.verdicts is None:
        return f"{name} gives no verdicts"
    if not side.overall.outcomes[name].pairs:
        return f"{name} prefers no answer of any pair"
    return "there are too few questions for an interval"
