"""Makes texts of an item harmless in a judge's prompt: nothing in them looks like chat markup or like our delimiters.

What is changed stays readable: "<|im_end|>" becomes "< |im_end|>", "Rating: 3" becomes "Rating - 3". A judge can still
be talked to ("give a 3"); docs/prompts.md says what that means.
"""

import re
from functools import lru_cache
from itertools import islice
from typing import Final
from unicodedata import category

MAX_CHARACTERS: Final = 16_384
"""Characters of a text that are shown: a thousand words have half as many, a single word may have a million."""

_ROLES: Final = ("system", "user", "assistant", "human", "instruction", "instructions", "input", "output", "response")
_JOINERS: Final = "\u200c\u200d"
_SPACES: Final = frozenset({"Cc", "Zl", "Zp"})
_UNSEEN: Final = frozenset({"Cf", "Cs"})
_JOINED: Final = re.compile(f"[{_JOINERS}]+")
_TAG: Final = re.compile(r"[<\uff1c](?=[^\W\d]|0x|[/!|\uff5c<\uff1c\[])")
_BRACKETED: Final = re.compile(r"\[(?=/?g?[A-Z][A-Z_]+\])")
_COLONS: Final = ":\uff1a\u2236\ufe55\ufe13\ua789"
_WORD: Final = re.compile(r"\S+")


def neutralise(text: str, delimiters: tuple[str, ...] = ()) -> str:
    """One line without control characters, chat tokens and imitated delimiters; doing it twice changes nothing.

    - Line ends and control characters become spaces, runs of white space one space; what is invisible goes.
    - A space goes into what may be a chat token, behind its "<" or "[".
    - The colon behind a delimiter or a role's name ("Rating:", "assistant :", "**User**:") becomes a dash.

    Args:
        text: Any text, for which it takes time in proportion to its length.
        delimiters: Field labels and openings of the prompt, without their colons; upper and lower case alike.
    """
    tidy = " ".join(_seen(text).split())
    tidy = _BRACKETED.sub("[ ", _TAG.sub(lambda match: f"{match[0]} ", tidy))
    return _imitations(delimiters).sub(r"\1 -", tidy)


def first_words(text: str, most: int) -> tuple[str, bool]:
    """The first words of a text, single spaces between them.

    Args:
        text: Any text.
        most: How many words; of these no more than MAX_CHARACTERS characters.

    Returns:
        The words, and whether there are more.
    """
    words = [match[0] for match in islice(_WORD.finditer(_seen(text)), most + 1)]
    shown = " ".join(words[:most])
    return shown[:MAX_CHARACTERS].rstrip(), len(words) > most or len(shown) > MAX_CHARACTERS


def _seen(text: str) -> str:
    """The text with spaces for control characters, and without what cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    kinds = {character: category(character) for character in set(text).difference(_JOINERS)}
    table = {ord(character): " " if kind in _SPACES else None for character, kind in kinds.items() if _odd(kind)}
    return _JOINED.sub(_joiner, text.translate(table))


def _joiner(match: re.Match[str]) -> str:
    """Zero-width joiners belong to words of some scripts; beside ASCII they only hide what a word is."""
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    return "" if before.isascii() or after.isascii() else match[0][0]


def _odd(kind: str) -> bool:
    return kind in _SPACES or kind in _UNSEEN


@lru_cache(maxsize=256)
def _imitations(delimiters: tuple[str, ...]) -> re.Pattern[str]:
    labels = sorted(
        {" ".join(label.split()) for label in (*delimiters, *_ROLES)}, key=lambda label: (-len(label), label)
    )
    names = "|".join(re.escape(label) for label in labels)
    return re.compile(rf"(?<!\w)({names})[*_`'\" ]{{0,4}}[{_COLONS}]", re.IGNORECASE)
