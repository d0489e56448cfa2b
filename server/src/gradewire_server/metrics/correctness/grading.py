"""The grader's logit as a feature of `correctness`."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.domain.needs import Grade, Need, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.correctness.features.inputs import CorrectnessInputs
from gradewire_server.metrics.grader.texts import graded_texts, is_shortened
from gradewire_server.metrics.text.smile_normalise import normalise

MAX_REFERENCES: Final = 3
"""References that a grader is asked about: each costs a pass over the answer."""


@dataclass(frozen=True, slots=True)
class Graded:
    """What a grader says of an item.

    Attributes:
        logit: The highest over the references that it was asked about.
        truncated: Whether it read a text only in part.
    """

    logit: float
    truncated: bool


def ask_grader(inputs: CorrectnessInputs, grader: str) -> Generator[tuple[Need, ...], Any, Graded | Failure]:
    """Asks about the references that come closest to the answer, the one that the other features are of before all."""
    references = closest_references(inputs)
    grades = yield from ask(Grade(grader, graded_texts(inputs.item, references)))
    if isinstance(grades, Failure):
        return grades
    cut = is_shortened(inputs.item, references) or bool(grades.truncated.any())
    return Graded(float(grades.logits.max()), cut)


def closest_references(inputs: CorrectnessInputs) -> tuple[int, ...]:
    """Indices of the best reference and of up to two others, by the share of their words that the answer has.

    By words and not by vectors, whose last bits differ between batches: they would choose between two references that
    are nearly as close, and the logits of these may differ much.
    """
    references = inputs.item.references
    others = [index for index in range(len(references)) if index != inputs.best]
    if len(references) > MAX_REFERENCES:
        said = set(normalise(inputs.item.prediction).words)
        shares = {index: _share(references[index], said) for index in others}
        others.sort(key=lambda index: (-shares[index], index))
    return (inputs.best, *others[: MAX_REFERENCES - 1])


def _share(reference: str, said: set[str]) -> float:
    words = set(normalise(reference).words)
    return len(words & said) / len(words) if words else 0.0
