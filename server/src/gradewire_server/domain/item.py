"""The answer to grade, and the pair of answers to compare."""

from dataclasses import dataclass, field

from typing_extensions import override

from gradewire_server.domain.image import Image


@dataclass(frozen=True, slots=True)
class Item:
    """One answer with its question and references; all strings are NFC-normalised.

    Attributes:
        id: The caller's name for it; need not be unique.
        question: What was asked; may be empty.
        references: Right answers. May hold blank ones: metrics answer those with INVALID_INPUT.
        prediction: The answer to grade; may be blank (EMPTY_PREDICTION).
        synthetic_answers: One sentence per reference, or empty.
        captions: What the picture shows, none of them blank; empty where there is none.
        group: Label for summaries.
        images: What the question is about; not checked.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    synthetic_answers: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    group: str = ""
    images: tuple[Image, ...] = ()

    @property
    def characters(self) -> int:
        """Of the texts that metrics read."""
        texts = self.references + self.synthetic_answers
        return len(self.question) + len(self.prediction) + sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Pair(Item):
    """Two answers to one question, of which the better one is asked for: `prediction` is answer A, `rival` answer B.

    Attributes:
        rival: Answer B; may be blank (EMPTY_PREDICTION), as answer A.
    """

    rival: str = field(kw_only=True)

    @property
    @override
    def characters(self) -> int:
        return sum(map(len, (self.question, self.prediction, self.rival, *self.references)))


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """References of one question, without a prediction; what References.Prepare registers."""

    question: str
    references: tuple[str, ...]
    synthetic_answers: tuple[str, ...] = ()
