"""Typed parameters of the metrics; field and value names as in types.proto."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from gradewire_server.domain.calibration import calibration_for
from gradewire_server.domain.metric import ModelFacts, ParameterError, ParameterInfo, PlainParameters

MODEL_INFO = ParameterInfo(
    name="model",
    description="Encoder: a name of the model list; NAME@DIGEST (8 hex digits or more) insists on exact weights.",
    default_value="",
    allowed="a built encoder; empty: the default one",
)

THRESHOLD_INFO = ParameterInfo(
    name="threshold",
    description="Score from which the answer counts as right; unset: the one fitted for the model, if any.",
    default_value="",
    allowed="a number; empty: no verdict unless one was fitted",
)

E = TypeVar("E", bound=StrEnum)
P = TypeVar("P", bound=PlainParameters)


class SmilePreset(StrEnum):
    """Variants of SMILE that differ in their formula; docs/reference/metrics.md has the table."""

    V1 = "v1"
    FAST = "fast"
    PAPER = "paper"
    REFERENCE_CODE = "reference_code"
    ONE_PASS = "one_pass"  # noqa: S105 - one pass of the encoder, no password


class SyntheticMode(StrEnum):
    """Which sentence the prediction as a whole is compared with."""

    NONE = "none"
    INLINE = "inline"
    PREPARED = "prepared"


class Measure(StrEnum):
    """Which of precision, recall and their harmonic mean becomes the score (bertscore, rouge_l)."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


MEASURE_INFO = ParameterInfo(
    name="measure",
    description="Which of precision, recall and their harmonic mean becomes the score.",
    default_value=Measure.F1,
    allowed=", ".join(Measure),
)


_PRESET_WEIGHT: Final = {preset: 0.5 if preset is SmilePreset.REFERENCE_CODE else 0.3 for preset in SmilePreset}


@dataclass(frozen=True, slots=True)
class SmileParameters(PlainParameters):
    """Parameters of `smile`.

    Attributes:
        preset: Variant of the formula.
        synthetic: What stands for the reference in the sentence term.
        sentence_weight: Weight w of the sentence term, 0 to 1; None becomes the one fitted for the model, else the
            preset's (0.3; 0.5 for REFERENCE_CODE).
        model: Plain name of the encoder.
        threshold: Score from which the answer counts as right; None becomes the one fitted for the model with this
            preset, mode and weight; where there is none the bin decides, and the result is UNCALIBRATED.
        calibration: Whose fit filled these in.

    Raises:
        ParameterError: A preset or mode that does not exist, a weight that is not a finite number from 0 to 1, or a
            threshold that is not finite.
    """

    preset: SmilePreset = SmilePreset.V1
    synthetic: SyntheticMode = SyntheticMode.NONE
    sentence_weight: float | None = None
    model: str = ""
    threshold: float | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        object.__setattr__(self, "preset", member(SmilePreset, "preset", self.preset))
        object.__setattr__(self, "synthetic", member(SyntheticMode, "synthetic", self.synthetic))
        if self.sentence_weight is not None and not (
            math.isfinite(self.sentence_weight) and 0 <= self.sentence_weight <= 1
        ):
            raise ParameterError("sentence_weight", f"must be a number from 0 to 1, not {self.sentence_weight}")

    @property
    def weight(self) -> float:
        """`sentence_weight`, the preset's where it is None."""
        return _PRESET_WEIGHT[self.preset] if self.sentence_weight is None else self.sentence_weight

    @property
    def reads_prepared(self) -> bool:
        """Whether the synthetic answers are prepared ones."""
        return self.synthetic is SyntheticMode.PREPARED

    def resolved(self, facts: ModelFacts) -> Self:
        """With weight and threshold filled in; a threshold was fitted with one weight and holds for that one only.

        Raises:
            ParameterError: One of them is unset, and what was fitted for the model cannot be read.
        """
        if self.sentence_weight is not None and self.threshold is not None:
            return self
        check_readable(facts)
        found = calibration_for(facts.calibrations, self)
        if found is None and self.preset is SmilePreset.FAST:
            # `fast` approximates `v1` so closely that what was fitted for one holds for the other.
            found = calibration_for(facts.calibrations, replace(self, preset=SmilePreset.V1))
        if found is None:
            return replace(self, sentence_weight=self.weight)
        fitted = _PRESET_WEIGHT[self.preset] if found.sentence_weight is None else found.sentence_weight
        weight = fitted if self.sentence_weight is None else self.sentence_weight
        threshold = found.threshold if self.threshold is None and math.isclose(weight, fitted) else self.threshold
        filled_in = (weight, threshold) != (self.weight, self.threshold)
        return replace(
            self, sentence_weight=weight, threshold=threshold, calibration=found.described if filled_in else ""
        )


def member(kind: type[E], field: str, value: str) -> E:
    """The member of an enum that `value` names; raises ParameterError naming `field` and the choices."""
    try:
        return kind(value)
    except ValueError:
        raise ParameterError(field, f"must be one of {', '.join(kind)}, not {value!r}") from None


def check_threshold(value: float | None) -> None:
    """Raises ParameterError where a threshold is not a finite number."""
    if value is not None and not math.isfinite(value):
        raise ParameterError("threshold", f"must be a finite number, not {value}")


def check_readable(facts: ModelFacts) -> None:
    """Raises ParameterError where something was fitted for the metric and cannot be read: scores would go without."""
    for _, told in facts.unreadable:
        raise ParameterError("model", told)


def with_fitted_threshold(parameters: P, facts: ModelFacts) -> P:
    """With `threshold` and `calibration`, which the parameters have, filled in where one was fitted and none is set.

    Raises:
        ParameterError: None is set, and what was fitted for the model cannot be read.
    """
    if getattr(parameters, "threshold", None) is not None:
        return parameters
    check_readable(facts)
    found = calibration_for(facts.calibrations, parameters)
    if found is None:
        return parameters
    values: dict[str, Any] = {"threshold": found.threshold, "calibration": found.described}
    return replace(parameters, **values)


@dataclass(frozen=True, slots=True)
class SbertParameters(PlainParameters):
    """Parameters of `sbert`.

    Attributes:
        model: Plain name of the encoder.
        threshold: Score from which the answer counts as right; None for no verdict.
        calibration: Whose fit filled it in.

    Raises:
        ParameterError: The threshold is not a finite number.
    """

    model: str = ""
    threshold: float | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        check_threshold(self.threshold)

    def resolved(self, facts: ModelFacts) -> Self:
        """With the threshold that was fitted for the model."""
        return with_fitted_threshold(self, facts)


@dataclass(frozen=True, slots=True)
class ExactMatchParameters(PlainParameters):
    """`exact_match` has no parameters."""


@dataclass(frozen=True, slots=True)
class EasyMatchParameters(PlainParameters):
    """`easy_match` has no parameters."""
