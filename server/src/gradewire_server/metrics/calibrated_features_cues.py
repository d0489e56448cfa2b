"""What an answer does beside naming something: refuse, deny, list, bring up names that no reference has."""

import re
from collections.abc import Collection, Sequence
from math import nan
from typing import Final

from gradewire_server.metrics.calibrated_features_words import STOP_WORDS, Said, folded_words, share

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
_LIST: Final = re.compile(r"^[ \t]*(?:\d{1,3}\.|[-*\u2022])", re.MULTILINE)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")
_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
# In this order: "how many people who" asks for people's number last.
_KINDS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:who|whom|whose)\b",
        r"\b(?:when|(?:what|which) (?:year|date|time|month|day))\b",
        r"\bhow (?:many|much|long|old|tall|far|big|high|large|often|fast|deep)\b|what percent|population",
        r"\b(?:where|(?:what|which) (?:country|city|state|town|river|island))\b",
        r"\b(?:why|how|mean|meaning|purpose)\b",
    )
)


def asks_for(question: Said) -> float:
    """0 a person, 1 a time, 2 a number, 3 a place, 4 a reason or meaning, 5 anything else."""
    text = question.raw.casefold()
    return float(next((kind for kind, pattern in enumerate(_KINDS) if pattern.search(text)), len(_KINDS)))


def names_of(text: str) -> frozenset[str]:
    """Folded words that are written with a capital, without stop words."""
    capital = " ".join(word for word in _NAME.findall(text) if word[0].isupper())
    return frozenset(folded_words(capital)) - STOP_WORDS if capital else frozenset()


def name_features(references: Sequence[Said], answer: Said, asked: Collection[str]) -> dict[str, float]:
    """Names in the answer beyond the question's words: how many, how many that no reference has, share of the rest.

    `reference_names` is the share of references with a name in them.
    """
    known = frozenset().union(*(reference.distinct for reference in references))
    names = names_of(answer.raw) - frozenset(asked)
    return {
        "names": float(len(names)),
        "names_beside": float(len(names - known)),
        "names_known": len(names & known) / len(names) if names else nan,
        "reference_names": share(any(map(str.isupper, reference.raw)) for reference in references),
    }


def cue_features(answer: Said, proving: Collection[str]) -> dict[str, float]:
    """Refusals, a list, and a negation in the few words before the first one of the reference's `proving` words."""
    begin = answer.raw[:_MAX_CHARACTERS]
    place = next((place for place, word in enumerate(answer.words) if word in proving), 0)
    return {
        "refusals": float(len(_REFUSAL.findall(begin.replace("\u2019", "'").casefold()))),
        "negated": float(any(word in _NEGATIONS for word in answer.words[max(0, place - _NEAR) : place])),
        "list": float(_LIST.search(begin) is not None),
    }


def first_sentence(answer: Said) -> frozenset[str]:
    """Folded words of the answer's first sentence."""
    return frozenset(folded_words(_SENTENCE_END.split(answer.raw, maxsplit=1)[0] or answer.raw))
