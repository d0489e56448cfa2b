"""How alike prediction and references are in a judge's eyes: one number from 0 to 1.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering" (SFVE), appendix
B. There the judge writes a number; here it chooses from the labels of a scale, so that every answer is a number.
"""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from gradewire_server.metrics.judged.metric import JudgedMetric, JudgedParameters, Scale, judged_info
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    LabelValue,
    value_info,
)

_SIMILARITY = "similarity"


@dataclass(frozen=True, slots=True)
class JudgeSimilarityParameters(JudgedParameters):
    """Parameters of `judge_similarity`.

    Attributes:
        model: Plain name of the judge.
        value: How probabilities become the similarity.
        prompt: NAME/VERSION@DIGEST, or the text of a prompt file.

    Raises:
        ParameterError: A choice that does not exist, or a prompt that cannot be used.
    """

    metric: ClassVar[str] = "judge_similarity"

    model: str = ""
    value: LabelValue = LabelValue.EXPECTED
    prompt: str = ""

    def __post_init__(self) -> None:
        self.take_choices(value=LabelValue)
        self.take_prompt(_SIMILARITY)

    @property
    @override
    def variant(self) -> str:
        return _SIMILARITY


class JudgeSimilarity(JudgedMetric[JudgeSimilarityParameters]):
    """The similarity that the prompt's labels stand for; it is the score."""

    info = judged_info(
        "judge_similarity",
        version=1,
        description="How alike prediction and references are in a language model's eyes, in the light of the question.",
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        parameters=(JUDGE_INFO, value_info(JudgeSimilarityParameters().value), PROMPT_INFO),
    )
    parameters_type = JudgeSimilarityParameters
    scale = Scale("similarity", lowest=0.0, highest=1.0)
