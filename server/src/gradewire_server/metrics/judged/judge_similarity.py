"""Likeness of prediction and references in a judge's eyes: one number from 0 to 1.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering" (SFVE), appendix
B. There the judge writes a number; here it chooses from the labels of a scale, so that every answer is a number.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.judged.metric import ADVICE, JudgedMetric, JudgeParameters, Scale


@dataclass(frozen=True, slots=True)
class JudgeSimilarityParameters(JudgeParameters):
    """Parameters of `judge_similarity`."""

    metric: ClassVar[str] = "judge_similarity"

    @property
    @override
    def variant(self) -> str:
        return "similarity"


JUDGE_SIMILARITY: Final = JudgedMetric(
    MetricInfo(
        name="judge_similarity",
        version=3,
        description="How alike prediction and references are in a language model's eyes, in the light of the question.",
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        needs_judge=True,
        advice=ADVICE,
    ),
    JudgeSimilarityParameters,
    Scale("similarity", lowest=0.0, highest=1.0),
)
"""The similarity that the prompt's labels stand for; it is the score."""
