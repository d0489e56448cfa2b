"""A prompt file, and the content that each metric requires."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass

from gradewire_server.domain.items import Failure, Status
from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.reading import Reading, ReadingRule
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
TEXT_FIELDS: Final = frozenset({"reason", "facts"})
"""Fields of the one text of a demonstration, besides the labels of its steps."""
_PAIR_WITH_REFERENCES: Final = _PAIR | {"references"}
_LIST: Final = frozenset({"question", "answers"})
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """The requirements for a step, which has either generated text or labels with values in a range.

    Attributes:
        values: The lowest and the highest value.
        words: Words that a file may write in place of these values.
        values_used: Values that must each have a label; empty if any two different values will do.
        described: The allowed values, which are those of `words`, for messages; "" if the whole range is allowed.
    """

    generated: bool = False
    values: tuple[float, float] = (0.0, 1.0)
    words: Mapping[str, float] = field(default_factory=lambda: {"right": 1.0, "partly": 0.5, "wrong": 0.0})
    values_used: frozenset[float] = frozenset()
    described: str = ""


@dataclass(frozen=True, slots=True)
class VariantShape:
    """The requirements for a variant: its possible step sequences, and its fields."""

    sequences: tuple[tuple[str, ...], ...]
    needed: frozenset[str] = _JUDGED
    optional: frozenset[str] = _CAPTION
    parameters: str | None = ""

    @property
    def sequences_in_one_text(self) -> tuple[tuple[str, ...], ...]:
        """The possible sequences of steps that are read from one text, which has the reason too; empty if none is."""
        read = (tuple(name for name in each if not STEPS[name].generated) for each in self.sequences)
        return tuple(each for each in read if each) if "reason" not in self.needed else ()


_TEXT: Final = StepShape(generated=True)

STEPS: Final[Mapping[str, StepShape]] = {
    "rating": StepShape(values=(1.0, 3.0), words={"right": 3.0, "partly": 2.0, "wrong": 1.0}),
    "grade": StepShape(values=(0.0, 5.0), words={"right": 5.0, "partly": 2.5, "wrong": 0.0}),
    "verdict": StepShape(
        values_used=frozenset({0.0, 1.0}), described="1 for yes, 0 for no, or 0.5 for an answer that is partly right"
    ),
    "similarity": StepShape(),
    "winner": StepShape(
        words={"first": 1.0, "second": 0.0, "tie": 0.5},
        values_used=frozenset({0.0, 1.0}),
        described="1 for the first answer, 0 for the second, or 0.5 for a tie",
    ),
    "reason": _TEXT,
    "facts": _TEXT,
    "sentence": _TEXT,
    "order": _TEXT,
}

SHAPES: Final[Mapping[str, Mapping[str, VariantShape]]] = {
    "lave": {
        "rating": VariantShape((("rating",),)),
        "rationale": VariantShape((("reason", "rating"),), parameters="mode=rationale"),
    },
    "judge_grade": {
        "match": VariantShape((("grade", "verdict"), ("verdict", "grade"))),
        "extract": VariantShape(
            (("facts", "grade", "verdict"), ("facts", "verdict", "grade")), parameters="style=extract"
        ),
    },
    "judge_similarity": {"similarity": VariantShape((("similarity",),))},
    "judge_verdict": {
        "plain": VariantShape((("verdict",),)),
        "step_by_step": VariantShape((("reason", "verdict"),), parameters="style=step_by_step"),
        "reasons": VariantShape((("reason", "verdict"),), parameters="style=reasons"),
    },
    COMPARE: {
        "verdict": VariantShape((("winner",),), _PAIR),
        "verdict_with_references": VariantShape((("winner",),), _PAIR_WITH_REFERENCES, parameters="references=true"),
        "reason": VariantShape((("reason", "winner"),), _PAIR, parameters="mode=reason"),
        "reason_with_references": VariantShape(
            (("reason", "winner"),), _PAIR_WITH_REFERENCES, parameters="mode=reason&references=true"
        ),
        "listwise": VariantShape((("order",),), _LIST, parameters="mode=listwise"),
        "listwise_with_references": VariantShape(
            (("order",),), _LIST | {"references"}, parameters="mode=listwise&references=true"
        ),
        EXTRACT: VariantShape((("winner",),), frozenset({"reason"}), frozenset(), None),
    },
    SYNTHETIC: {
        "sentence": VariantShape((("sentence",),), _ASKED, frozenset(), None),
        "again": VariantShape((("sentence",),), _ASKED, frozenset({"problem"}), None),
    },
}
"""The variants by metric."""


class NoVerdict(Failure):
    """The failure of an item for which the judge chose a label that is no verdict."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the judge's turn, "OPENING ANSWER"; only the first step may have an empty opening.

    The answer is one of the labels, with values on the metric's scale, or a text of at most `max_tokens` tokens. In a
    variant with one text, the answer is the label that `reading` finds in this text.

    Attributes:
        values: The labels' values. The value of a label in `statuses` means nothing.
        statuses: Statuses by label, for labels that are no verdict. An item with such a label has no score.
        dictionary_field: The field with the label, if `reading` is DICTIONARY.
    """

    name: str
    opening: str
    labels: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    max_tokens: int = 0
    reading: Reading = Reading.PROBABILITY
    dictionary_field: str = ""
    statuses: Mapping[str, Status] = field(default_factory=dict)

    @property
    def rule(self) -> ReadingRule:
        """The rule by which the label is read from a text."""
        rows = zip(self.labels, self.values, strict=True)
        meanings = tuple(self.statuses.get(label, value) for label, value in rows)
        return ReadingRule(self.reading, self.labels, self.opening, self.dictionary_field, meanings)

    def weighted(self, probabilities: Sequence[float]) -> Sequence[tuple[float, float]]:
        """Return the probability and value of each label that is a verdict. These probabilities have a sum of 1."""
        if not self.statuses:
            return tuple(zip(probabilities, self.values, strict=True))
        rows = zip(self.labels, probabilities, self.values, strict=True)
        verdicts = [(share, value) for label, share, value in rows if label not in self.statuses]
        total = sum(share for share, _ in verdicts)
        return [(share / total, value) for share, value in verdicts]

    def without_verdict(self, label: str) -> NoVerdict | None:
        """Return the failure of an item for which the judge chose this label, or None if the label is a verdict."""
        status = self.statuses.get(label)
        if status is None:
            return None
        return NoVerdict(status, f"the judge's {self.name} is {label!r}, which the prompt maps to {status.name}")


class Layout(StrEnum):
    """The form of a prompt: a chat with a turn for each text, or one user turn with all texts."""

    TURNS = "turns"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a prompt, for a mode or style of the metric.

    The judge writes a line for each step or, if `max_tokens` is not 0, one text from which all steps are read.

    Attributes:
        system_with_image: The instructions for items with images; if empty, the other instructions are used.
        steps: The lines of the judge's turn, at least one.
        correct_from: The minimum score (or probability of "yes") of an answer that counts as right.
        exchanges: Texts of the user and of the judge, which precede the demonstrations as they are.
        layout: The form in which the judge sees instructions, demonstrations and item.
        max_tokens: The maximum number of tokens of the one text.
        stop: Strings that end the one text.
        reply: The one text of a demonstration, with its answers by step name as fields; None without demonstrations.
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
    exchanges: tuple[tuple[str, str], ...] = ()
    layout: Layout = Layout.TURNS
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    reply: Template | None = None

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
    """The format of references.

    `plain` is the template for an alias, with the field {reference}. `counted` is the template for a vote, with
    {reference}, {count} and {total}. At most `most` aliases or `most_counted` votes are shown; `order` applies to
    votes. If `repeat` is True, references are shown as they were given, each as `plain`, repeated ones repeatedly.
    """

    plain: str = "{reference}"
    counted: str = "{reference} ({count} of {total})"
    separator: str = "; "
    most: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    most_counted: Annotated[int, Field(ge=1, le=_MAX_REFERENCES, strict=True)] = 24
    order: ReferenceOrder = ReferenceOrder.FREQUENCY
    repeat: Annotated[bool, Field(strict=True)] = False


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
    def metric_lines(self) -> tuple[str, ...]:
        """The metrics with parameters that use the variants, such as "lave?mode=rationale"."""
        parameters = (SHAPES[self.metric][name].parameters for name in self.variants)
        return tuple(f"{self.metric}?{each}" if each else self.metric for each in parameters if each is not None)

    @property
    def title(self) -> str:
        """The name as NAME/VERSION."""
        return f"{self.name}/{self.version}"
