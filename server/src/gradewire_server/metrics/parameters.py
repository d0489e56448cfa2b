"""Parameters that metrics of several rooms share; field and value names as in types.proto."""

import math
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Self

from gradewire_server.domain.calibration import calibration_for
from gradewire_server.domain.metric import ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.quoting import quoted


class Measure(StrEnum):
    """Which of precision, recall and their harmonic mean becomes the score (bertscore, rouge_l)."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


def take_choices(parameters: Parameters) -> None:
    """Makes members of all fields whose default is the member of an enum; for `__post_init__`.

    Raises:
        ParameterError: A choice that does not exist; names the field and the choices.
    """
    for field in fields(parameters):
        if isinstance(field.default, StrEnum):
            kind = type(field.default)
            value = getattr(parameters, field.name)
            try:
                object.__setattr__(parameters, field.name, kind(value))
            except ValueError:
                raise ParameterError(
                    field.name, f"must be one of {', '.join(kind)}, not {quoted(str(value))}"
                ) from None


def check_readable(metadata: ModelMetadata) -> None:
    """Raises ParameterError where a fit for the metric cannot be read: without it scores would differ."""
    for _, told in metadata.unreadable:
        raise ParameterError("model", told)


@dataclass(frozen=True, slots=True)
class EncoderParameters(Parameters):
    """Parameters of a metric that compares vectors and has no others; base of those that have.

    Attributes:
        model: Plain name of the encoder.
        threshold: Score from which the answer counts as right; None for no verdict.
        calibration: Whose fit filled the threshold in.

    Raises:
        ParameterError: A choice that does not exist, or a threshold that is not a finite number.
    """

    model: str = ""
    threshold: float | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        take_choices(self)
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ParameterError("threshold", f"must be a finite number, not {self.threshold}")

    def resolved(self, metadata: ModelMetadata) -> Self:
        """With threshold and calibration filled in, where one was fitted and none is set.

        Raises:
            ParameterError: None is set, and what was fitted for the model cannot be read.
        """
        if self.threshold is not None:
            return self
        check_readable(metadata)
        found = calibration_for(metadata.calibrations, self)
        return self if found is None else replace(self, threshold=found.threshold, calibration=found.described)
