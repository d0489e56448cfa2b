"""A prompt file, and the content that each metric requires."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass

from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.template import Template

SYNTHETIC: Final = "synthetic"
COMPARE: Final = "compare"
EXTRACT: Final = "extract"
"""The variant of `compare` prompts that extracts a verdict from a reason."""
PAIR_SETS: Final = ("pairs",)
DEMONSTRATION_SETS: Final = ("short", "long", "binary")
"""Demonstration sets. If a file lacks a set, the first existing set replaces it."""

_MAX_REFERENCES: Final = 1000
_JUDGED: Final = frozenset({"question", "references", "prediction"})
_CAPTION: Final = frozenset({"caption"})
_PAIR: Final = frozenset({"question", "first", "second"})
_PAIR_WITH_REFERENCES: Final = _PAIR | {"references"}
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """The requirements for a step, which has either generated text or labels with values in a range.

    Each of `values_used` must have a label; `described` describes these values in messages. If `values_used` is empty,
    all values in the range are allowed.
    """

    generated: bool = False
    values: tuple[float, float] = (0.0, 1.0)
    values_used: frozenset[float] = frozenset()
    described: str = "1 for yes, 0 for no"


@dataclass(frozen=True, slots=True)
class VariantShape:
    """The requirements for a variant: its possible step sequences, and its fields."""

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
"""The variants by metric."""


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the judge's turn, "OPENING ANSWER"; only the first step may have an empty opening.

    The answer is one of the labels, with values on the metric's scale, or a text of at most `max_tokens` tokens.
    """

    name: str
    opening: str
    labels: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a prompt, for a mode or style of the metric.

    Attributes:
        system_with_image: The instructions for items with images; if empty, the other instructions are used.
        steps: The lines of the judge's turn, at least one.
        correct_from: The minimum score (or probability of "yes") of an answer that counts as right.
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
        """Return the instructions for items with images, with captions but no images, or with neither."""
        if image and self.system_with_image:
            return self.system_with_image
        return self.system_with_caption if caption else self.system

    @property
    def last(self) -> Step:
        """The last step."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A solved item or pair, with the judge's answers by step name."""

    question: str
    references: tuple[str, ...]
    prediction: str
    caption: str
    answers: Mapping[str, str]
    second: str = ""


class ReferenceOrder(StrEnum):
    """The order in which a judge sees annotators' votes."""

    FREQUENCY = "frequency"
    GIVEN = "given"


@validated_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ReferenceForm:
    """The format of references, which a judge sees on one line.

    `plain` is the template for an alias, with the field {reference}. `counted` is the template for a vote, with
    {reference}, {count} and {total}. At most `most` aliases or `most_counted` votes are shown; `order` applies to
    votes.
    """

    plain: str = "{reference}"
    counted: str = "{reference} ({count} of {total})"
    separator: str = "; "
    most: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    most_counted: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    order: ReferenceOrder = ReferenceOrder.FREQUENCY


@dataclass(frozen=True, slots=True, eq=False)
class PromptFile:
    """A parsed and checked prompt file. It equals only itself, so that rendered texts can be cached.

    `digest` is the SHA-256 of its text, 64 hex digits.
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
