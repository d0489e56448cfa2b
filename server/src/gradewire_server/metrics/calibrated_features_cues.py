"""What an answer does beside naming something: it refuses, or denies what it names."""

import re
from typing import Final

from gradewire_server.metrics.calibrated_features_words import (
    MAX_REFERENCE_CHARACTERS,
    Said,
    folded_words,
)
from gradewire_server.metrics.calibrated_inputs import CalibratedInputs

_MAX_CHARACTERS: Final = 4096
_OPENING: Final = 160
"""Characters in which an answer begins with a refusal."""
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


_CLAUSE_END: Final = re.compile(r"[.,;:!?()\n\u2013\u2014]|\bbut\b|\bbecause\b")


def cue_features(answer: Said) -> dict[str, float]:
    """How many refusals."""
    return {"refusals": float(len(_REFUSAL.findall(_plain(answer.raw))))}


def denies(inputs: CalibratedInputs) -> bool:
    """Whether an answer opens with a refusal, or says "not" shortly before what it has of SMILE's best reference.

    A rule and not a feature: labelled answers hardly ever do so, and trees cannot learn what they have not seen. Of the
    clauses with most of the reference's words all have to be negated; negations that question or reference have
    themselves do not count, nor does "not only".
    """
    begin = _plain(inputs.prediction.lstrip()[:_MAX_CHARACTERS])
    if _REFUSAL.search(begin[:_OPENING].partition(". ")[0]):
        return True
    reference = Said.of(inputs.references[inputs.best], MAX_REFERENCE_CHARACTERS)
    asked = Said.of(inputs.question).distinct
    named = frozenset(word for word in reference.content if word not in asked) or frozenset(reference.content)
    known = asked | reference.distinct
    clauses = [(*folded_words(clause), "") for clause in _CLAUSE_END.split(begin) if clause.strip()]
    most = max((len(named.intersection(words)) for words in clauses), default=0)
    holding = [words for words in clauses if most and len(named.intersection(words)) == most]
    return bool(holding) and all(_negated(words, named, known) for words in holding)


def _negated(words: tuple[str, ...], named: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a negation stands in the few words before the first of the `named` ones."""
    place = next(place for place, word in enumerate(words) if word in named)
    return any(
        word in _NEGATIONS and word not in known and following != "only"
        for word, following in zip(
            words[max(0, place - _NEAR) : place], words[max(0, place - _NEAR) + 1 :], strict=False
        )
    )


def _plain(text: str) -> str:
    return text[:_MAX_CHARACTERS].replace("\u2019", "'").casefold()
