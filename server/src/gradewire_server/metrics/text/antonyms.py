"""Opposite words: WordNet's antonyms, which `antonyms.txt` holds, and what a negating prefix makes of a word.

Scores must not depend on files that a server may lack, so the table is a part of the package; it is made by
`python -m benchmarks.research.antonyms`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from gradewire_server.metrics.text.lemmas import known_words

_PREFIXES: Final = ("non", "un")
"""Of those that negate, the ones that do so before any word of four letters: "in" does not in "inform"."""
_LEAST_LETTERS: Final = 5


@cache
def antonym_table() -> Mapping[str, frozenset[str]]:
    """Opposites of each word that WordNet has any for (about 5 700 words, lower case); read once, some milliseconds."""
    found: dict[str, set[str]] = {}
    for line in (files(__package__) / "antonyms.txt").read_text("ascii").splitlines():
        if not line.startswith("#"):
            one, other = line.split()
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


def opposites_of(word: str) -> frozenset[str]:
    """The antonyms of a lower-case word, and what it is with and without a negating prefix.

    "hot": "cold"; "valid": "invalid"; "polar" and "nonpolar" are opposites of each other, "form" and "uniform" are not.
    """
    found = antonym_table().get(word, frozenset())
    bare = next((word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix)), "")
    if len(bare) >= _LEAST_LETTERS and bare in known_words():
        return found | {bare}
    return found | {prefix + word for prefix in _PREFIXES} if len(word) >= _LEAST_LETTERS and word.isalpha() else found
