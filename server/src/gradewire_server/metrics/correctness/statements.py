"""Read "yes" or "no" from answers that state it in a sentence: "She accepted the sentence without appealing"."""

import re
from typing import Final

from gradewire_server.metrics.correctness.relations import states
from gradewire_server.metrics.correctness.sentences import Sentence, first_sentence
from gradewire_server.metrics.correctness.words import NEGATIONS, VOCABULARY, clause_words, plain
from gradewire_server.metrics.text.yes_no import asks_yes_or_no

_MOST_CHARACTERS: Final = 300
_AUXILIARIES: Final = VOCABULARY["words"]["asks_yes_no"]
_ASKS: Final = re.compile(rf"^\W*(?:.{{0,60}},\s*)?(?:{'|'.join(re.escape(word) for word in _AUXILIARIES.split())})\s+")
_QUESTIONED: Final = re.compile(r"^\W*(?:yes|no)\s*\?\s*", re.IGNORECASE)
_SETTING: Final = re.compile(rf"\b(?:in|on) the (?:{'|'.join(VOCABULARY['words']['settings'].split())})\b")
_AFFIRMS: Final = re.compile(
    r"^\W*(?:(?P<no>(?:absolutely|certainly|definitely|surely|of course|probably) not|by no means|not at all|never)"
    r"|(?P<yes>absolutely|certainly|definitely|of course|indeed|exactly|right|sure|correct|affirmative))"
    r"\s*(?:[.,;:!]|$)"
)
# "They don't, just behind the church."
_ELLIPTIC: Final = re.compile(
    r"^\W*(?:it|he|she|they|you|we|one|there|that|this|these|those)\s+"
    r"(?P<verb>is|are|was|were|does|do|did|has|have|had|can|will|would|should|must|may)"
    r"(?P<no>n't|\s*not)?\s*(?:[.,;!]|$)"
)
_CANNOT: Final = re.compile(r"\bcan(?:not|'t)\b")

_QUALIFIES: Final = re.compile(
    r"\b(?:(?<!even )(?<!as )if|unless|provided|as long as|so long as|on condition|assuming"
    r"|only (?:if|when|in|on|at|for|by|after|before)|but (?:not|only)"
    r"|and never|not all|not always|not every|most of|sometimes|otherwise|except|partly)\b"
)


def is_qualified(question: str, reference: str, text: str) -> bool:
    """Return True if a text limits its "yes" or "no" in a way in which neither question nor reference do.

    "Yes, but only if salt is added" and "Yes, most of them do" limit it; "Yes, even if it rains" does not.
    """
    known = plain(f"{question[:_MOST_CHARACTERS]} {reference[:_MOST_CHARACTERS]}")
    return any(found not in known for found in _QUALIFIES.findall(plain(text[:_MOST_CHARACTERS])))


def without_questioned_verdict(text: str) -> str:
    """Return a text without "Yes?" or "No?" at its beginning, which it goes on to answer."""
    return _QUESTIONED.sub("", text, count=1)


def begins_with_verdict(text: str) -> bool | None:
    """Return True for "Right, ..." and "They do, ...", False for "Certainly not" and "He can't", None for others."""
    begin = _CANNOT.sub("can not", plain(text[:_MOST_CHARACTERS]))
    affirms = _AFFIRMS.match(begin)
    if affirms:
        return affirms["no"] is None
    elliptic = _ELLIPTIC.match(begin)
    return elliptic["no"] is None if elliptic else None


def stated_verdict(question: str, text: str) -> bool | None:
    """Return True if a text states what a question asks, False if it states the opposite, None if neither is clear.

    The words after the question's auxiliary are compared with the text's first sentence, in which a pronoun may
    stand for the subject. After a negative question and one with "or", return None.
    """
    asked = _SETTING.sub("", plain(question[:_MOST_CHARACTERS]))
    auxiliary = _ASKS.match(asked)
    if auxiliary is None or " or " in asked or not asks_yes_or_no(question):
        return None
    wanted = Sentence.of(asked[auxiliary.end() :])
    said = first_sentence(text[:_MOST_CHARACTERS])
    if said is None or not wanted.content or not NEGATIONS.isdisjoint(clause_words(asked)):
        return None
    return states(wanted, said)
