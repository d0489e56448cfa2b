"""Words between which a question lets an answer choose, or which say the opposite of its reference."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from gradewire_server.metrics.text.folding import folded

_OPPOSITES: Final = (
    ("true", "false"),
    ("right", "left"),
    ("right", "wrong"),
    ("correct", "incorrect"),
    ("correct", "wrong"),
    ("accurate", "inaccurate"),
    ("valid", "invalid"),
    ("perfect", "imperfect"),
    ("flawless", "flawed"),
    ("exact", "inexact"),
    ("exact", "approximate"),
    ("acceptable", "unacceptable"),
    ("accepted", "rejected"),
    ("fact", "opinion"),
    ("fact", "fiction"),
    ("fact", "myth"),
    ("truth", "lie"),
    ("truth", "dare"),
    ("similar", "different"),
    ("related", "unrelated"),
)
"""What a judge's labels and people's words of praise stand against where they are answers."""
_MOST_WORDS: Final = 4
"""Of a reference that is a choice ("it is the left"): in a longer one "left" is a word like others."""
_WORD: Final = re.compile(r"\w+")
_OFFER: Final = re.compile(r"(\w+) ?,?(?: or |/| / )(?:(?:is it|a|an|the) )?(?=(\w+))")


def words_of_choice(question: str, references: Iterable[str]) -> set[str]:
    """Words that are an answer here, although elsewhere an answer praises itself by them.

    - The words beside an "or" of the question ("Left or right?"), and their opposites ("True, false or unknown?").
    - The opposites of a reference of at most four words: "right" where it says "left", "true" where it says "false".

    Returns:
        Words of these as `folded` has them, others among them.
    """
    offered = {word for sides in _OFFER.findall(folded(question)) for word in sides}
    said = (_WORD.findall(folded(reference)) for reference in references)
    return offered.union(_opposites(offered), *(_opposites(words) for words in said if len(words) <= _MOST_WORDS))


def _opposites(words: Collection[str]) -> Iterator[str]:
    for one, other in _OPPOSITES:
        if one in words:
            yield other
        if other in words:
            yield one
