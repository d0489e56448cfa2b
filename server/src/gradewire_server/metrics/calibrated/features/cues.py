"""What an answer does beside naming something: it refuses, or denies what it names."""

import re
from typing import Final

from gradewire_server.metrics.calibrated.features.inputs import CalibratedInputs
from gradewire_server.metrics.calibrated.features.words import MAX_REFERENCE_CHARACTERS, Said, folded_words

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


_NO_DENIALS: Final = frozenset({"only", "until", "doubt", "other"})
"""Between negation and match they turn it into none: "not only", "not until 1989", "no doubt", "none other than"."""
# A mark inside a number or a name ("10:30", "J.K. Rowling") ends nothing.
_CLAUSE_END: Final = re.compile(r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\bbut\b|\bbecause\b")


def cue_features(answer: Said) -> dict[str, float]:
    """Feature `refusals`: how many phrases of refusal or not knowing an answer has."""
    return {"refusals": float(len(_REFUSAL.findall(_plain(answer.raw))))}


def denies(inputs: CalibratedInputs) -> bool:
    """Whether an answer opens with a refusal, or says "not" shortly before what it has of SMILE's best reference.

    A rule and not a feature: labelled answers hardly ever do so, and trees cannot learn what they have not seen. Of the
    clauses with most of the reference's words all have to be negated; what question or reference say themselves is
    neither refusal nor negation, nor is "not only" and the like.
    """
    begin = _plain(inputs.item.prediction.lstrip()[:_MAX_CHARACTERS])
    reference = Said.of(inputs.item.references[inputs.best], MAX_REFERENCE_CHARACTERS)
    asked = Said.of(inputs.item.question).distinct
    named = frozenset(word for word in reference.content if word not in asked) or frozenset(reference.content)
    known = asked | reference.distinct
    refusal = _REFUSAL.search(begin[:_OPENING].partition(". ")[0])
    if refusal and not known.issuperset(folded_words(refusal[0])):
        return True
    # As words from here on: marks inside the reference ("St. Louis", "10, 200") would part it into clauses.
    written = re.compile(rf"(?<!\w){re.escape(_plain(reference.raw.strip()))}(?!\w)")
    begin = written.sub(lambda _: f" {' '.join(reference.words)} ", begin)
    clauses = [(*folded_words(clause), "") for clause in _CLAUSE_END.split(begin) if clause.strip()]
    most = max((len(named.intersection(words)) for words in clauses), default=0)
    holding = [words for words in clauses if most and len(named.intersection(words)) == most]
    return bool(holding) and all(_negated(words, named, known) for words in holding)


def _negated(words: tuple[str, ...], named: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a negation stands in the few words before the first of the `named` ones."""
    place = next(place for place, word in enumerate(words) if word in named)
    before = words[max(0, place - _NEAR) : place]
    return any(
        word in _NEGATIONS and word not in known and _NO_DENIALS.isdisjoint(before[position + 1 :])
        for position, word in enumerate(before)
    )


def _plain(text: str) -> str:
    return text[:_MAX_CHARACTERS].replace("\u2019", "'").casefold()
