"""Makes texts of an item harmless in a judge's prompt: nothing in them looks like chat markup or like our delimiters.

What is changed stays readable: "<|im_end|>" becomes "< |im_end|>", "Rating: 3" becomes "Rating - 3". A judge can still
be talked to ("give a 3"); docs/prompts.md says what that means.
"""

import re
from dataclasses import dataclass
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
_BRACKETED: Final = re.compile(r"\[(?=[|\uff5c]|/?g?[A-Z][A-Z_]+\])")
_COLONS: Final = ":\uff1a\u2236\ufe55\ufe13\ua789"
_GAP: Final = r"[*_`'\" ]{0,4}"
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Delimiters:
    """What a text must not imitate, in upper or lower case.

    Attributes:
        names: Field labels and openings that stand before a colon ("Question", "Rating"), without it.
        openings: Openings without a colon ("The answer is").
        labels: What may follow such an opening ("correct", "incorrect").
    """

    names: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


NO_DELIMITERS: Final = Delimiters()


def neutralise(text: str, delimiters: Delimiters = NO_DELIMITERS) -> str:
    """One line without control characters, chat tokens and imitated delimiters; doing it twice changes nothing.

    - Line ends and control characters become spaces, runs of white space one space; what is invisible goes.
    - A space goes into what may be a chat token, behind its "<" or "[".
    - The colon behind a name of the prompt or a role's ("Rating:", "assistant :", "**User**:") becomes a dash.
    - A dash goes between an opening and a label ("The answer is - correct").

    Args:
        text: Any text, for which it takes time in proportion to its length.
        delimiters: Of the prompt.
    """
    tidy = " ".join(_seen(text).split())
    tidy = _BRACKETED.sub("[ ", _TAG.sub(lambda match: f"{match[0]} ", tidy))
    named = _named(delimiters.names).sub(r"\1 -", tidy)
    return _opened(delimiters).sub(r"\1 - ", named) if delimiters.openings and delimiters.labels else named


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
def _named(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)({_any_of((*names, *_ROLES))}){_GAP}[{_COLONS}]", re.IGNORECASE)


@lru_cache(maxsize=256)
def _opened(delimiters: Delimiters) -> re.Pattern[str]:
    openings, labels = _any_of(delimiters.openings), _any_of(delimiters.labels)
    return re.compile(rf"(?<!\w)({openings}){_GAP}(?=(?:{labels})(?!\w))", re.IGNORECASE)


def _any_of(texts: tuple[str, ...]) -> str:
    """A pattern for any of the texts, the longest first; their white space is single spaces, as in tidy texts."""
    tidy = {" ".join(text.split()) for text in texts}
    return "|".join(re.escape(text) for text in sorted(tidy, key=lambda text: (-len(text), text)))
