"""Parameters that metrics of several rooms share; field and value names as in types.proto."""

import math
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

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

P = TypeVar("P", bound=PlainParameters)


class Measure(StrEnum):
    """Which of precision, recall and their harmonic mean becomes the score (bertscore, rouge_l)."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


def choice_info(name: str, default: StrEnum, description: str) -> ParameterInfo:
    """A parameter whose values are the members of the default's enum."""
    return ParameterInfo(name, description, default_value=default, allowed=", ".join(type(default)))


MEASURE_INFO = choice_info(
    "measure", Measure.F1, "Which of precision, recall and their harmonic mean becomes the score."
)


def take_choices(parameters: PlainParameters) -> None:
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
                raise ParameterError(field.name, f"must be one of {', '.join(kind)}, not {value!r}") from None


def check_threshold(value: float | None) -> None:
    """Raises ParameterError where a threshold is not a finite number."""
    if value is not None and not math.isfinite(value):
        raise ParameterError("threshold", f"must be a finite number, not {value}")


def check_readable(facts: ModelFacts) -> None:
    """Raises ParameterError where a fit for the metric cannot be read: without it scores would differ."""
    for _, told in facts.unreadable:
        raise ParameterError("model", told)


def with_fitted_threshold(parameters: P, facts: ModelFacts) -> P:
    """The parameters with `threshold` and `calibration` filled in, where a threshold was fitted and none is set.

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
