"""Metric `grader`: a trained model's probability that an answer is right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_proto.parts import GraderParts
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, Parameters
from gradewire_server.domain.needs import Grade, GradedTexts, Program, ask
from gradewire_server.metrics.common import (
    NothingToPrepare,
    cut_warning,
    expect,
    first_of_the_highest,
    is_blank,
    scoring,
)

MAX_CHARACTERS: Final = 32_768

_RIGHT = 0.5


def graded_texts(item: Item, references: Sequence[int]) -> tuple[GradedTexts, ...]:
    """Return the question ("" if blank), the reference and the answer for each reference index."""
    question = "" if is_blank(item.question) else item.question[:MAX_CHARACTERS]
    answer = item.prediction[:MAX_CHARACTERS]
    return tuple((question, item.references[index][:MAX_CHARACTERS], answer) for index in references)


def is_shortened(item: Item, references: Sequence[int]) -> bool:
    """Return True if `graded_texts` shortens a text."""
    texts = (item.question, item.prediction, *(item.references[index] for index in references))
    return any(len(text) > MAX_CHARACTERS for text in texts)


@dataclass(frozen=True, slots=True)
class GraderParameters(Parameters):
    """The parameters of `grader`; `model` is a name without a digest."""

    model: str = ""


class Grader(NothingToPrepare):
    """The logistic function of the highest logit among all references; ties go to the first reference."""

    info = MetricInfo(
        name="grader",
        version=1,
        description="Probability that the answer is right, from a model that reads question, reference and answer "
        "together; correct from 0.5.",
        citation="Nogueira and Cho 2019, Passage Re-ranking with BERT (two texts in one pass); gradewire, "
        "docs/reference/metrics.md",
        needs_grader=True,
        advice="On labelled answers to text questions, grader-mini agrees less with annotators than smile and "
        "correctness do. See docs/research/grader.md.",
    )
    parameters_type = GraderParameters

    @scoring
    def score(self, item: Item, parameters: GraderParameters, metadata: ModelMetadata) -> Program:
        """Grade in one round. The question may be blank."""
        references = range(len(item.references))
        grades = yield from expect(ask(Grade(parameters.model, graded_texts(item, references))))
        best = first_of_the_highest(grades.logits)
        logit = float(grades.logits[best])
        truncated = is_shortened(item, references) or bool(grades.truncated.any())
        score = _logistic(logit / metadata.temperature)
        return MetricResult(
            score=score,
            warnings=cut_warning(truncated),
            matched_reference=best,
            parts=GraderParts(logit=logit, pieces=int(grades.pieces[best]), truncated=truncated),
            correct=score >= _RIGHT,
        )


def _logistic(logit: float) -> float:
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    grown = math.exp(logit)
    return grown / (1 + grown)
