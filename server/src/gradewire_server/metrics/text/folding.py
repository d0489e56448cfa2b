"""The visible part of a text, and one form of its characters for all the ways in which people type them.

A phone writes a curly apostrophe, a Chinese keyboard a wide colon, a hostile hand an invisible filler. What looks alike
here still looks alike to a judge, so it has to be found alike.
"""

import re
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize

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
"""Characters that show nothing though they are letters, marks or unassigned (Unicode's default ignorable ones)."""
BLANK_PATTERN: Final = "\u2800"
"""A Braille cell without dots: a sign that looks like a blank."""

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
    """The text with spaces for control characters, and without invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    odd = [character for character in set(text).difference(_JOINERS) if _is_odd(character)]
    for shown in ("", " "):
        if found := sorted(character for character in odd if _shown(character) == shown):
            text = _runs("".join(found)).sub(shown, text)  # runs, for a million of them are one match
    return _JOINED.sub(_joiner, text)


def folded(text: str) -> str:
    """The text as it is compared, a character for each of its own: what is found in it stands at the same place there.

    Apostrophes, quotation marks, dashes and colons become those of ASCII; full-width and styled letters plain ones;
    letters lower case.
    """
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
    """Zero-width joiners belong to words of some scripts; beside ASCII they only hide what a word is."""
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    return "" if before.isascii() or after.isascii() else match[0][0]


def _is_odd(character: str) -> bool:
    return category(character) in _SPACES | _UNSEEN or character in FILLERS or character == BLANK_PATTERN


def _shown(character: str) -> str:
    return " " if category(character) in _SPACES or character == BLANK_PATTERN else ""


@lru_cache(maxsize=256)
def _runs(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]+")
