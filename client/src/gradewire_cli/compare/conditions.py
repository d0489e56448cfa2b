"""Conditions on the figures of a comparison, as `gradewire compare --fail-if` takes them."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradewire_stats.comparison.pairs import MetricDifference, Outcomes, PairComparison, VerdictDifference

MAX_CHARACTERS: Final = 1000
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _with_bounds(name: str, attribute: str, *, p_value: str = "") -> dict[str, attrgetter[float]]:
    paths = {"": "value", ".low": "low", ".high": "high"}
    found = {f"{name}{suffix}": attrgetter(f"{attribute}.{path}") for suffix, path in paths.items()}
    return found | ({f"{name}.p": attrgetter(p_value)} if p_value else {})


_OF_SCORES: Final[Mapping[str, Callable[[MetricDifference], float]]] = {
    **_with_bounds("mean", "difference"),
    "p": attrgetter("difference.p_value"),
    **_with_bounds("mean_empty_as_wrong", "empty_as_wrong.difference", p_value="empty_as_wrong.difference.p_value"),
    "empty": lambda found: found.empty[1] - found.empty[0],
    "failed": lambda found: found.failed[1] - found.failed[0],
    "unscored": lambda found: (found.pairs - found.scored) / found.pairs,
}
_OF_VERDICTS: Final[Mapping[str, Callable[[VerdictDifference], float]]] = _with_bounds(
    "share_right", "difference", p_value="p_value"
)
_OF_OUTCOMES: Final[Mapping[str, Callable[[Outcomes], float]]] = {
    **_with_bounds("wins", "win_share", p_value="p_value"),
    **_with_bounds("ties", "tie_share"),
    **_with_bounds("losses", "loss_share"),
}
UNMATCHED: Final = "unmatched"
"""Share of the baseline's rows that the candidate does not answer: of the sides, and not of their pairs."""
VALUE_NAMES: Final = (*_OF_SCORES, UNMATCHED, *_OF_VERDICTS, *_OF_OUTCOMES)
"""What a condition may name behind its metric; docs/reference/command.md defines each."""
CHOOSER_VALUE_NAMES: Final = frozenset(_OF_OUTCOMES)
"""Those that a chooser has that gives no scores."""
# The number ends the text, so that a metric may have any sign of its line: bleu?max_ngram=2, bge-small-en-v1.5.
_CONDITION: Final = re.compile(
    r"\s*(?P<name>\S(?:.*\S)?)\s*(?P<sign>[<>]=?)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on one figure.

    Attributes:
        metric: As it was written.
        value_name: One of `FIGURES`.
        sign: `<`, `<=`, `>` or `>=`.
        number: What the figure is held against.
    """

    metric: str
    value_name: str
    sign: str
    number: float

    def __str__(self) -> str:
        """As it may be written."""
        return f"{self.metric}.{self.value_name} {self.sign} {self.number:g}"

    def holds(self, value: float) -> bool:
        """Whether the condition holds of a figure, which must be defined."""
        return _OPERATORS[self.sign](value, self.number)


def parse_condition(text: str) -> Condition:
    """Reads METRIC.FIGURE SIGN NUMBER, for instance `smile.mean < -0.01`.

    Raises:
        ValueError: It is none; the message says how one is written.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a condition has at most {MAX_CHARACTERS} characters, this has {len(text)}")
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}: write METRIC.FIGURE, then < <= > or >=, then a number, as in 'smile.mean < -0.01'")
    name = found["name"]
    if not math.isfinite(float(found["number"])):
        raise ValueError(f"{text!r}: {found['number']} is too large for a number, so that it bounds nothing")
    for figure in sorted(VALUE_NAMES, key=len, reverse=True):
        if name.endswith(f".{figure}") and len(name) > len(figure) + 1:
            return Condition(name[: -len(figure) - 1], figure, found["sign"], float(found["number"]))
    raise ValueError(f"{text!r}: there is no figure {name.rpartition('.')[2]!r}, there are {', '.join(VALUE_NAMES)}")


def condition_value(comparison: PairComparison, metric: str, figure: str) -> float:
    """A figure of a metric or chooser, but for `UNMATCHED`; NaN where it is not defined.

    Raises:
        KeyError: There is no such metric or chooser.
    """
    if figure in _OF_OUTCOMES:
        return _OF_OUTCOMES[figure](comparison.outcomes[metric])
    found = comparison.metrics[metric]
    if figure in _OF_SCORES:
        return _OF_SCORES[figure](found)
    return float("nan") if found.verdicts is None else _OF_VERDICTS[figure](found.verdicts)
