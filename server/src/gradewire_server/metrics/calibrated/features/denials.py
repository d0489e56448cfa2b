"""Answers that have "not" or the like shortly before what they have of a reference."""

import re
from typing import Final

from gradewire_server.metrics.calibrated.features.contradictions import MAY_NEGATE, NEGATIONS, clause_words
from gradewire_server.metrics.calibrated.features.words import Said

_MAX_CHARACTERS: Final = 16_384
_NEAR: Final = 5
"""Words before a match in which a negation counts."""

_DENIALS: Final = NEGATIONS | {"false", "incorrect"}
_NO_DENIALS: Final = frozenset({"only", "until", "doubt", "other"})
"""Between negation and match they turn it into none: "not only", "not until 1989", "no doubt", "none other than"."""
# A mark inside a number or a name ("10:30", "J.K. Rowling") ends nothing.
_CLAUSE_END: Final = re.compile(r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\bbut\b|\bbecause\b")


def denies(question: Said, best: Said, answer: Said) -> bool:
    """Whether an answer says "not" shortly before what it has of the best reference.

    Of the clauses with most of the reference's words all have to be negated; "not only" and the like is no negation,
    and where question or reference have one themselves nothing is denied.
    """
    named = frozenset(word for word in best.content if word not in question.distinct) or frozenset(best.content)
    begin = _plain(answer.raw)
    if not (MAY_NEGATE.search(begin) or "false" in begin or "incorrect" in begin):
        return False
    if not _DENIALS.isdisjoint(clause_words(f"{question.raw} {best.raw}")):
        return False
    # As words from here on: marks inside the reference ("St. Louis", "10, 200") would part it into clauses.
    written = re.compile(rf"(?<!\w){re.escape(_plain(best.raw.strip()))}(?!\w)")
    begin = written.sub(lambda _: f" {' '.join(best.words)} ", begin)
    clauses = [(*clause_words(clause), "") for clause in _CLAUSE_END.split(begin) if clause.strip()]
    most = max((len(named.intersection(words)) for words in clauses), default=0)
    holding = [words for words in clauses if most and len(named.intersection(words)) == most]
    return bool(holding) and all(_negated(words, named) for words in holding)


def _negated(words: tuple[str, ...], named: frozenset[str]) -> bool:
    """Whether a negation stands in the few words before the first of the `named` ones."""
    place = next(place for place, word in enumerate(words) if word in named)
    before = words[max(0, place - _NEAR) : place]
    return any(
        word in _DENIALS and _NO_DENIALS.isdisjoint(before[position + 1 :]) for position, word in enumerate(before)
    )


def _plain(text: str) -> str:
    return text[:_MAX_CHARACTERS].replace("\u2019", "'").casefold()
