"""What kind of item an item is, whatever its answer is worth: numbers by which it is held against the fitted rows.

They say nothing of how well the answer matches, so that a better match never moves an item away from what a fit knows.
"""

import re
from math import log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.features.inputs import CorrectnessInputs
from gradewire_server.metrics.correctness.features.words import (
    MAX_REFERENCE_CHARACTERS,
    STOP_WORDS,
    Said,
    share,
)

_YES_NO: Final = frozenset({
    "is", "are", "was", "were", "am", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would",
    "should", "may", "might", "must", "isn't", "aren't",
})  # fmt: skip
_VERDICTS: Final = frozenset({"yes", "no", "true", "false", "valid", "invalid"})
_ASKED: Final = {
    "asks_who": re.compile(r"\b(?:who|whom|whose)\b"),
    "asks_when": re.compile(r"\bwhen\b|\b(?:what|which|in) (?:year|date|day|month|century|decade)\b"),
    "asks_where": re.compile(r"\bwhere\b|\b(?:what|which) (?:country|city|state|town|place)\b"),
    "asks_amount": re.compile(r"\bhow (?:many|much|long|old|far|often|tall|big|high|large|deep|fast)\b"),
    "asks_why": re.compile(
        r"\bwhy\b|\bhow (?:do|does|did|can|could|would|is|are|was|were|come)\b|\b(?:explain|describe)\b"
    ),
    "asks_what": re.compile(r"\b(?:what|which)\b"),
}

SHAPE: Final = (
    "no_question",  # 1 where there is none
    *_ASKED,  # 1 of the first kind that its question is of, "what" after all others
    "asks_yes_no",  # 1 where it begins with "is", "did" and the like
    "question_words",  # ln(1 + words)
    "references",  # ln(1 + references)
    "reference_words",  # ln(1 + words) of SMILE's best reference
    "reference_digits",  # share of its words with a digit
    "reference_plain",  # share of its words that are articles, pronouns and the like: sentences have them, names do not
    "reference_verdict",  # 1 where it begins with "yes", "no", "true" or the like
    "answer_words",  # ln(1 + words)
)
"""Names of the numbers, in their order."""


def shape(inputs: CorrectnessInputs) -> NDArray[np.float64]:
    """The numbers of SHAPE, float64[len(SHAPE)], all finite and at most 10."""
    question, answer = Said.of(inputs.item.question), Said.of(inputs.item.prediction)
    reference = Said.of(inputs.item.references[inputs.best], MAX_REFERENCE_CHARACTERS)
    found = {
        "no_question": float(not question.words),
        **_asked(question),
        "question_words": log1p(len(question.words)),
        "references": log1p(len(inputs.item.references)),
        "reference_words": log1p(len(reference.words)),
        "reference_digits": share(any(map(str.isdecimal, word)) for word in reference.words),
        "reference_plain": share(word in STOP_WORDS for word in reference.words),
        "reference_verdict": float(reference.words[0] in _VERDICTS),
        "answer_words": log1p(len(answer.words)),
    }
    return np.array([found[name] for name in SHAPE])


def _asked(question: Said) -> dict[str, float]:
    text = " ".join(question.raw.casefold().split())
    yes_no = bool(text) and text.split(" ", 1)[0] in _YES_NO
    kind = next((name for name, pattern in _ASKED.items() if not yes_no and pattern.search(text)), "")
    return {**{name: float(name == kind) for name in _ASKED}, "asks_yes_no": float(yes_no)}
