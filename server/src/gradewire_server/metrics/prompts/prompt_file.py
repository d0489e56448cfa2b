"""A prompt file: the turns and labels that a judge gets for one metric, and the parts that each metric requires."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass

from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.template import Template

SYNTHETIC: Final = "synthetic"
"""What a prompt file for synthetic answers names as its metric."""
COMPARE: Final = "compare"
"""What a prompt file for comparisons names as its metric."""
EXTRACT: Final = "extract"
"""Variant of such a file that reads a verdict from a reason alone."""
PAIR_SETS: Final = ("pairs",)
"""Kinds of demonstrations of such a file."""
DEMONSTRATION_SETS: Final = ("short", "long", "binary")
"""Kinds of demonstrations, in the order in which one stands in for another that a file lacks."""

_MAX_REFERENCES: Final = 1000
_JUDGED: Final = frozenset({"question", "references", "prediction"})
_CAPTION: Final = frozenset({"caption"})
_PAIR: Final = frozenset({"question", "first", "second"})
_PAIR_WITH_REFERENCES: Final = _PAIR | {"references"}
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a step must be: text that is generated, or labels with values between the lowest and the highest.

    Of `values_used` each must stand for a label (empty: any will do); `told` names them in messages.
    """

    generated: bool = False
    values: tuple[float, float] = (0.0, 1.0)
    values_used: frozenset[float] = frozenset()
    told: str = "1 for yes, 0 for no"


@dataclass(frozen=True, slots=True)
class VariantShape:
    """What a variant must hold: the sequences of steps that it may have, and its fields."""

    sequences: tuple[tuple[str, ...], ...]
    needed: frozenset[str] = _JUDGED
    optional: frozenset[str] = _CAPTION


_TEXT: Final = StepShape(generated=True)

STEPS: Final[Mapping[str, StepShape]] = {
    "rating": StepShape(values=(1.0, 3.0)),
    "grade": StepShape(values=(0.0, 5.0)),
    "verdict": StepShape(values_used=frozenset({0.0, 1.0})),
    "similarity": StepShape(),
    "winner": StepShape(
        values_used=frozenset({0.0, 0.5, 1.0}), told="1 for the first answer, 0 for the second, 0.5 for a tie"
    ),
    "reason": _TEXT,
    "facts": _TEXT,
    "sentence": _TEXT,
}

SHAPES: Final[Mapping[str, Mapping[str, VariantShape]]] = {
    "lave": {
        "rating": VariantShape((("rating",),)),
        "rationale": VariantShape((("reason", "rating"),)),
    },
    "judge_grade": {
        "match": VariantShape((("grade", "verdict"), ("verdict", "grade"))),
        "extract": VariantShape((("facts", "grade", "verdict"), ("facts", "verdict", "grade"))),
    },
    "judge_similarity": {"similarity": VariantShape((("similarity",),))},
    "judge_verdict": {
        "plain": VariantShape((("verdict",),)),
        "step_by_step": VariantShape((("reason", "verdict"),)),
        "reasons": VariantShape((("reason", "verdict"),)),
    },
    COMPARE: {
        "verdict": VariantShape((("winner",),), _PAIR),
        "verdict_with_references": VariantShape((("winner",),), _PAIR_WITH_REFERENCES),
        "reason": VariantShape((("reason", "winner"),), _PAIR),
        "reason_with_references": VariantShape((("reason", "winner"),), _PAIR_WITH_REFERENCES),
        EXTRACT: VariantShape((("winner",),), frozenset({"reason"}), frozenset()),
    },
    SYNTHETIC: {
        "sentence": VariantShape((("sentence",),), _ASKED, frozenset()),
        "again": VariantShape((("sentence",),), _ASKED, frozenset({"problem"})),
    },
}
"""Variants by metric; a file may lack some of them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the judge's turn: "OPENING ANSWER"; the opening is empty only in a first step.

    It has labels, with values on the metric's own scale, or text of at most `max_tokens`.
    """

    name: str
    opening: str
    labels: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of asking: a mode or style of the metric.

    Attributes:
        system_with_image: Instructions where images are shown; empty: as without them.
        item: How an item is written.
        steps: Lines of the judge's turn, at least one.
        correct_from: Score (or probability of yes) from which an answer counts as right.
        delimiters: What no text of an item may imitate.
    """

    system: str
    system_with_caption: str
    system_with_image: str
    item: Template
    steps: tuple[Step, ...]
    demonstrations: bool
    correct_from: float
    prediction_words: int
    delimiters: Delimiters

    def instructions(self, *, caption: bool, image: bool) -> str:
        """Return instructions where captions or images are shown; where both are, those of images."""
        if image and self.system_with_image:
            return self.system_with_image
        return self.system_with_caption if caption else self.system

    @property
    def last(self) -> Step:
        """The last step."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A solved item, or a solved pair, whose `prediction` is shown first; `answers` by step name."""

    question: str
    references: tuple[str, ...]
    prediction: str
    caption: str
    answers: Mapping[str, str]
    second: str = ""


class ReferenceOrder(StrEnum):
    """In which order votes are shown."""

    FREQUENCY = "frequency"
    GIVEN = "given"


@validated_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ReferenceForm:
    """How references are written in one line.

    `plain` is the template of an alias, {reference}; `counted` that of a vote, {reference}, {count}, {total}. `most`
    aliases and `most_counted` votes are shown, the most frequent votes first or as they were given.
    """

    plain: str = "{reference}"
    counted: str = "{reference} ({count} of {total})"
    separator: str = "; "
    most: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    most_counted: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    order: ReferenceOrder = ReferenceOrder.FREQUENCY


@dataclass(frozen=True, slots=True, eq=False)
class PromptFile:
    """A prompt file, read and checked. Equal to itself alone, so that what is rendered of it can be remembered.

    `digest` is the SHA-256 of its text, 64 hex digits; a file may lack some of its metric's variants, and some kinds of
    demonstrations ("binary", "short", "long"; of a comparison "pairs").
    """

    name: str
    version: int
    metric: str
    digest: str
    text: str = field(repr=False)
    description: str = ""
    references: ReferenceForm = field(default_factory=ReferenceForm)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    demonstrations: Mapping[str, tuple[Demonstration, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """NAME/VERSION."""
        return f"{self.name}/{self.version}"
