"""Which of several aliases an answer comes closest to, in any script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.word_split import split_words

_MOST_CHARACTERS: Final = 256
"""Characters of an alias that are compared: a request may bring a thousand long ones."""
_RUN: Final = re.compile(r"[^\W_]+")
_GRAM: Final = 3
_COVERED: Final = 0.5
"""Share of an alias' runs of letters from which it has a word in common with an answer, but for endings."""
STOP_WORDS: Final = frozenset({
    "a", "an", "the", "and", "or", "of", "in", "on", "at", "to", "for", "from", "by", "with", "as",
    "is", "are", "was", "were", "be", "it", "its", "that", "this",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Closeness:
    """Aliases by how close they are to an answer.

    Attributes:
        places: All places of the aliases, the closest first.
        shared: Whether the closest one has a word in common with the answer; where none has, their order says nothing.
        share: The largest share of an alias that is in the answer, 0 to 1: of its words without articles and the like,
            or of runs of three letters of its words with letters beyond ASCII.
    """

    places: Sequence[int]
    shared: bool
    share: float


def closest(keys: Sequence[str], prediction: str) -> Closeness:
    """Sorts aliases by how close they are to an answer.

    Closer is that of whose words, without articles and the like, a larger share is in the prediction; of equal ones
    that of all of whose words a larger share is, then that with the larger share of runs of three letters, counted in
    words with letters beyond ASCII: they may have endings, or no blanks between them. Of scripts without blanks every
    letter is a word.

    Args:
        keys: In lower case; their first 256 characters count.
        prediction: As it is shown.
    """
    lowered = prediction.casefold()
    said = set(split_words(lowered))
    grams = {lowered[at : at + size] for size in range(1, _GRAM + 1) for at in range(len(lowered) - size + 1)}
    ranks = [(*_shares(key[:_MOST_CHARACTERS], said, grams), -place) for place, key in enumerate(keys)]
    places = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    told, _, covered, _ = ranks[places[0]]
    share = max(max(told, covered) for told, _, covered, _ in ranks)
    return Closeness(places, shared=told > 0 or covered >= _COVERED, share=share)


def _shares(key: str, said: set[str], grams: set[str]) -> tuple[float, float, float]:
    words = set(split_words(key))
    telling = words - STOP_WORDS or words
    told = len(telling & said) / len(telling)
    if told == 1:
        return 1.0, len(words & said) / len(words), 1.0
    own = {gram for run in _RUN.findall(key) if not run.isascii() for gram in _grams(run)}
    covered = len(own & grams) / len(own) if own else 0.0
    return told, len(words & said) / len(words) if told else 0.0, covered


def _grams(run: str) -> list[str]:
    """Runs of three letters; a shorter word is one itself."""
    if len(run) < _GRAM:
        return [run]
    return [run[at : at + _GRAM] for at in range(len(run) - _GRAM + 1)]
