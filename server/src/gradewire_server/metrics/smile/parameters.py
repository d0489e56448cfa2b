"""Parameters of `smile`; field and value names as in types.proto."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from gradewire_server.domain.metric import ModelMetadata, ParameterError, calibration_for, parameter_info
from gradewire_server.metrics.common import EncoderParameters, check_readable


class SmilePreset(StrEnum):
    """Variants of SMILE that differ in their formula; docs/reference/metrics.md has the table."""

    V1 = "v1"
    FAST = "fast"
    ONE_PASS = "one_pass"  # noqa: S105 - one pass of the encoder, no password
    WHOLE = "whole"
    PAPER = "paper"
    REFERENCE_CODE = "reference_code"


class SyntheticMode(StrEnum):
    """Which sentence the prediction as a whole is compared with."""

    NONE = "none"
    INLINE = "inline"
    PREPARED = "prepared"


PRESET_WEIGHT: Final = {
    preset: float(parameter_info("smile", "sentence_weight").default_with(preset)) for preset in SmilePreset
}
"""Weight of the sentence term by preset; types.proto has the numbers."""


@dataclass(frozen=True, slots=True)
class SmileParameters(EncoderParameters):
    """Parameters of `smile`.

    Attributes:
        preset: Variant of the formula.
        synthetic: What stands for the reference in the sentence term.
        sentence_weight: Weight w of the sentence term, 0 to 1; None becomes the one fitted for the model, else the
            preset's.
        threshold: None becomes the one fitted for the model with this
            preset, mode and weight; where there is none the bin decides, and the result is UNCALIBRATED.
        calibration: Whose fit filled weight or threshold in.

    Raises:
        ParameterError: As `EncoderParameters`, or a weight that is not a finite number from 0 to 1.
    """

    preset: SmilePreset = SmilePreset.V1
    synthetic: SyntheticMode = SyntheticMode.NONE
    sentence_weight: float | None = None

    def __post_init__(self) -> None:
        EncoderParameters.__post_init__(self)
        if self.sentence_weight is not None and not (
            math.isfinite(self.sentence_weight) and 0 <= self.sentence_weight <= 1
        ):
            raise ParameterError("sentence_weight", f"must be a number from 0 to 1, not {self.sentence_weight}")

    @property
    def weight(self) -> float:
        """`sentence_weight`, the preset's where it is None."""
        return PRESET_WEIGHT[self.preset] if self.sentence_weight is None else self.sentence_weight

    @property
    def reads_prepared(self) -> bool:
        """Whether the synthetic answers are prepared ones."""
        return self.synthetic is SyntheticMode.PREPARED

    def resolved(self, metadata: ModelMetadata) -> Self:
        """With weight and threshold filled in; a threshold was fitted with one weight and holds for that one only.

        Raises:
            ParameterError: One of them is unset, and what was fitted for the model cannot be read.
        """
        if self.sentence_weight is not None and self.threshold is not None:
            return self
        check_readable(metadata)
        found = calibration_for(metadata.calibrations, self)
        if found is None and self.preset in {SmilePreset.FAST, SmilePreset.WHOLE}:
            # `fast` approximates `v1` so closely that what was fitted for one holds for the other, and `whole` is
            # `fast` on all answers but those that `v1` reads in part.
            found = calibration_for(metadata.calibrations, replace(self, preset=SmilePreset.V1))
        if found is None:
            return replace(self, sentence_weight=self.weight)
        fitted = PRESET_WEIGHT[self.preset] if found.sentence_weight is None else found.sentence_weight
        weight = fitted if self.sentence_weight is None else self.sentence_weight
        threshold = found.threshold if self.threshold is None and math.isclose(weight, fitted) else self.threshold
        filled_in = (weight, threshold) != (self.weight, self.threshold)
        return replace(
            self, sentence_weight=weight, threshold=threshold, calibration=found.described if filled_in else ""
        )
