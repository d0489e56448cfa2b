"""What the features of `calibrated` are made of: an item, what SMILE found in it, and a few vectors more."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Embed, Need, Tier, Vectors, ask
from gradewire_server.domain.result import Failure, SmileParts
from gradewire_server.metrics.checks import MAX_QUESTION_CHARACTERS, is_blank
from gradewire_server.metrics.parameters import SmileParameters
from gradewire_server.metrics.rounds import ask_beside
from gradewire_server.metrics.sfve import with_question
from gradewire_server.metrics.smile_evidence import gather
from gradewire_server.metrics.smile_formula import Evidence, grade
from gradewire_server.metrics.smile_texts import SmileTexts, smile_texts

_V1_WEIGHT: Final = 0.3
_Asking: TypeAlias = Generator[tuple[Need, ...], Any, "CalibratedInputs | Failure"]


@dataclass(frozen=True, slots=True)
class CalibratedInputs:
    """One item, looked at by SMILE (preset v1, references as they are).

    Attributes:
        question: Raw; empty or blank where there is none.
        references: Raw.
        prediction: Raw.
        texts: Words of prediction and of all references.
        evidence: Sentence cosines of all references; keyword terms of those that could give SMILE's score. Which those
            are depends on the item alone.
        best: Index of the reference that gave it.
        smile: SMILE's score, 0 to 1.
        terms: Its terms, of the best reference.
        conditioned: Cosine of "question, best reference" and "question, prediction" (SFVE's form); None without a
            question, or where the question leaves no room for the reference.
        question_cosine: Cosine of prediction and question; None without a question.
        reference_question_cosine: Of best reference and question; None without a question.
        truncated: Whether anything was cut.
    """

    question: str
    references: tuple[str, ...]
    prediction: str
    texts: SmileTexts
    evidence: Evidence
    best: int
    smile: float
    terms: SmileParts
    conditioned: float | None
    question_cosine: float | None
    reference_question_cosine: float | None
    truncated: bool


def gather_inputs(item: Item, model: str) -> _Asking:
    """Asks for all that the features of a checked item rest on; a Failure where the encoder fails.

    One round more than SMILE, for the best reference behind the question; what goes beside SMILE's first round costs no
    round, and what SMILE asks for as well no second pass.
    """
    parameters = SmileParameters(model=model, sentence_weight=_V1_WEIGHT)
    texts = smile_texts(item.prediction, item.references, item.references)
    if not readable_question(item.question):
        evidence = yield from gather(texts, parameters)
        return evidence if isinstance(evidence, Failure) else _inputs(item, texts, evidence, parameters)
    evidence, answers = yield from ask_beside(
        gather(texts, parameters),
        Embed(model, (item.prediction, with_question(item.question, item.prediction)), Tier.PREDICTION),
        Embed(model, (item.question, *item.references), Tier.REFERENCE),
    )
    if isinstance(evidence, Failure):
        return evidence
    failure = next((answer for answer in answers if isinstance(answer, Failure)), None)
    if failure is not None:
        return failure
    return (yield from _with_question(item, texts, evidence, parameters, answers))


def readable_question(question: str) -> bool:
    """Whether there is a question, and one that can stand before answers."""
    return not is_blank(question) and len(question) <= MAX_QUESTION_CHARACTERS


def question_texts(question: str, references: tuple[str, ...]) -> tuple[str, ...]:
    """What of a question and its references is asked for before any prediction is known."""
    if not readable_question(question):
        return ()
    return (question, *(with_question(question, reference) for reference in references))


def _with_question(
    item: Item, texts: SmileTexts, evidence: Evidence, parameters: SmileParameters, answers: tuple[Vectors, Vectors]
) -> _Asking:
    predictions, references = answers
    plain = _inputs(item, texts, evidence, parameters)
    behind = with_question(item.question, item.references[plain.best])
    found = yield from ask(Embed(parameters.model, (behind,), Tier.REFERENCE))
    if isinstance(found, Failure):
        return found
    prediction, conditioned = predictions.values
    question = references.values[0]
    return _inputs(
        item,
        texts,
        evidence,
        parameters,
        # Cut inside the question, both texts are equal, whatever the answers are.
        conditioned=None if found.truncated[0] else _cosine(found.values[0], conditioned),
        question_cosine=_cosine(question, prediction),
        reference_question_cosine=_cosine(question, references.values[1 + plain.best]),
        truncated=bool(predictions.truncated.any() or references.truncated[0] or found.truncated[0]),
    )


def _inputs(  # noqa: PLR0913 - what was found, and what of it the question adds
    item: Item,
    texts: SmileTexts,
    evidence: Evidence,
    parameters: SmileParameters,
    *,
    conditioned: float | None = None,
    question_cosine: float | None = None,
    reference_question_cosine: float | None = None,
    truncated: bool = False,
) -> CalibratedInputs:
    smile = grade(texts, evidence, parameters)
    if smile.score is None or smile.matched_reference is None or not isinstance(smile.parts, SmileParts):
        raise TypeError("SMILE has no score of its own evidence")
    return CalibratedInputs(
        question=item.question,
        references=item.references,
        prediction=item.prediction,
        texts=texts,
        evidence=evidence,
        best=smile.matched_reference,
        smile=smile.score,
        terms=smile.parts,
        conditioned=conditioned,
        question_cosine=question_cosine,
        reference_question_cosine=reference_question_cosine,
        truncated=truncated or evidence.truncated,
    )


def _cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    return float(np.clip(left @ right, -1.0, 1.0))
