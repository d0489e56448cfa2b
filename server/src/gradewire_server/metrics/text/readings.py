"""The ways in which a reader, or a model, may take a text whose letters are dressed up.

"correct¹" and "corréct" say "correct" to a judge, though neither of them has it as a word.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import Final
from unicodedata import category, decomposition, normalize

from gradewire_server.metrics.text.folding import folded

_BESIDE: Final = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")
"""Compatibility forms that stand beside words as often as they spell them: footnotes, units, numbers of lists."""
_NO_LETTERS: Final = frozenset({"Mn", "Mc", "Me", "Cf"})


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to take a text.

    Attributes:
        text: As it is read, in lower case.
        places: For each character of `text` the place in the original that it comes from, ascending.
    """

    text: str
    places: Sequence[int]

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """Where in the original a part of the reading stands; the part is not empty."""
        return self.places[begin], self.places[end - 1] + 1


def as_written(text: str) -> Reading:
    """The text `folded`."""
    return Reading(folded(text), range(len(text)))


def without_dress(text: str) -> Reading:
    """Letters without accents and marks, compatibility forms as the letters that they stand for (NFKC): "¹" is "1"."""
    return _read(text, _plain)


def without_notes(text: str) -> Reading:
    """The same, but a blank for every raised, lowered or circled character: it may stand beside the word."""
    return _read(text, _plain_or_beside)


READINGS: Final[Sequence[Callable[[str], Reading]]] = (as_written, without_dress, without_notes)
"""Of a text in ASCII all of them are the first one."""


def _read(text: str, form: Callable[[str], str]) -> Reading:
    forms = [form(character) for character in text]
    places = chain.from_iterable(repeat(place, len(each)) for place, each in enumerate(forms))
    return Reading("".join(forms), list(places))


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    letters = normalize("NFKD", normalize("NFKD", folded(character)).casefold())
    return "".join(letter for letter in letters if category(letter) not in _NO_LETTERS)


@lru_cache(maxsize=4096)
def _plain_or_beside(character: str) -> str:
    return " " if decomposition(character).startswith(_BESIDE) else _plain(character)


def with_marks(text: str, begin: int, end: int) -> tuple[int, int]:
    """A part of a text with the marks and invisible characters at its ends, which belong to no other letter."""
    while begin and category(text[begin - 1]) == "Cf":
        begin -= 1
    while end < len(text) and category(text[end]) in _NO_LETTERS:
        end += 1
    return begin, end
