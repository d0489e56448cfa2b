"""What the prompt file of each metric must hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SYNTHETIC: Final = "synthetic"
"""What a prompt file for synthetic answers names as its metric."""
DEMONSTRATION_SETS: Final = ("short", "long", "binary")
"""Kinds of demonstrations, in the order in which one stands in for another that a file lacks."""

_JUDGED: Final = frozenset({"question", "references", "prediction"})
_CAPTION: Final = frozenset({"caption"})
_ASKED: Final = frozenset({"question", "answer"})


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a step must be.

    Attributes:
        generated: Text that is generated, not a label that is chosen.
        values: Values that labels may have: lowest and highest.
        values_used: Values that labels must have, each once; empty: any.
    """

    generated: bool = False
    values: tuple[float, float] = (0.0, 1.0)
    values_used: frozenset[float] = frozenset()


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
    SYNTHETIC: {
        "sentence": VariantShape((("sentence",),), _ASKED, frozenset()),
        "again": VariantShape((("sentence",),), _ASKED, frozenset({"problem"})),
    },
}
"""Variants by metric; a file may lack some of them."""
