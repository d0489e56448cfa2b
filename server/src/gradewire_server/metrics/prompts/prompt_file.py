"""A prompt file: the turns and labels of a judge for one metric, and the parts that each metric requires."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass

from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.template import Template

SYNTHETIC: Final = "synthetic"
"""The metric name of a prompt file for synthetic answers."""
COMPARE: Final = "compare"
"""The metric name of a prompt file for comparisons."""
EXTRACT: Final = "extract"
"""The variant of a comparison file that reads a verdict from a reason alone."""
PAIR_SETS: Final = ("pairs",)
"""Kinds of demonstrations in a comparison file."""
DEMONSTRATION_SETS: Final = ("short", "long", "binary")
"""Kinds of demonstrations, in the order in which they replace one that a file lacks."""

_MAX_REFERENCES: Final = 1000
_JUDGED: Final = frozenset({"question", "references", "prediction"})
_CAPTION: Final = frozenset({"caption"})
_PAIR: Final = frozenset({"question", "first", "second"})
_PAIR_WITH_REFERENCES: Final = _PAIR | {"references"}
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """The required form of a step: generated text, or labels with values in a range.

    Each of `values_used` must have a label (empty: any values); `described` names them in messages.
    """

    generated: bool = False
    values: tuple[float, float] = (0.0, 1.0)
    values_used: frozenset[float] = frozenset()
    described: str = "1 for yes, 0 for no"


@dataclass(frozen=True, slots=True)
class VariantShape:
    """The required form of a variant: its possible sequences of steps, and its fields."""

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
        values_used=frozenset({0.0, 0.5, 1.0}), described="1 for the first answer, 0 for the second, 0.5 for a tie"
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
    """One line of the judge's turn: "OPENING ANSWER"; only a first step may have an empty opening.

    It has labels with values on the metric's own scale, or text of at most `max_tokens`.
    """

    name: str
    opening: str
    labels: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a prompt: a mode or style of the metric.

    Attributes:
        system_with_image: Instructions with images; empty to use those without.
        item: Template of an item.
        steps: Lines of the judge's turn, at least one.
        correct_from: Score (or probability of yes) from which an answer counts as right.
        delimiters: Texts that an item must not imitate.
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
        """Return the instructions for captions or images; with both, those for images."""
        if image and self.system_with_image:
            return self.system_with_image
        return self.system_with_caption if caption else self.system

    @property
    def last(self) -> Step:
        """The last step."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A solved item or pair, whose `prediction` is shown first; `answers` by step name."""

    question: str
    references: tuple[str, ...]
    prediction: str
    caption: str
    answers: Mapping[str, str]
    second: str = ""


class ReferenceOrder(StrEnum):
    """The order in which votes are shown."""

    FREQUENCY = "frequency"
    GIVEN = "given"


@validated_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ReferenceForm:
    """The form of references in one line.

    `plain` is the template of an alias, {reference}; `counted` that of a vote, {reference}, {count}, {total}. At most
    `most` aliases or `most_counted` votes are shown, votes by frequency or in their given order.
    """

    plain: str = "{reference}"
    counted: str = "{reference} ({count} of {total})"
    separator: str = "; "
    most: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    most_counted: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    order: ReferenceOrder = ReferenceOrder.FREQUENCY


@dataclass(frozen=True, slots=True, eq=False)
class PromptFile:
    """A prompt file, read and checked. Equal only to itself, so that rendered texts can be cached.

    `digest` is the SHA-256 of its text, 64 hex digits. A file may lack some of its metric's variants, and some kinds of
    demonstrations ("binary", "short", "long"; for comparisons "pairs").
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
        """The name as NAME/VERSION."""
        return f"{self.name}/{self.version}"
