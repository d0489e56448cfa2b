"""Conditions on the figures of a comparison: read from --fail-if, and held against every candidate."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire_cli.problems import InputError
from gradewire_cli.scoring.labelled_rows import label_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradewire_cli.compare.result import CompareResult, SideComparison
    from gradewire_stats.comparison.pairs import PairComparison

    _Values = Mapping[str, Callable[[Any], float]]

MAX_CHARACTERS: Final = 1000
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _with_bounds(name: str, attribute: str) -> _Values:
    paths = {"": "value", ".low": "low", ".high": "high"}
    return {f"{name}{suffix}": attrgetter(f"{attribute}.{path}") for suffix, path in paths.items()}


_OF_SCORES: Final[_Values] = {
    **_with_bounds("mean", "difference"),
    "p": attrgetter("difference.p_value"),
    **_with_bounds("mean_empty_as_wrong", "empty_as_wrong.difference"),
    "mean_empty_as_wrong.p": attrgetter("empty_as_wrong.difference.p_value"),
    "empty": lambda found: found.empty[1] - found.empty[0],
    "failed": lambda found: found.failed[1] - found.failed[0],
    "unscored": lambda found: (found.pairs - found.scored) / found.pairs,
}
_OF_VERDICTS: Final[_Values] = {**_with_bounds("share_right", "difference"), "share_right.p": attrgetter("p_value")}
_OF_OUTCOMES: Final[_Values] = {
    **_with_bounds("wins", "win_share"),
    "wins.p": attrgetter("p_value"),
    **_with_bounds("ties", "tie_share"),
    **_with_bounds("losses", "loss_share"),
}
UNMATCHED: Final = "unmatched"
"""Share of the baseline's rows that the candidate does not answer: of the sides, and not of their pairs."""
VALUE_NAMES: Final = (*_OF_SCORES, UNMATCHED, *_OF_VERDICTS, *_OF_OUTCOMES)
"""Names that a condition may have behind its metric; docs/reference/command.md defines each."""
# The number ends the text, so that a metric may have any sign of its line: bleu?max_ngram=2, bge-small-en-v1.5.
_CONDITION: Final = re.compile(
    r"\s*(?P<name>\S(?:.*\S)?)\s*(?P<sign>[<>]=?)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on one figure, for instance `smile.mean < -0.01`."""

    metric: str
    value_name: str
    sign: str
    number: float

    def __str__(self) -> str:
        """Return the condition as it may be written."""
        return f"{self.metric}.{self.value_name} {self.sign} {self.number:g}"

    def holds(self, value: float) -> bool:
        """Tell whether the condition holds of a figure, which must be defined."""
        return _OPERATORS[self.sign](value, self.number)

    def label(self, labels: Sequence[str], chooser: str) -> str:
        """Return the metric or chooser that it is about; raise InputError where there is none."""
        if self.metric == chooser and self.value_name in _OF_OUTCOMES:
            return chooser
        if self.metric == chooser and chooser not in labels:
            raise InputError(f"--fail-if '{self}': {chooser} gives no scores, it has {', '.join(sorted(_OF_OUTCOMES))}")
        return label_named(labels, self.metric, "--fail-if")


def parse_condition(text: str) -> Condition:
    """Read METRIC.FIGURE SIGN NUMBER, for instance `smile.mean < -0.01`.

    Raises:
        ValueError: It is none; the message says how one is written.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a condition has at most {MAX_CHARACTERS} characters, this has {len(text)}")
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}: write METRIC.FIGURE, then < <= > or >=, then a number, as in 'smile.mean < -0.01'")
    name, number = found["name"], float(found["number"])
    if not math.isfinite(number):
        raise ValueError(f"{text!r}: {found['number']} is too large for a number, so that it bounds nothing")
    for figure in sorted(VALUE_NAMES, key=len, reverse=True):
        if name.endswith(f".{figure}") and len(name) > len(figure) + 1:
            return Condition(name[: -len(figure) - 1], figure, found["sign"], number)
    raise ValueError(f"{text!r}: there is no figure {name.rpartition('.')[2]!r}, there are {', '.join(VALUE_NAMES)}")


def parse_conditions(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[Condition, ...]:
    """Read --fail-if; raise click.BadParameter where one is no condition."""
    try:
        return tuple(map(parse_condition, values))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def condition_value(comparison: PairComparison, metric: str, figure: str) -> float:
    """Return a figure of a metric or chooser, but for `UNMATCHED`; NaN where it is not defined.

    Raises:
        KeyError: There is no such metric or chooser.
    """
    if figure in _OF_OUTCOMES:
        return _OF_OUTCOMES[figure](comparison.outcomes[metric])
    found = comparison.metrics[metric]
    if figure in _OF_SCORES:
        return _OF_SCORES[figure](found)
    return math.nan if found.verdicts is None else _OF_VERDICTS[figure](found.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCondition:
    """A condition, and the figure of one candidate that it was held against.

    Attributes:
        problem: Why there is none that could be held against it: that is no pass; "" where there is one.
    """

    condition: str
    candidate: str
    value: float
    holds: bool
    problem: str = ""

    def __str__(self) -> str:
        """Return the outcome as a sentence."""
        if self.problem:
            return f"--fail-if '{self.condition}': {self.problem}"
        outcome = "holds" if self.holds else "does not hold"
        return f"--fail-if '{self.condition}' {outcome} of {self.candidate}: it is {self.value:.6g}"


def check_conditions(conditions: Sequence[Condition], result: CompareResult) -> list[CheckedCondition]:
    """Hold every condition against every candidate."""
    return [_checked(condition, side, result.chooser) for condition in conditions for side in result.sides]


def _checked(condition: Condition, side: SideComparison, chooser: str) -> CheckedCondition:
    label, figure = condition.label(list(side.overall.metrics), chooser), condition.value_name
    value = side.unmatched if figure == UNMATCHED else condition_value(side.overall, label, figure)
    problem = ""
    if label in side.differing_metrics:
        problem = (
            f"{side.baseline} and {side.candidate} were scored by different definitions of {label}, so that their "
            "scores do not compare: score one of them again"
        )
    elif math.isnan(value):
        problem = f"{figure} of {side.candidate} is not defined: {_why(side, label, figure)}"
    return CheckedCondition(
        condition=str(condition),
        candidate=side.candidate,
        value=math.nan if problem else value,
        holds=not problem and condition.holds(value),
        problem=problem,
    )


def _why(side: SideComparison, label: str, figure: str) -> str:
    metric = side.overall.metrics.get(label)
    if metric is not None and not metric.scored:
        return f"no pair has two scores of {label}"
    if metric is not None and figure in _OF_VERDICTS and metric.verdicts is None:
        return f"{label} gives no verdicts"
    if not side.overall.outcomes[label].pairs:
        return f"{label} prefers no answer of any pair"
    return "there are too few questions for an interval"


def parts_only(conditions: Sequence[Condition], result: CompareResult) -> list[str]:
    """Return which conditions rest on a part of the baseline's rows, as sentences: a row without a score fails none."""
    found: dict[str, None] = {}
    for condition in conditions:
        for side in result.sides:
            label = condition.label(list(side.overall.metrics), result.chooser)
            rows, pairs = len(side.matching.baseline.rows), side.overall.pairs
            metric = side.overall.metrics.get(label)
            scored = side.overall.outcomes[label].pairs if metric is None else metric.scored
            if side.matching.only_baseline or scored < pairs:
                there = f"{side.candidate} answers {pairs} of {rows} rows of {side.baseline}"
                found[
                    f"figures of {label} rest on {scored} pairs: {there}; conditions on {label}.unmatched, .empty, "
                    ".failed and .unscored look at the others"
                ] = None
    return list(found)
