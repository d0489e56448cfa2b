"""SFVE: cosine of the sentence vectors of prediction and reference, each behind the question.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4. The
paper's own encoders are trained for this form; any other can be asked in it.
"""

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Embed, Preparation, Program, Tier, ask
from gradewire_server.domain.result import Failure, MetricResult, Status
from gradewire_server.metrics.checks import check_item, check_question, check_references
from gradewire_server.metrics.embedding.closest_reference import closest_reference
from gradewire_server.metrics.parameters import MODEL_INFO, THRESHOLD_INFO, EncoderParameters
from gradewire_server.metrics.rounds import ask_together, embed_references, is_cut, sentence_needs

_SHORTEST_ANSWER = "a"


class Sfve:
    """Largest cosine of prediction and references, each with the question; equal ones: the lowest reference index."""

    info = MetricInfo(
        name="sfve",
        version=1,
        description="Largest cosine of the sentence vectors of prediction and references, each behind the question.",
        minimum=-1.0,
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        parameters=(MODEL_INFO, THRESHOLD_INFO),
        needs_model=True,
    )
    parameters_type = EncoderParameters

    def score(self, item: Item, parameters: EncoderParameters, metadata: ModelMetadata) -> Program:
        """One round; a second one where a text was cut, to see whether anything of the answer was read."""
        del metadata
        failure = check_item(item) or check_question(item.question)
        if failure is not None:
            return MetricResult.failed(failure)
        model, question = parameters.model, item.question
        answers = yield from ask_together(
            *sentence_needs(model, with_question(question, item.prediction), _texts(question, item.references))
        )
        if isinstance(answers, Failure):
            return MetricResult.failed(answers)
        prediction, references = answers
        if is_cut(prediction, references):
            # Cut inside the question, all texts are equal, whatever the answers are.
            probe = yield from ask(Embed(model, (with_question(question, _SHORTEST_ANSWER),), Tier.WINDOW))
            if isinstance(probe, Failure):
                return MetricResult.failed(probe)
            if probe.truncated.any():
                return MetricResult.failed(
                    Failure(Status.INVALID_INPUT, "question: leaves no room for an answer in what the encoder reads")
                )
        return closest_reference(prediction, references, parameters.threshold)

    def prepare(self, entry: ReferenceEntry, parameters: EncoderParameters) -> Preparation:
        """Asks for the references, each with the question."""
        return (
            check_references(entry.references)
            or check_question(entry.question)
            or (yield from embed_references(parameters.model, _texts(entry.question, entry.references)))
        )


def _texts(question: str, answers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(with_question(question, answer) for answer in answers)


def with_question(question: str, answer: str) -> str:
    """The text that SFVE compares."""
    return f"Question: {question} Answer: {answer}"
