"""Find answers that give a reference the other side of what was asked, and answers with another word in a sentence."""

from collections.abc import Collection, Sequence
from typing import Final

from rapidfuzz.distance import Indel

from gradewire_server.metrics.correctness.sentences import Sentence, bears_content, sentences_of
from gradewire_server.metrics.correctness.words import VOCABULARY, FeatureText
from gradewire_server.metrics.text.normalise import known_words

_MOST_WORDS: Final = 16
_MOST_REFERENCES: Final = 8
_ASKS_WHO: Final = frozenset({"who", "which", "what", "whom"})
_SIDES: Final = {
    word: (group, side)
    for group, line in enumerate(VOCABULARY["opposites"]["sides"])
    for side, words in enumerate(line.split("|"))
    for word in words.split()
}
"""The group and the side, 0 or 1, of verbs whose subject and object have opposite parts: "win", "lose"."""
_BE: Final = frozenset({"be", "is", "was", "are", "were", "been", "got", "get"})
_LEAST_FRAME: Final = 4
_MOST_NEW: Final = 2
_NEAR_SPELLING: Final = 0.6


def outcome_reversed(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if a short answer gives a reference the opposite part in what the question asks, otherwise 0.

    Examples: "Nadal beat Federer" or "Federer lost" for Federer, after "Who won?".
    """
    asked = next((_SIDES[word] for word in question.words if word in _SIDES), None)
    if asked is None or len(answer.words) > _MOST_WORDS or _ASKS_WHO.isdisjoint(question.words[:3]):
        return 0.0
    found = [
        part
        for reference in references[:_MOST_REFERENCES]
        if (part := _part_of(answer.words, reference.content, asked[0])) is not None
    ]
    return float(bool(found) and all(part != asked[1] for part in found))


def _part_of(words: Sequence[str], names: Sequence[str], group: int) -> int | None:
    """Return the side of names in a sentence with a verb of the group: 0, 1, or None without both."""
    verb = next((place for place, word in enumerate(words) if _SIDES.get(word, (None, 0))[0] == group), None)
    places = [place for place, word in enumerate(words) if word in names]
    if verb is None or not places or len(set(names).intersection(words)) < len(set(names)):
        return None
    side = _SIDES[words[verb]][1]
    passive = words[max(0, verb - 1)] in _BE and "by" in words[verb:]
    side = 1 - side if passive else side
    return side if places[0] < verb else 1 - side


def frame_altered(references: Sequence[FeatureText], answer: FeatureText, asked: Collection[str]) -> float:
    """Return 1 if an answer's sentence has another word in the place of one of a long reference's words, otherwise 0.

    Example: "Continue the dose until the fever is gone" for "Withhold the dose until the fever is gone".
    """
    marks = [_has_other_word(reference, answer, asked) for reference in references[:_MOST_REFERENCES]]
    return float(any(marks) and all(mark is not False for mark in marks))


def _has_other_word(reference: FeatureText, answer: FeatureText, asked: Collection[str]) -> bool | None:
    """Return None if no sentence of the answer is comparable, False if one has all words of the reference."""
    wanted = Sentence.of(reference.raw)
    if len(wanted.content) < _LEAST_FRAME:
        return False if answer.distinct.issuperset(reference.content) else None
    lacking = [word for word in wanted.content if word not in answer.distinct]
    if len(lacking) != 1:
        return None if lacking else False
    if lacking[0] in asked:
        return False
    kept = [word for word in wanted.content if word != lacking[0]]
    return any(_replaces(lacking[0], kept, said, asked) for said in sentences_of(answer.raw)) or None


def _replaces(lacking: str, kept: Sequence[str], said: Sentence, asked: Collection[str]) -> bool:
    if not said.words.issuperset(kept) or list(kept) != [word for word in said.content if word in kept]:
        return False
    others = [word for word in said.content if word not in kept and word not in asked and bears_content(word)]
    known = known_words()
    return 0 < len(others) <= _MOST_NEW and not any(
        Indel.normalized_similarity(lacking, other) >= _NEAR_SPELLING and not (lacking in known and other in known)
        for other in others
    )
