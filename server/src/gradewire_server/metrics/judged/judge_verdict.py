"""A judge's verdict, "yes" or "no", given at once or after a reason.

Source: KNVQA-Eval, section on language models as evaluators (plain, step by step, and with reasons).
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_proto.choices import VerdictStyle
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.judged.metric import ADVICE, BinaryParameters, JudgedMetric, Scale
from gradewire_server.metrics.judged.references import View


@dataclass(frozen=True, slots=True)
class JudgeVerdictParameters(BinaryParameters):
    """The parameters of `judge_verdict`. The score is 1 or 0; with `expected`, it is the probability of "yes"."""

    metric: ClassVar[str] = "judge_verdict"

    style: VerdictStyle = VerdictStyle.PLAIN
    image: bool = False

    @property
    @override
    def variant(self) -> str:
        return self.style

    @property
    @override
    def view(self) -> View:
        return View(caption=self.caption, references=self.references, image=self.image)


JUDGE_VERDICT: Final = JudgedMetric(
    MetricInfo(
        name="judge_verdict",
        version=3,
        description='Probability that a language model answers "yes" when asked whether the prediction is right.',
        citation="KNVQA: A Benchmark for evaluation knowledge-based VQA, 2023",
        needs_judge=True,
        advice=ADVICE,
    ),
    JudgeVerdictParameters,
    Scale("verdict", lowest=0.0, highest=1.0, verdict="verdict", shown=False),
)
