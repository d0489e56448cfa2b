"""What was fitted for an encoder on labelled answers: from which score on an answer counts as right, or a whole fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold of one metric, or a fit of `correctness` or `auto`, for one encoder, as its description carries it.

    Attributes:
        metric: Name of the metric.
        metric_version: Of the metric's definition; it holds for that one only.
        parameters: Names and values, as a metric line writes them, that scores must have for it to hold; sorted.
        threshold: Score from which an answer counts as right; None where `fit` says all.
        sentence_weight: Of `smile`: the weight that it was fitted with; None for other metrics.
        described: Whose fit, on what; one line for people.
        fit: Of `correctness` and `auto`: its JSON as it was stored; "" for other metrics.
    """

    metric: str
    metric_version: int
    parameters: tuple[tuple[str, str], ...]
    threshold: float | None
    sentence_weight: float | None = None
    described: str = ""
    fit: str = ""

    def holds_for(self, parameters: Any) -> bool:
        """Whether it was fitted on scores with these parameters (a dataclass), threshold and weight left aside."""
        return all(_text(getattr(parameters, name, None)) == value for name, value in self.parameters)


def calibration_for(found: Sequence[Calibration], parameters: Any) -> Calibration | None:
    """The first that holds for these parameters, or None."""
    return next((each for each in found if each.holds_for(parameters)), None)


def _text(value: Any) -> str:
    # The form of a metric line: enums are their values, true and false are lower-case.
    return str(value).lower() if isinstance(value, bool) else str(value)
