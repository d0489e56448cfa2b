"""A judge's verdict yes or no, at once or behind its thoughts.

Source: KNVQA-Eval, section on language models as evaluators: plain, step by step, and with reasons.
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


class VerdictStyle(StrEnum):
    """What the judge writes before its verdict."""

    PLAIN = "plain"
    STEP_BY_STEP = "step_by_step"
    REASONS = "reasons"


@dataclass(frozen=True, slots=True)
class JudgeVerdictParameters(JudgedParameters):
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

    @property
    @override
    def variant(self) -> str:
        return self.style

    @property
    @override
    def by_rule(self) -> bool:
        return self.binary is BinaryQuestions.RULE


class JudgeVerdict(JudgedMetric[JudgeVerdictParameters]):
    """Probability of yes, or 1 and 0; right where the verdict is yes."""

    info = judged_info(
        "judge_verdict",
        version=1,
        description="How probable yes is in a language model's eyes when it is asked whether the prediction is right.",
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
    )
    parameters_type = JudgeVerdictParameters
    scale = Scale("verdict", lowest=0.0, highest=1.0, verdict="verdict", shown=False)
