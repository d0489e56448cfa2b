"""What an answer does beside naming something: it refuses, or denies what it names."""

import re
from collections.abc import Collection
from typing import Final

from gradewire_server.metrics.calibrated_features_words import Said

_MAX_CHARACTERS: Final = 4096
_NEAR: Final = 5
"""Words before a match in which a negation counts."""

_REFUSAL: Final = re.compile(
    r"\b(?:as an ai|i(?:'m| am) (?:sorry|not|unable)|i (?:do not|don't|cannot|can't|could not|couldn't|am not)|unknown"
    r"|unclear|clarify|more information|no information|not specified|not (?:clear|known|available|sure))\b"
)
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "isnt", "wasnt", "arent", "werent", "didnt", "doesnt", "dont", "cannot", "cant", "neither",
    "nor", "without", "none", "false", "incorrect", "instead", "although", "however",
})  # fmt: skip


def cue_features(answer: Said, proving: Collection[str]) -> dict[str, float]:
    """How many refusals, and whether a negation stands in the few words before the first of the `proving` words."""
    begin = answer.raw[:_MAX_CHARACTERS].replace("\u2019", "'").casefold()
    place = next((place for place, word in enumerate(answer.words) if word in proving), 0)
    return {
        "refusals": float(len(_REFUSAL.findall(begin))),
        "negated": float(any(word in _NEGATIONS for word in answer.words[max(0, place - _NEAR) : place])),
    }
