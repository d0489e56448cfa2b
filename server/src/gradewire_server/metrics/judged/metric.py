"""The class of all metrics that ask a judge: what the judge says becomes a score and a verdict."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Need, Preparation, Program
from gradewire_server.domain.parts import JudgeParts
from gradewire_server.domain.result import Failure, MetricResult, Status
from gradewire_server.metrics.checks import check_question, check_references
from gradewire_server.metrics.judged.binary_questions import rule_verdict
from gradewire_server.metrics.judged.guards.other_key import WITHSTANDS_BELOW, other_key, says_key
from gradewire_server.metrics.judged.parameters import (
    BinaryParameters,
    BinaryQuestions,
    Guard,
    JudgeParameters,
    LabelValue,
)
from gradewire_server.metrics.judged.reference_filter import count_references
from gradewire_server.metrics.judged.rounds import Judged, ask_judge
from gradewire_server.metrics.judged.shown_item import check_judged, kind_of_question

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
class _Said:
    """What a judge said, as numbers.

    Attributes:
        value: On the labels' own scale.
        score: 0 to 1.
        yes_probability: Of a verdict; None where the score decides.
        correct: Whether the answer is right by it.
        other_key_score: Score against another question's key; None where it was not asked.
    """

    value: float
    score: float
    yes_probability: float | None
    correct: bool
    other_key_score: float | None = None

    @property
    def belief(self) -> float:
        """What the verdict was made of, 0 to 1."""
        return self.score if self.yes_probability is None else self.yes_probability

    def held_against(self, other: "_Said") -> "_Said":
        """Lowered, and wrong, where the judge believes the same answer against another question's key."""
        if other.belief < WITHSTANDS_BELOW:
            return replace(self, other_key_score=other.score)
        lowered = max(0.0, self.score - other.score)
        return replace(self, score=lowered, correct=False, other_key_score=other.score)


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
        """One round for each step of the prompt's variant; none where the rule decides; as many again for the guard."""
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
        if isinstance(judged, MetricResult):
            return judged
        said = self._said(judged, parameters)
        if parameters.guard is Guard.NONE or not said.correct or says_key(item, parameters.view.share):
            return self._by_judge(judged, said)
        other = yield from self._ask_with_other_key(item, parameters)
        if isinstance(other, MetricResult):
            return other
        judged.count(other)
        return self._by_judge(judged, said.held_against(self._said(other, parameters)))

    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_references(entry.references) or check_question(entry.question)

    def _ask_with_other_key(self, item: Item, parameters: P) -> Generator[tuple[Need, ...], Any, Judged | MetricResult]:
        """Asks about the answer as if the question had another question's key."""
        view = parameters.view
        # Beside the same demonstrations, so that the key is all that differs.
        view = replace(view, kind=view.kind or kind_of_question(item, count_references(item.references)))
        item = replace(item, references=other_key(item))
        return (yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, view))

    def _by_rule(self, verdict: bool) -> MetricResult:  # noqa: FBT001 - the verdict is what it is about
        value = self.scale.highest if verdict else self.scale.lowest
        parts = JudgeParts(value=value if self.scale.shown else None, decided_by="rule")
        return MetricResult(score=float(verdict), parts=parts, correct=verdict)

    def _said(self, judged: Judged, parameters: P) -> _Said:
        scale, correct_from = self.scale, parameters.file.variants[parameters.variant].correct_from
        value = judged.choices[scale.step].value(parameters.value)
        score = scale.score(value)
        if not scale.verdict:
            return _Said(value, score, None, correct=score >= correct_from)
        verdict = judged.choices[scale.verdict]
        yes_probability = verdict.value(LabelValue.EXPECTED)
        return _Said(value, score, yes_probability, correct=verdict.says_yes(parameters.value, correct_from))

    def _by_judge(self, judged: Judged, said: _Said) -> MetricResult:
        value = said.value if self.scale.shown else None
        parts = judged.parts(self.scale.step, value=value, yes_probability=said.yes_probability)
        if said.other_key_score is not None:
            decided_by = parts.decided_by if said.correct else "guard"
            parts = replace(parts, other_key_score=said.other_key_score, decided_by=decided_by)
        return MetricResult(
            score=said.score,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=parts,
            correct=said.correct,
        )
