"""Metric `sfve`: the cosine between sentence vectors of texts that begin with the question."""

from dataclasses import replace
from typing import Final

from gradewire_server.domain.items import Failure, Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Embed, Preparation, Program, Rounds, Tier, Vectors, ask
from gradewire_server.metrics.common import (
    MAX_QUESTION_CHARACTERS,
    EncoderParameters,
    FailureError,
    ask_together,
    check_question,
    embed_references,
    expect,
    is_cut,
    preparing,
    scoring,
    sentence_needs,
    stop_at,
)
from gradewire_server.metrics.encoder.sbert import closest_reference

_SIZES: Final = tuple(size for power in range(4, 15) for size in (2**power, 3 * 2 ** (power - 1)))
"""Lengths to try for a long question, from 16 to 24,576 characters."""
_SHORTEST_ANSWER: Final = "a"
_NO_ROOM: Final = Failure(Status.INVALID_INPUT, "question: fills the encoder's input, with no space for an answer")


def question_with_room(model: str, question: str) -> Rounds[str]:
    """Return a non-blank question, or its longest end that leaves space for an answer in the encoder's input.

    If the encoder cut the text within the question, all answers would look equal. An end starts at a word, has a length
    from _SIZES, and fills at most half of the encoder's input.

    Raises:
        FailureError: Not even the question's last word leaves space (INVALID_INPUT).
    """
    fits = yield from _fits(model, with_question(question, _SHORTEST_ANSWER))
    if fits:
        return question
    ends = [_end_from_word(question, size) for size in _SIZES if size < len(question)]
    fitting, cut = -1, len(ends)
    while cut - fitting > 1:
        middle = (fitting + cut) // 2
        fits = yield from _fits(model, with_question(ends[middle], ends[middle]))
        fitting, cut = (middle, cut) if fits else (fitting, middle)
    if fitting < 0:
        raise FailureError(_NO_ROOM)
    return ends[fitting]


def _fits(model: str, text: str) -> Rounds[bool]:
    probe = yield from expect(ask(Embed(model, (text,), Tier.WINDOW)))
    return not probe.truncated.any()


def _end_from_word(text: str, size: int) -> str:
    end = text.rstrip()[-size:]
    whole = end.partition(" ")[2].lstrip()
    return whole or end


class Sfve:
    """The largest cosine between the prediction and a reference, each with the question before it."""

    info = MetricInfo(
        name="sfve",
        version=1,
        description="Largest cosine between the sentence vectors of prediction and reference, each with the question "
        "before it.",
        minimum=-1.0,
        has_verdict=False,
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        needs_model=True,
    )
    parameters_type = EncoderParameters

    @scoring
    def score(self, item: Item, parameters: EncoderParameters, metadata: ModelMetadata) -> Program:
        """Grade an item in one round. If the encoder cut a text, shorten the question and grade the item again."""
        del metadata
        stop_at(_check_question(item.question))
        model, question = parameters.model, _end_of(item.question)
        answers = yield from _compared(model, question, item)
        if is_cut(*answers):
            kept = yield from question_with_room(model, question)
            if kept != question:
                question = kept
                answers = yield from _compared(model, question, item)
        result = closest_reference(*answers, parameters.threshold)
        return result if question == item.question else replace(result, warnings=(ResultWarning.TRUNCATED,))

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: EncoderParameters) -> Preparation:
        """Request the vectors of the texts that `score` compares: each reference with the question before it."""
        stop_at(_check_question(entry.question))
        model, question = parameters.model, _end_of(entry.question)
        vectors = yield from expect(ask(Embed(model, _texts(question, entry.references), Tier.REFERENCE)))
        if not is_cut(vectors):
            return None
        kept = yield from question_with_room(model, question)
        return None if kept == question else (yield from embed_references(model, _texts(kept, entry.references)))


def _check_question(question: str) -> Failure | None:
    return check_question(_end_of(question))


def _end_of(question: str) -> str:
    """Return the question's last MAX_QUESTION_CHARACTERS characters. No encoder reads more."""
    return question if len(question) <= MAX_QUESTION_CHARACTERS else question.rstrip()[-MAX_QUESTION_CHARACTERS:]


def _compared(model: str, question: str, item: Item) -> Rounds[tuple[Vectors, Vectors]]:
    found: tuple[Vectors, Vectors] = yield from ask_together(
        *sentence_needs(model, with_question(question, item.prediction), _texts(question, item.references))
    )
    return found


def _texts(question: str, answers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(with_question(question, answer) for answer in answers)


def with_question(question: str, answer: str) -> str:
    """Return SFVE's input for an answer."""
    return f"Question: {question} Answer: {answer}"
