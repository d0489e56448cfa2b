"""A judge's verdict yes or no, at once or behind its thoughts.

Source: KNVQA-Eval, section on language models as evaluators: plain, step by step, and with reasons.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts, ParameterInfo
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, JudgeParts, MetricResult
from gradewire_server.metrics.judged.binary_questions import rule_verdict
from gradewire_server.metrics.judged.item import View, check_entry, check_judged
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    BinaryQuestions,
    JudgeParameters,
    LabelValue,
    advice,
    binary_info,
    value_info,
)
from gradewire_server.metrics.judged.rounds import ask_judge


class VerdictStyle(StrEnum):
    """What the judge writes before its verdict."""

    PLAIN = "plain"
    STEP_BY_STEP = "step_by_step"
    REASONS = "reasons"


@dataclass(frozen=True, slots=True)
class JudgeVerdictParameters(JudgeParameters):
    """Parameters of `judge_verdict`.

    Attributes:
        model: Plain name of the judge.
        style: What is written before the verdict.
        value: Whether the score is the probability of yes (expected), or 1 or 0 (most_probable).
        binary: Who grades answers to binary questions.
        prompt: NAME/VERSION@DIGEST, or the text of a prompt file.

    Raises:
        ParameterError: A choice that does not exist, or a prompt that cannot be used.
    """

    metric: ClassVar[str] = "judge_verdict"

    model: str = ""
    style: VerdictStyle = VerdictStyle.PLAIN
    value: LabelValue = LabelValue.EXPECTED
    binary: BinaryQuestions = BinaryQuestions.RULE
    prompt: str = ""

    def __post_init__(self) -> None:
        self.take_choices(style=VerdictStyle, value=LabelValue, binary=BinaryQuestions)
        self.take_prompt(self.style)


class JudgeVerdict:
    """Probability of yes, or 1 and 0; right where the verdict is yes."""

    info = MetricInfo(
        name="judge_verdict",
        version=1,
        description="How probable yes is in a language model's eyes when it is asked whether the prediction is right.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="KNVQA: A Benchmark for evaluation knowledge-based VQA, 2023",
        parameters=(
            JUDGE_INFO,
            ParameterInfo(
                name="style",
                description="plain: the verdict alone; step_by_step and reasons: behind thoughts or reasons that are "
                "written first, many times slower.",
                default_value=VerdictStyle.PLAIN,
                allowed=", ".join(VerdictStyle),
            ),
            value_info(JudgeVerdictParameters().value),
            binary_info(JudgeVerdictParameters().binary),
            PROMPT_INFO,
        ),
        needs_model=False,
        needs_judge=True,
        advice=advice("a twentieth", 0.944),
    )
    parameters_type = JudgeVerdictParameters

    def score(self, item: Item, parameters: JudgeVerdictParameters, facts: ModelFacts) -> Program:
        """One round; two where thoughts stand before the verdict; none where the rule decides."""
        del facts
        failure = check_judged(item)
        if failure is not None:
            return MetricResult.failed(failure)
        if parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                return MetricResult(score=float(verdict), parts=JudgeParts(decided_by="rule"), correct=verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.style, item, View())
        if isinstance(judged, Failure):
            return MetricResult.failed(judged)
        chosen = judged.choices["verdict"]
        correct_from = parameters.file.variants[parameters.style].correct_from
        return MetricResult(
            score=chosen.value(parameters.value),
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=judged.parts("verdict", value=None, yes_probability=chosen.value(LabelValue.EXPECTED)),
            correct=chosen.says_yes(parameters.value, correct_from),
        )

    def prepare(self, entry: ReferenceEntry, parameters: JudgeVerdictParameters) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_entry(entry)
