"""Typed parameters of the metrics; field and value names as in types.proto."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from gradewire_server.domain.metric import ParameterError, ParameterInfo, PlainParameters

MODEL_INFO = ParameterInfo(
    name="model",
    description="Encoder: a name of the model list; NAME@DIGEST (8 hex digits or more) insists on exact weights.",
    default_value="",
    allowed="a built encoder; empty: the default one",
)

E = TypeVar("E", bound=StrEnum)


class SmilePreset(StrEnum):
    """Variants of SMILE that differ in their formula; docs/scores.md has the table."""

    V1 = "v1"
    FAST = "fast"
    PAPER = "paper"
    REFERENCE_CODE = "reference_code"


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


@dataclass(frozen=True, slots=True)
class SmileParameters(PlainParameters):
    """Parameters of `smile`.

    Attributes:
        preset: Variant of the formula.
        synthetic: What stands for the reference in the sentence term.
        sentence_weight: Weight w of the sentence term, 0 to 1; None becomes the preset's (0.3; 0.5 for REFERENCE_CODE).
        model: Plain name of the encoder.

    Raises:
        ParameterError: A preset or mode that does not exist, or a weight that is not a finite number from 0 to 1.
    """

    preset: SmilePreset = SmilePreset.V1
    synthetic: SyntheticMode = SyntheticMode.NONE
    sentence_weight: float | None = None
    model: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "preset", member(SmilePreset, "preset", self.preset))
        object.__setattr__(self, "synthetic", member(SyntheticMode, "synthetic", self.synthetic))
        if self.sentence_weight is None:
            object.__setattr__(self, "sentence_weight", 0.5 if self.preset is SmilePreset.REFERENCE_CODE else 0.3)
        elif not (math.isfinite(self.sentence_weight) and 0 <= self.sentence_weight <= 1):
            raise ParameterError("sentence_weight", f"must be a number from 0 to 1, not {self.sentence_weight}")

    @property
    def weight(self) -> float:
        """`sentence_weight`, which is never None once constructed."""
        assert self.sentence_weight is not None  # noqa: S101 - tells the type checker what __post_init__ has done
        return self.sentence_weight

    @property
    def reads_prepared(self) -> bool:
        """Whether the synthetic answers are prepared ones."""
        return self.synthetic is SyntheticMode.PREPARED


def member(kind: type[E], field: str, value: str) -> E:
    """The member of an enum that `value` names; raises ParameterError naming `field` and the choices."""
    try:
        return kind(value)
    except ValueError:
        raise ParameterError(field, f"must be one of {', '.join(kind)}, not {value!r}") from None


@dataclass(frozen=True, slots=True)
class SbertParameters(PlainParameters):
    """Parameters of `sbert`: `model` is the plain name of the encoder."""

    model: str = ""


@dataclass(frozen=True, slots=True)
class ExactMatchParameters(PlainParameters):
    """`exact_match` has no parameters."""


@dataclass(frozen=True, slots=True)
class EasyMatchParameters(PlainParameters):
    """`easy_match` has no parameters."""
