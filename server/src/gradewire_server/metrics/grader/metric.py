"""`grader`: the probability that an answer is right, by a model that reads question, reference and answer together."""

import math
from dataclasses import dataclass

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, Parameters
from gradewire_server.domain.needs import Grade, Preparation, Program, ask
from gradewire_server.domain.parts import GraderParts
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, check_references, cut_warning
from gradewire_server.metrics.grader.texts import graded_texts, is_shortened
from gradewire_server.metrics.ties import first_of_the_highest

_RIGHT = 0.5


@dataclass(frozen=True, slots=True)
class GraderParameters(Parameters):
    """Parameters of `grader`.

    Attributes:
        model: Plain name of the grader.
    """

    model: str = ""


class Grader:
    """Logistic function of the best reference's logit; equal ones: the lowest reference index."""

    info = MetricInfo(
        name="grader",
        version=1,
        description="Probability that the answer is right, by a model that reads question, reference and answer "
        "together; correct from 0.5.",
        citation="Nogueira and Cho 2019, Passage Re-ranking with BERT (two texts in one pass); gradewire, "
        "docs/reference/metrics.md",
        needs_grader=True,
        advice="On labelled answers to text questions grader-mini agrees less with people than smile and correctness "
        "do: docs/research/grader.md.",
    )
    parameters_type = GraderParameters

    def score(self, item: Item, parameters: GraderParameters, metadata: ModelMetadata) -> Program:
        """One round: the answer beside each reference. The question may be empty."""
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        references = range(len(item.references))
        grades = yield from ask(Grade(parameters.model, graded_texts(item, references)))
        if isinstance(grades, Failure):
            return MetricResult.failed(grades)
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

    def prepare(self, entry: ReferenceEntry, parameters: GraderParameters) -> Preparation:
        """Checks the references: nothing of them can be computed without an answer."""
        del parameters
        yield from ()
        return check_references(entry.references)


def _logistic(logit: float) -> float:
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    grown = math.exp(logit)
    return grown / (1 + grown)
