"""Find answers that give a reference the other side of what was asked."""

from collections.abc import Sequence
from typing import Final

from gradewire_server.metrics.correctness.sentences import SIDES, asking
from gradewire_server.metrics.correctness.words import FeatureText

_MOST_WORDS: Final = 16
_MOST_REFERENCES: Final = 8
_ASKS_WHO: Final = frozenset({"who", "which", "what", "that"})
_BE: Final = frozenset({"be", "is", "was", "are", "were", "been", "got", "get"})
_DO: Final = frozenset({"do", "doe", "did"})
_MOST_WORDS_BEFORE_VERB: Final = 3


def outcome_reversed(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if a short answer gives a reference the opposite part in what the question asks, otherwise 0.

    Examples: "Nadal beat Federer" or "Federer lost" for Federer, after "Who won?".
    """
    words = asking(question).words
    first = next((place for place, word in enumerate(words) if word in _ASKS_WHO), None)
    if first is None:
        return 0.0
    begin = words[first : first + _MOST_WORDS_BEFORE_VERB + 1]
    asked = next((SIDES[word] for word in begin if word in SIDES), None)
    if asked is None or len(answer.words) > _MOST_WORDS or not _DO.isdisjoint(begin):
        return 0.0
    verb = next(place for place, word in enumerate(begin) if word in SIDES)
    side = 1 - asked[1] if verb and begin[verb - 1] in _BE else asked[1]
    found = [
        part
        for reference in references[:_MOST_REFERENCES]
        if all(SIDES.get(word, asked)[0] != asked[0] or word not in SIDES for word in reference.words)
        and (part := _part_of(answer.words, reference.content, asked[0])) is not None
    ]
    return float(bool(found) and all(part != side for part in found))


def _part_of(words: Sequence[str], names: Sequence[str], group: int) -> int | None:
    """Return the side of names in a sentence with a verb of the group: 0, 1, or None without both."""
    verb = next((place for place, word in enumerate(words) if SIDES.get(word, (None, 0))[0] == group), None)
    places = [place for place, word in enumerate(words) if word in names]
    if (
        verb is None
        or words[max(0, verb - 1)] in _ASKS_WHO
        or not places
        or len(set(names).intersection(words)) < len(set(names))
    ):
        return None
    side = SIDES[words[verb]][1]
    passive = words[max(0, verb - 1)] in _BE
    side = 1 - side if passive else side
    return side if places[0] < verb else 1 - side
