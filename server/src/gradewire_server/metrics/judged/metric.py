"""The class of all metrics that ask a judge: what the judge says becomes a score and a verdict."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, JudgeParts, MetricResult, Status
from gradewire_server.metrics.checks import check_question, check_references
from gradewire_server.metrics.judged.binary_questions import rule_verdict
from gradewire_server.metrics.judged.parameters import BinaryParameters, BinaryQuestions, JudgeParameters, LabelValue
from gradewire_server.metrics.judged.rounds import Judged, ask_judge
from gradewire_server.metrics.judged.shown_item import check_judged

P = TypeVar("P", bound=JudgeParameters)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a judge's choice becomes the score.

    Attributes:
        step: Step of the prompt whose labels are the scale.
        lowest: Value that becomes 0.
        highest: Value that becomes 1.
        verdict: Step whose yes or no is the verdict; empty: the score decides.
        shown: Whether the parts name the value; it is left out where the score says the same.
    """

    step: str
    lowest: float
    highest: float
    verdict: str = ""
    shown: bool = True

    def score(self, value: float) -> float:
        """The value between lowest and highest, as 0 to 1."""
        return (value - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True, slots=True)
class JudgedMetric(Generic[P]):
    """Asks a judge the steps of a prompt; answers to binary questions may be graded by a rule instead.

    Attributes:
        info: Its public face.
        parameters_type: Its parameters.
        scale: How what the judge says becomes score and verdict.
    """

    info: MetricInfo
    parameters_type: type[P]
    scale: Scale

    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """One round for each step of the prompt's variant; none where the rule decides."""
        del metadata
        failure = check_judged(item)
        if failure is None and parameters.view.image and not item.images:
            failure = Failure(Status.INVALID_INPUT, "images: there is none, and image=true needs one")
        if failure is not None:
            return MetricResult.failed(failure)
        if isinstance(parameters, BinaryParameters) and parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                return self._by_rule(verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, parameters.view)
        return judged if isinstance(judged, MetricResult) else self._by_judge(judged, parameters)

    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_references(entry.references) or check_question(entry.question)

    def _by_rule(self, verdict: bool) -> MetricResult:  # noqa: FBT001 - the verdict is what it is about
        value = self.scale.highest if verdict else self.scale.lowest
        parts = JudgeParts(value=value if self.scale.shown else None, decided_by="rule")
        return MetricResult(score=float(verdict), parts=parts, correct=verdict)

    def _by_judge(self, judged: Judged, parameters: P) -> MetricResult:
        scale, correct_from = self.scale, parameters.file.variants[parameters.variant].correct_from
        value = judged.choices[scale.step].value(parameters.value)
        score = scale.score(value)
        if scale.verdict:
            said = judged.choices[scale.verdict]
            yes_probability, correct = said.value(LabelValue.EXPECTED), said.says_yes(parameters.value, correct_from)
        else:
            yes_probability, correct = None, score >= correct_from
        return MetricResult(
            score=score,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=judged.parts(scale.step, value=value if scale.shown else None, yes_probability=yes_probability),
            correct=correct,
        )
