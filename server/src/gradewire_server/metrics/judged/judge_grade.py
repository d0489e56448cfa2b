"""A judge's grade from 0 to 5 and its verdict yes or no.

Source: SMILE, appendix A.1 (styles match and extract), after Maaz et al. 2024, "Video-ChatGPT".
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

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

_HIGHEST: Final = 5.0


class GradeStyle(StrEnum):
    """What the judge does before it grades."""

    MATCH = "match"
    EXTRACT = "extract"


@dataclass(frozen=True, slots=True)
class JudgeGradeParameters(JudgeParameters):
    """Parameters of `judge_grade`.

    Attributes:
        model: Plain name of the judge.
        style: Whether key facts are written out first.
        value: How probabilities become the grade.
        binary: Who grades answers to binary questions.
        prompt: NAME/VERSION@DIGEST, or the text of a prompt file.

    Raises:
        ParameterError: A choice that does not exist, or a prompt that cannot be used.
    """

    metric: ClassVar[str] = "judge_grade"

    model: str = ""
    style: GradeStyle = GradeStyle.MATCH
    value: LabelValue = LabelValue.EXPECTED
    binary: BinaryQuestions = BinaryQuestions.RULE
    prompt: str = ""

    def __post_init__(self) -> None:
        self.take_choices(style=GradeStyle, value=LabelValue, binary=BinaryQuestions)
        self.take_prompt(self.style)


class JudgeGrade:
    """Grade / 5; right where the verdict is yes."""

    info = MetricInfo(
        name="judge_grade",
        version=1,
        description="A language model's grade, 0 to 5, and its verdict yes or no; the score is grade / 5.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="Maaz et al. 2024, Video-ChatGPT, ACL; SMILE, appendix A.1",
        parameters=(
            JUDGE_INFO,
            ParameterInfo(
                name="style",
                description="match: grade and verdict at once; extract: the key facts of both sides are written first.",
                default_value=GradeStyle.MATCH,
                allowed=", ".join(GradeStyle),
            ),
            value_info(JudgeGradeParameters().value),
            binary_info(JudgeGradeParameters().binary),
            PROMPT_INFO,
        ),
        needs_model=False,
        needs_judge=True,
        advice=advice("a fortieth", 0.898),
    )
    parameters_type = JudgeGradeParameters

    def score(self, item: Item, parameters: JudgeGradeParameters, facts: ModelFacts) -> Program:
        """A round each for grade and verdict, one more before them for key facts; none where the rule decides."""
        del facts
        failure = check_judged(item)
        if failure is not None:
            return MetricResult.failed(failure)
        if parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                parts = JudgeParts(value=_HIGHEST * verdict, decided_by="rule")
                return MetricResult(score=float(verdict), parts=parts, correct=verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.style, item, View())
        if isinstance(judged, Failure):
            return MetricResult.failed(judged)
        grade = judged.choices["grade"].value(parameters.value)
        said = judged.choices["verdict"]
        return MetricResult(
            score=grade / _HIGHEST,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=judged.parts("grade", value=grade, yes_probability=said.value(LabelValue.EXPECTED)),
            correct=said.says_yes(parameters.value, parameters.file.variants[parameters.style].correct_from),
        )

    def prepare(self, entry: ReferenceEntry, parameters: JudgeGradeParameters) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_entry(entry)
