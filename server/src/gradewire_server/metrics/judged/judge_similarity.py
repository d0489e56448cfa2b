"""A judge's similarity of prediction and references, a number from 0 to 1.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering" (SFVE), appendix
B. In the paper, the judge writes a number. Here, the judge chooses a label from a scale.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.judged.metric import ADVICE, JudgedMetric, JudgeParameters, Scale


@dataclass(frozen=True, slots=True)
class JudgeSimilarityParameters(JudgeParameters):
    """The parameters of `judge_similarity`."""

    metric: ClassVar[str] = "judge_similarity"

    @property
    @override
    def variant(self) -> str:
        return "similarity"


JUDGE_SIMILARITY: Final = JudgedMetric(
    MetricInfo(
        name="judge_similarity",
        version=3,
        description="A language model's rating of the similarity of prediction and references, given the question.",
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        needs_judge=True,
        advice=ADVICE,
    ),
    JudgeSimilarityParameters,
    Scale("similarity", lowest=0.0, highest=1.0),
)
