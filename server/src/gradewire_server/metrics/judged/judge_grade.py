"""A grade from 0 to 5, and a verdict ("yes" or "no"), both from a judge.

Source: SMILE, appendix A.1 (styles match and extract), after Maaz et al. 2024, "Video-ChatGPT".
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_proto.choices import GradeStyle
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.judged.metric import ADVICE, BinaryParameters, JudgedMetric, Scale


@dataclass(frozen=True, slots=True)
class JudgeGradeParameters(BinaryParameters):
    """The parameters of `judge_grade`; `style` determines whether the judge writes key facts first."""

    metric: ClassVar[str] = "judge_grade"

    style: GradeStyle = GradeStyle.MATCH

    @property
    @override
    def variant(self) -> str:
        return self.style


JUDGE_GRADE: Final = JudgedMetric(
    MetricInfo(
        name="judge_grade",
        version=3,
        description="A language model's grade, 0 to 5, and its yes-or-no verdict; the score is grade / 5.",
        citation="Maaz et al. 2024, Video-ChatGPT, ACL; SMILE, appendix A.1",
        needs_judge=True,
        advice=ADVICE,
    ),
    JudgeGradeParameters,
    Scale("grade", lowest=0.0, highest=5.0, verdict="verdict"),
)
