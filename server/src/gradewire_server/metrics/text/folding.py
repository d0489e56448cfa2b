"""A text's visible characters, its folded form, and possible readings of decorated letters."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import Final
from unicodedata import category, decomposition, normalize

FILLERS: Final = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2065, 0x3164, 0xFFA0),
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0000, 0xE1000),
        ),
    )
)
"""Invisible letters, marks and unassigned characters (Unicode's default ignorable characters)."""
BLANK_PATTERN: Final = "\u2800"
"""A Braille cell without dots, which looks like a blank."""

_JOINERS: Final = "\u200c\u200d"
_SPACES: Final = frozenset({"Cc", "Zl", "Zp"})
_UNSEEN: Final = frozenset({"Cf", "Cs"})
_JOINED: Final = re.compile(f"[{_JOINERS}]+")

_FORMS: Final = {
    character: plain
    for plain, characters in {
        "'": "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02c8\u02ca\u02cb\u05f3\u2018\u2019\u201a\u201b\u2032\u2035\ua78c\uff07",
        '"': "\u00ab\u00bb\u02ba\u02ee\u05f4\u201c\u201d\u201e\u201f\u2033\u2036\u300c\u300d\u300e\u300f\uff02",
        "-": "\u2212\u00ad",
        ":": "\u02d0\u0589\u05c3\u0703\u0704\u1361\u16ec\u205a\u2236\ua4fd\ua789\ufe13\ufe55\uff1a",
    }.items()
    for character in characters
}


def seen(text: str) -> str:
    """Return the text with spaces for control characters, and without invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    odd = [character for character in set(text).difference(_JOINERS) if _is_odd(character)]
    for shown in ("", " "):
        if found := sorted(character for character in odd if _shown(character) == shown):
            text = _runs("".join(found)).sub(shown, text)  # match runs, since a text may contain a million of them
    return _JOINED.sub(_joiner, text)


def folded(text: str) -> str:
    """Return a text for comparisons, with one character for each character of the original, at the same position.

    Apostrophes, quotation marks, dashes and colons become ASCII characters. Full-width and styled letters become plain
    letters, and all letters become lower case.
    """
    if text.isascii():
        return text.lower().replace("`", "'")
    return text.translate({ord(character): _folded(character) for character in set(text)})


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    if character in _FORMS:
        return _FORMS[character]
    if category(character) == "Pd":
        return "-"
    plain = normalize("NFKC", character)
    lower = (plain if len(plain) == 1 else character).lower()
    return lower if len(lower) == 1 else character


def _joiner(match: re.Match[str]) -> str:
    """Remove zero-width joiners next to ASCII, where they only hide words. Some scripts need joiners elsewhere."""
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    return "" if before.isascii() or after.isascii() else match[0][0]


def _is_odd(character: str) -> bool:
    return category(character) in _SPACES | _UNSEEN or character in FILLERS or character == BLANK_PATTERN


def _shown(character: str) -> str:
    return " " if category(character) in _SPACES or character == BLANK_PATTERN else ""


@lru_cache(maxsize=256)
def _runs(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]+")


_BESIDE: Final = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")
"""Compatibility forms that may be part of a word or only follow it, such as footnote marks, units and list numbers."""
_NO_LETTERS: Final = frozenset({"Mn", "Mc", "Me", "Cf"})


@dataclass(frozen=True, slots=True)
class Reading:
    """A possible reading of a text, in lower case. `places` has each character's position in the original text."""

    text: str
    places: Sequence[int]

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range in the original text that corresponds to a non-empty range in `text`."""
        return self.places[begin], self.places[end - 1] + 1


def as_written(text: str) -> Reading:
    """Return the `folded` text."""
    return Reading(folded(text), range(len(text)))


def without_dress(text: str) -> Reading:
    """Return the text without accents and marks, in compatibility forms (NFKC): "¹" becomes "1"."""
    return _read(text, _plain)


def without_notes(text: str) -> Reading:
    """Return the text as `without_dress` does, but with a blank for each raised, lowered or circled character."""
    return _read(text, _plain_or_beside)


READINGS: Final[Sequence[Callable[[str], Reading]]] = (as_written, without_dress, without_notes)
"""The functions that return possible readings. For an ASCII text, all readings equal the first reading."""


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
    """Return the range `begin` to `end`, extended to include adjacent marks and invisible characters."""
    while begin and category(text[begin - 1]) == "Cf":
        begin -= 1
    while end < len(text) and category(text[end]) in _NO_LETTERS:
        end += 1
    return begin, end
