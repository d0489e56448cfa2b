"""VQA accuracy: how many annotators gave the predicted answer.

Source: Antol et al. 2015, "VQA: Visual Question Answering", section 3 (min(n/3, 1)), and the challenge's evaluation
(leave-one-out over the annotators).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from typing_extensions import override

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import MetricInfo, ParameterError, Parameters
from gradewire_server.domain.parts import VqaParts
from gradewire_server.domain.result import Failure, MetricResult, Status
from gradewire_server.metrics.checks import check_item
from gradewire_server.metrics.matching.vqa_normalise import tidy, vqa_normalise
from gradewire_server.metrics.parameters import take_choices
from gradewire_server.metrics.text_metric import TextMetric

_ENOUGH: Final = 3
"""Annotators who must agree for a full score."""
_ROUNDING: Final = 1e-9


class VqaConsensus(StrEnum):
    """How agreeing annotators become a score."""

    LEAVE_ONE_OUT = "leave_one_out"
    DIRECT = "direct"
    SINGLE = "single"


class VqaNormalise(StrEnum):
    """Whether answers on which all annotators agree are normalised like others."""

    OFFICIAL = "official"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class VqaAccuracyParameters(Parameters):
    """Parameters of `vqa_accuracy` and `soft_vqa_accuracy`.

    Attributes:
        consensus: How agreeing annotators become a score.
        verdict_cut: Score from which the answer counts as right, above 0 to 1; None: the metric's own rule.
        normalise: Whether answers on which all annotators agree are normalised like others.

    Raises:
        ParameterError: A choice that does not exist, or a cut out of range.
    """

    consensus: VqaConsensus = VqaConsensus.LEAVE_ONE_OUT
    verdict_cut: float | None = None
    normalise: VqaNormalise = VqaNormalise.OFFICIAL

    def __post_init__(self) -> None:
        take_choices(self)
        if self.verdict_cut is not None and not 0 < self.verdict_cut <= 1:
            raise ParameterError("verdict_cut", f"must be a number above 0, at most 1, not {self.verdict_cut}")


def comparable(item: Item, normalise: VqaNormalise) -> tuple[str, tuple[str, ...]]:
    """Prediction and references as they are compared."""
    references = tuple(map(tidy, item.references))
    prediction = tidy(item.prediction)
    if normalise is VqaNormalise.OFFICIAL and len(set(references)) == 1:
        return prediction, references
    return vqa_normalise(prediction), tuple(map(vqa_normalise, references))


def consensus_score(agreements: Sequence[float], consensus: VqaConsensus) -> float:
    """Score from each annotator's agreement with the prediction, 0 to 1 each."""
    if consensus is VqaConsensus.SINGLE:
        return max(agreements)
    total = math.fsum(agreements)
    if consensus is VqaConsensus.DIRECT:
        return min(1.0, total / _ENOUGH)
    return math.fsum(min(1.0, (total - own) / _ENOUGH) for own in agreements) / len(agreements)


def reaches(score: float, cut: float) -> bool:
    """Whether a score is at least `cut`, but for rounding."""
    return score >= cut - _ROUNDING


class VqaAccuracy(TextMetric[VqaAccuracyParameters]):
    """Share of annotators' consensus that the prediction meets; the first who agrees is named."""

    info = MetricInfo(
        name="vqa_accuracy",
        version=2,
        description="How many annotators gave the predicted answer, as the VQA challenge counts; all references count.",
        citation="Antol et al. 2015, VQA: Visual Question Answering, ICCV; the challenge's evaluation program",
    )
    parameters_type = VqaAccuracyParameters

    @override
    def check(self, item: Item, parameters: VqaAccuracyParameters) -> Failure | None:
        failure = check_item(item)
        # One reference is all there is to leave out.
        if failure is None and parameters.consensus is VqaConsensus.LEAVE_ONE_OUT and len(item.references) == 1:
            return Failure(
                Status.INVALID_INPUT,
                "references: leaving one annotator out needs two at least, one answer each; consensus=single takes one",
            )
        return failure

    @override
    def grade(self, item: Item, parameters: VqaAccuracyParameters) -> MetricResult:
        prediction, references = comparable(item, parameters.normalise)
        agreements = [float(reference == prediction) for reference in references]
        agreeing = int(sum(agreements))
        score = consensus_score(agreements, parameters.consensus)
        return MetricResult(
            score=score,
            matched_reference=agreements.index(1.0) if agreeing else None,
            parts=VqaParts(agreeing, len(references), prediction),
            correct=agreeing > 0 if parameters.verdict_cut is None else reaches(score, parameters.verdict_cut),
        )
