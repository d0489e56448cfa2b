"""What a question asks for, as far as its words say; the descriptions of its answers depend on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

QuestionKind = Literal["person", "date", "place", "count", "amount", "measure", "reason", "yes_no", "named", "other"]

AUXILIARIES = frozenset(
    (
        *("is", "are", "was", "were", "be", "been", "am", "do", "does", "did", "has", "have", "had"),
        *("can", "could", "will", "would", "shall", "should", "may", "might", "must"),
    )
)
_WH = re.compile(
    r"\b(how\s+(?:many|much|long|far|tall|high|old|big|large|deep|fast|often|heavy)|whose|whom|who|when|where|why|what|"
    r"which)\b",
    re.IGNORECASE,
)
_KINDS: dict[str, QuestionKind] = {
    "who": "person",
    "whom": "person",
    "whose": "person",
    "when": "date",
    "where": "place",
    "why": "reason",
    "how many": "count",
    "how much": "amount",
}
_DATED = frozenset({"year", "years", "date", "day", "month", "decade", "century", "season"})
_MOST_NOUN_WORDS = 5
# Questions are sentences; of a longer text only the beginning is looked at.
_LOOKED_AT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart.

    Attributes:
        text: Its words without the mark at the end, blanks made one.
        kind: What it asks for; "named" for one that names it: "what genre", "which two countries".
        noun: These words, for instance "genre"; "" where it names nothing.
        rest: Words after the question word and, where there is one, the noun.
        opens: Whether the question word comes first.
    """

    text: str
    kind: QuestionKind
    noun: str
    rest: tuple[str, ...]
    opens: bool


def asked(question: str) -> Question:
    """Takes a question apart."""
    text = " ".join(question[:_LOOKED_AT_CHARACTERS].split()).strip(' "?.!')
    words = text.split()
    if words and words[0].lower() in AUXILIARIES:
        return Question(text, "yes_no", "", tuple(words), opens=True)
    if (found := _WH.search(text)) is None:
        return Question(text, "other", "", (), opens=False)
    word = " ".join(found[0].lower().split())
    rest = tuple(text[found.end() :].split())
    opens = found.start() == 0
    if word not in {"what", "which"}:
        return Question(text, _KINDS.get(word, "measure"), "", rest, opens)
    noun = _noun_words(rest)
    if not noun:
        return Question(text, "other", "", rest, opens)
    kind: QuestionKind = "date" if noun[-1].lower() in _DATED else "named"
    return Question(text, kind, " ".join(noun), rest[len(noun) :], opens)


def _noun_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words between "what" and the verb: those that name what is asked for; empty where that cannot be told."""
    for place, word in enumerate(words[: _MOST_NOUN_WORDS + 1]):
        if word.lower() in AUXILIARIES:
            return words[:place]
        if not word.replace("-", "").replace("'", "").isalpha():
            return ()
    return words if len(words) <= _MOST_NOUN_WORDS and words else ()
