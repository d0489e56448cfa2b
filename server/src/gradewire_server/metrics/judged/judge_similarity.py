"""How alike prediction and references are in a judge's eyes: one number from 0 to 1.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering" (SFVE), appendix
B. There the judge writes a number; here it chooses from the labels of a scale, so that every answer is a number.
"""

from dataclasses import dataclass
from typing import ClassVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.judged.item import View, check_entry, check_judged
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    JudgeParameters,
    LabelValue,
    advice,
    value_info,
)
from gradewire_server.metrics.judged.rounds import ask_judge

_SIMILARITY = "similarity"


@dataclass(frozen=True, slots=True)
class JudgeSimilarityParameters(JudgeParameters):
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


class JudgeSimilarity:
    """The similarity that the prompt's labels stand for; it is the score."""

    info = MetricInfo(
        name="judge_similarity",
        version=1,
        description="How alike prediction and references are in a language model's eyes, in the light of the question.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        parameters=(JUDGE_INFO, value_info(JudgeSimilarityParameters().value), PROMPT_INFO),
        needs_model=False,
        needs_judge=True,
        advice=advice("a twentieth", 0.938),
    )
    parameters_type = JudgeSimilarityParameters

    def score(self, item: Item, parameters: JudgeSimilarityParameters, facts: ModelFacts) -> Program:
        """One round."""
        del facts
        failure = check_judged(item)
        if failure is not None:
            return MetricResult.failed(failure)
        judged = yield from ask_judge(parameters.model, parameters.file, _SIMILARITY, item, View())
        if isinstance(judged, Failure):
            return MetricResult.failed(judged)
        value = judged.choices[_SIMILARITY].value(parameters.value)
        return MetricResult(
            score=value,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=judged.parts(_SIMILARITY, value=value, yes_probability=None),
            correct=value >= parameters.file.variants[_SIMILARITY].correct_from,
        )

    def prepare(self, entry: ReferenceEntry, parameters: JudgeSimilarityParameters) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_entry(entry)
