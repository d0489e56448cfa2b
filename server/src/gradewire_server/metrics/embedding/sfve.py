"""SFVE: cosine of the sentence vectors of prediction and reference, each behind the question.

Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4. The
paper's own encoders are trained for this form; any other can be asked in it.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Embed, Need, Preparation, Program, Tier, Vectors, ask
from gradewire_server.domain.result import Failure, MetricResult, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.checks import (
    MAX_QUESTION_CHARACTERS,
    check_item,
    check_question,
    check_references,
)
from gradewire_server.metrics.embedding.closest_reference import closest_reference
from gradewire_server.metrics.embedding.question_end import question_with_room
from gradewire_server.metrics.parameters import EncoderParameters
from gradewire_server.metrics.rounds import ask_together, embed_references, is_cut, sentence_needs


class Sfve:
    """Largest cosine of prediction and references, each with the question; equal ones: the lowest reference index."""

    info = MetricInfo(
        name="sfve",
        version=1,
        description="Largest cosine of the sentence vectors of prediction and references, each behind the question.",
        minimum=-1.0,
        citation="Ji, Si, Lin et al. 2024, Towards Flexible Evaluation for Generative Visual Question Answering, MM",
        needs_model=True,
    )
    parameters_type = EncoderParameters

    def score(self, item: Item, parameters: EncoderParameters, metadata: ModelMetadata) -> Program:
        """One round; more where a text was cut, to see whether anything of the answer was read, and to read it."""
        del metadata
        failure = check_item(item) or _check_question(item.question)
        if failure is not None:
            return MetricResult.failed(failure)
        model, question = parameters.model, _end_of(item.question)
        answers = yield from _compared(model, question, item)
        if not isinstance(answers, Failure) and is_cut(*answers):
            kept = yield from question_with_room(model, question, with_question)
            if isinstance(kept, Failure):
                return MetricResult.failed(kept)
            if kept != question:
                question = kept
                answers = yield from _compared(model, question, item)
        if isinstance(answers, Failure):
            return MetricResult.failed(answers)
        result = closest_reference(*answers, parameters.threshold)
        return result if question == item.question else replace(result, warnings=(Warning.TRUNCATED,))

    def prepare(self, entry: ReferenceEntry, parameters: EncoderParameters) -> Preparation:
        """Asks for the references, each with the question, as `score` does."""
        failure = check_references(entry.references) or _check_question(entry.question)
        if failure is not None:
            return failure
        model, question = parameters.model, _end_of(entry.question)
        vectors = yield from ask(Embed(model, _texts(question, entry.references), Tier.REFERENCE))
        if isinstance(vectors, Failure) or not is_cut(vectors):
            return vectors if isinstance(vectors, Failure) else None
        kept = yield from question_with_room(model, question, with_question)
        if isinstance(kept, Failure):
            return kept
        return None if kept == question else (yield from embed_references(model, _texts(kept, entry.references)))


def _check_question(question: str) -> Failure | None:
    return check_question(_end_of(question))


def _end_of(question: str) -> str:
    """What may be put before a thousand references, of a question that is longer than any encoder reads."""
    return question if len(question) <= MAX_QUESTION_CHARACTERS else question.rstrip()[-MAX_QUESTION_CHARACTERS:]


def _compared(
    model: str, question: str, item: Item
) -> Generator[tuple[Need, ...], Any, tuple[Vectors, Vectors] | Failure]:
    found: tuple[Vectors, Vectors] | Failure = yield from ask_together(
        *sentence_needs(model, with_question(question, item.prediction), _texts(question, item.references))
    )
    return found


def _texts(question: str, answers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(with_question(question, answer) for answer in answers)


def with_question(question: str, answer: str) -> str:
    """The text that SFVE compares."""
    return f"Question: {question} Answer: {answer}"
