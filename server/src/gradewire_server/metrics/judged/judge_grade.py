"""A judge's grade from 0 to 5 and its verdict yes or no.

Source: SMILE, appendix A.1 (styles match and extract), after Maaz et al. 2024, "Video-ChatGPT".
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from typing_extensions import override

from gradewire_server.domain.metric import ParameterInfo
from gradewire_server.metrics.judged.metric import JudgedMetric, JudgedParameters, Scale, judged_info
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    BinaryQuestions,
    LabelValue,
    binary_info,
    value_info,
)


class GradeStyle(StrEnum):
    """What the judge does before it grades."""

    MATCH = "match"
    EXTRACT = "extract"


@dataclass(frozen=True, slots=True)
class JudgeGradeParameters(JudgedParameters):
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

    @property
    @override
    def variant(self) -> str:
        return self.style

    @property
    @override
    def by_rule(self) -> bool:
        return self.binary is BinaryQuestions.RULE


class JudgeGrade(JudgedMetric[JudgeGradeParameters]):
    """Grade / 5; right where the verdict is yes."""

    info = judged_info(
        "judge_grade",
        version=1,
        description="A language model's grade, 0 to 5, and its verdict yes or no; the score is grade / 5.",
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
    )
    parameters_type = JudgeGradeParameters
    scale = Scale("grade", lowest=0.0, highest=5.0, verdict="verdict")
