"""What the features of `calibrated` are made of: an item, what SMILE found in it, and a few vectors more."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Embed, Need, Tier, Vectors
from gradewire_server.domain.result import Failure, SmileParts
from gradewire_server.metrics.checks import MAX_QUESTION_CHARACTERS, is_blank
from gradewire_server.metrics.parameters import SmileParameters
from gradewire_server.metrics.rounds import ask_beside
from gradewire_server.metrics.smile_evidence import gather
from gradewire_server.metrics.smile_formula import Evidence, grade
from gradewire_server.metrics.smile_texts import SmileTexts, smile_texts

_V1_WEIGHT: Final = 0.3


@dataclass(frozen=True, slots=True)
class CalibratedInputs:
    """One item, looked at by SMILE (preset v1, references as they are).

    Attributes:
        question: Raw; empty or blank where there is none.
        references: Raw.
        prediction: Raw.
        texts: Words of prediction and of all references.
        evidence: Sentence cosines of all references; keyword terms of those that could give SMILE's score, with all
            windows of their length. Which those are depends on the item alone. A reference whose words stand in the
            prediction has none to show.
        best: Index of the reference that gave it.
        smile: SMILE's score, 0 to 1.
        terms: Its terms, of the best reference.
        question_cosine: Cosine of prediction and question; None without a question that can be read.
        reference_question_cosine: Of best reference and question; likewise.
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
    question_cosine: float | None
    reference_question_cosine: float | None
    truncated: bool


def gather_inputs(item: Item, model: str) -> Generator[tuple[Need, ...], Any, CalibratedInputs | Failure]:
    """Asks for all that the features of a checked item rest on; a Failure where the encoder fails.

    As many rounds as SMILE, and one text more: the question. Vectors of answers behind the question would be a second
    pass over the longest text, half of SMILE's own cost again (benchmarks/calibrated_cost.py).
    """
    parameters = SmileParameters(model=model, sentence_weight=_V1_WEIGHT)
    texts = smile_texts(item.prediction, item.references, item.references)
    if not readable_question(item.question):
        evidence = yield from gather(texts, parameters)
        return evidence if isinstance(evidence, Failure) else _inputs(item, texts, evidence, parameters, None)
    evidence, answers = yield from ask_beside(
        gather(texts, parameters),
        Embed(model, (item.prediction,), Tier.PREDICTION),
        Embed(model, (item.question, *item.references), Tier.REFERENCE),
    )
    if isinstance(evidence, Failure):
        return evidence
    prediction, references = answers
    if isinstance(prediction, Failure) or isinstance(references, Failure):
        return prediction if isinstance(prediction, Failure) else references
    return _inputs(item, texts, evidence, parameters, (prediction, references))


def readable_question(question: str) -> bool:
    """Whether there is a question that an encoder can be given."""
    return not is_blank(question) and len(question) <= MAX_QUESTION_CHARACTERS


def _inputs(
    item: Item,
    texts: SmileTexts,
    evidence: Evidence,
    parameters: SmileParameters,
    vectors: tuple[Vectors, Vectors] | None,
) -> CalibratedInputs:
    """With the vectors of the prediction, and of question and references, where there is a question."""
    smile = grade(texts, evidence, parameters)
    if smile.score is None or smile.matched_reference is None or not isinstance(smile.parts, SmileParts):
        raise TypeError("SMILE has no score of its own evidence")
    of_prediction = of_reference = None
    if vectors is not None:
        prediction, (question, *references) = vectors[0].values[0], vectors[1].values
        of_prediction = _cosine(question, prediction)
        of_reference = _cosine(question, references[smile.matched_reference])
    return CalibratedInputs(
        question=item.question,
        references=item.references,
        prediction=item.prediction,
        texts=texts,
        evidence=evidence,
        best=smile.matched_reference,
        smile=smile.score,
        terms=smile.parts,
        question_cosine=of_prediction,
        reference_question_cosine=of_reference,
        truncated=evidence.truncated,
    )


def _cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    return float(np.clip(left @ right, -1.0, 1.0))
