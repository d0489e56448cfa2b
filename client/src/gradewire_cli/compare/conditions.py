"""Parse the conditions of --fail-if, and check them and the candidates' completeness."""

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
    from collections.abc import Callable, Iterator, Mapping, Sequence

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


# An empty answer counts as a wrong one, so that a candidate cannot pass by answering only easy questions.
_OF_SCORES: Final[_Values] = {
    **_with_bounds("mean", "empty_as_wrong.difference"),
    "p": attrgetter("empty_as_wrong.difference.p_value"),
}
_OF_VERDICTS: Final[_Values] = {**_with_bounds("share_right", "difference"), "share_right.p": attrgetter("p_value")}
_OF_OUTCOMES: Final[_Values] = {
    **_with_bounds("wins", "win_share"),
    "wins.p": attrgetter("p_value"),
    **_with_bounds("ties", "tie_share"),
    **_with_bounds("losses", "loss_share"),
}
VALUE_NAMES: Final = (*_OF_SCORES, *_OF_VERDICTS, *_OF_OUTCOMES)
"""Names of the values in conditions. docs/reference/command.md defines the values."""
# Match the number last, because a metric identifier may contain = and digits: bleu?max_ngram=2, bge-small-en-v1.5.
_CONDITION: Final = re.compile(
    r"\s*(?P<name>\S(?:.*\S)?)\s*(?P<sign>[<>]=?)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on one value, for example `smile.mean < -0.01`."""

    metric: str
    value_name: str
    sign: str
    number: float

    def __str__(self) -> str:
        """Return the condition in the format of --fail-if."""
        return f"{self.metric}.{self.value_name} {self.sign} {self.number:g}"

    def holds(self, value: float) -> bool:
        """Return True if the condition holds for a value. The value must not be NaN."""
        return _OPERATORS[self.sign](value, self.number)

    def label(self, labels: Sequence[str], chooser: str) -> str:
        """Return `chooser` for a condition on the chooser's outcomes, otherwise the label of the condition's metric.

        Raises:
            InputError: No metric has this name, or the chooser has no scores.
        """
        if self.metric == chooser and self.value_name in _OF_OUTCOMES:
            return chooser
        if self.metric == chooser and chooser not in labels:
            raise InputError(
                f"--fail-if '{self}': {chooser} has no scores. Use one of {', '.join(sorted(_OF_OUTCOMES))}"
            )
        return label_named(labels, self.metric, "--fail-if")


def parse_condition(text: str) -> Condition:
    """Parse METRIC.VALUE SIGN NUMBER, for example `smile.mean < -0.01`.

    Raises:
        ValueError: The text is not a condition. The message describes the right format.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the condition has {len(text)} characters. Shorten it to at most {MAX_CHARACTERS}")
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}: use METRIC.VALUE, then <, <=, > or >=, then a number, e.g. 'smile.mean < -0.01'")
    name, number = found["name"], float(found["number"])
    if not math.isfinite(number):
        raise ValueError(f"{text!r}: the number {found['number']} is too large. Use a finite number")
    for figure in sorted(VALUE_NAMES, key=len, reverse=True):
        if name.endswith(f".{figure}") and len(name) > len(figure) + 1:
            return Condition(name[: -len(figure) - 1], figure, found["sign"], number)
    raise ValueError(f"{text!r}: unknown value {name.rpartition('.')[2]!r}. Choose one of {', '.join(VALUE_NAMES)}")


def parse_conditions(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[Condition, ...]:
    """Parse --fail-if; raise click.BadParameter if a condition is invalid."""
    try:
        return tuple(map(parse_condition, values))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def condition_value(comparison: PairComparison, metric: str, figure: str) -> float:
    """Return a metric's or chooser's value by its name in a condition, or NaN if the value is undefined.

    Raises:
        KeyError: The metric or chooser does not exist.
    """
    if figure in _OF_OUTCOMES:
        return _OF_OUTCOMES[figure](comparison.outcomes[metric])
    found = comparison.metrics[metric]
    if figure in _OF_SCORES:
        return _OF_SCORES[figure](found)
    verdicts = found.empty_as_wrong.verdicts
    return math.nan if verdicts is None else _OF_VERDICTS[figure](verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCondition:
    """A condition checked for one candidate.

    Attributes:
        value: The candidate's value, or NaN if the condition cannot be checked.
        problem: Reason why the condition cannot be checked, or "". A condition with a problem counts as not passed.
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
        outcome = "is true" if self.holds else "is false"
        return f"--fail-if '{self.condition}' {outcome} for {self.candidate}: the value is {self.value:.6g}"


def check_conditions(conditions: Sequence[Condition], result: CompareResult) -> list[CheckedCondition]:
    """Check every condition for every candidate."""
    return [_checked(condition, side, result.chooser) for condition in conditions for side in result.sides]


def _checked(condition: Condition, side: SideComparison, chooser: str) -> CheckedCondition:
    label, figure = condition.label(list(side.overall.metrics), chooser), condition.value_name
    value = condition_value(side.overall, label, figure)
    problem = ""
    if label in side.differing_metrics:
        problem = (
            f"{side.baseline} and {side.candidate} were scored by different definitions of {label}, so their "
            "scores are not comparable. Score both with the same definition"
        )
    elif math.isnan(value):
        problem = f"{figure} of {side.candidate} is undefined: {_why(side, label, figure)}"
    return CheckedCondition(
        condition=str(condition),
        candidate=side.candidate,
        value=math.nan if problem else value,
        holds=not problem and condition.holds(value),
        problem=problem,
    )


def _why(side: SideComparison, label: str, figure: str) -> str:
    metric = side.overall.metrics.get(label)
    if metric is not None and not (metric.scored if figure in _OF_OUTCOMES else metric.empty_as_wrong.scored):
        return f"no pair has {label} scores for both answers"
    if metric is not None and figure in _OF_VERDICTS and metric.verdicts is None:
        return f"{label} returns no verdicts"
    if not side.overall.outcomes[label].pairs:
        return f"{label} has no verdict on any pair"
    return "too few questions for an interval"


def parse_share(_: click.Context, __: click.Parameter, value: str) -> float:
    """Parse a share such as "2%" or "0.02"; raise click.BadParameter if it is not from 0 to 1."""
    try:
        share = float(value.removesuffix("%")) / 100 if value.endswith("%") else float(value)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{value!r} is not a share. Give a percentage such as 2%, or a number from 0 to 1")
    return share


def incomplete_sides(conditions: Sequence[Condition], result: CompareResult, allowed: float) -> list[str]:
    """Return a sentence for each candidate and metric of a condition with too many missing rows.

    A row of the baseline counts as missing if the candidate has no partner for it or answers it with an empty text, or
    if either answer failed. For a judge, a pair without a winner or a tie counts as failed. A pair with different
    references counts, too, and one that nothing but an id matches. `allowed` is the largest share of the baseline's
    rows that may be missing, 0 to 1.
    """
    found: dict[str, None] = {}
    for side in result.sides if conditions else ():
        found |= dict.fromkeys(_unlike(side, allowed))
        labels = [each.label(list(side.overall.metrics), result.chooser) for each in conditions]
        found |= {sentence: None for label in labels if (sentence := _incomplete(side, label, allowed))}
    return list(found)


def _unlike(side: SideComparison, allowed: float) -> Iterator[str]:
    """Yield a sentence about too many pairs that have nothing but an id in common."""
    matching, pairs = side.matching, len(side.matching.pairs)
    if matching.unchecked > allowed * pairs:
        key = {"row": "row number"}.get(matching.rule, matching.rule)
        yield (
            f"{matching.unchecked} of {pairs} pairs of {side.baseline} and {side.candidate} have nothing but the {key} "
            "in common, which does not prove that they answer the same question. Keep the questions with gradewire "
            f"score --keep-columns all, or use --match {matching.rule}"
        )


def _incomplete(side: SideComparison, label: str, allowed: float) -> str:
    unmatched, metric = len(side.matching.only_baseline), side.overall.metrics.get(label)
    if metric is None:
        incomplete = failed = side.overall.outcomes[label].undecided
        empty = 0
    else:
        incomplete, empty = metric.incomplete, metric.empty[1]
        failed = incomplete - empty
    other = side.matching.other_references
    rows = side.overall.pairs + unmatched
    missing = min(rows, unmatched + incomplete + other)
    if missing <= allowed * rows:
        return ""
    counts = {
        "have no partner": unmatched,
        "have an empty answer": empty,
        "failed": failed,
        "have different references": other,
    }
    parts = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    share, most = (f"{100 * part:.3g} %" for part in (missing / rows, allowed))
    return (
        f"{side.candidate} is incomplete for {label}: {missing} of {rows} rows of {side.baseline} are missing "
        f"({share}: {parts}). At most {most} may be missing. Complete the answers, or set --allow-missing"
    )
