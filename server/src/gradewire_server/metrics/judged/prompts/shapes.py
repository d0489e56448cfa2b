"""What the prompt file of each metric must hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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

_JUDGED: Final = frozenset({"question", "references", "prediction"})
_CAPTION: Final = frozenset({"caption"})
_PAIR: Final = frozenset({"question", "first", "second"})
_PAIR_WITH_REFERENCES: Final = _PAIR | {"references"}
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a step must be.

    Attributes:
        generated: Text that is generated, not a label that is chosen.
        values: Values that labels may have: lowest and highest.
        values_used: Values that labels must have, each once; empty: any.
        told: These values, for messages.
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
