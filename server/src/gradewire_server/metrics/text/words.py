"""Words of a text in any script, for metrics that count words."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final
from unicodedata import category

import numpy as np

_PART_CHARACTERS: Final = 32_768
"""Maximum number of characters to translate in one call, which takes up to 4 ms."""

MAX_WORDS: Final = 1024
MAX_CHARACTERS: Final = 65_536

_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
# Scripts without spaces between words: Thai and Lao, Myanmar, Khmer, kana, Han.
_UNSPACED: Final = tuple(
    range(first, last + 1)
    for first, last in (
        (0x0E01, 0x0EFF),
        (0x1000, 0x109F),
        (0x1780, 0x17FF),
        (0x3005, 0x3007),
        (0x3041, 0x30FF),
        (0x31F0, 0x31FF),
        (0x3400, 0x4DBF),
        (0x4E00, 0x9FFF),
        (0xF900, 0xFAFF),
        (0xFF66, 0xFF9F),
        (0x20000, 0x323AF),
    )
)
_VARIATION_SELECTORS: Final = range(0xE0100, 0xE01F0)
"""Code points of the variation selectors, the only combining marks that come after the last letter."""

MAX_REFERENCE_WORDS: Final = 8192
"""Maximum number of words in all references of an item or entry."""


def translated(text: str, table: Mapping[int, str | int | None]) -> str:
    """Return `text.translate(table)`, computed in several calls.

    A single call for half a megabyte would hold the GIL for 50 ms.
    """
    if len(text) <= _PART_CHARACTERS:
        return text.translate(table)
    starts = range(0, len(text), _PART_CHARACTERS)
    return "".join([text[start : start + _PART_CHARACTERS].translate(table) for start in starts])


def _character_class(runs: Iterable[tuple[int, int]]) -> str:
    return "".join([f"{chr(start)}-{chr(end - 1)}" for start, end in runs])


def _marks(characters: str) -> Iterator[tuple[int, int]]:
    """Yield the runs of combining marks, which are neither letters nor digits."""
    for gap in re.finditer(r"[\W_]+", characters):
        kinds = "".join([category(character)[0] for character in gap[0]])
        for found in re.finditer("M+", kinds):
            yield gap.start() + found.start(), gap.start() + found.end()


def _compiled_word() -> re.Pattern[str]:
    """Return a pattern for a word with its combining marks, or for a single letter of a script without spaces."""
    # Each process does this at start, so `re` looks for the letters: `str.isalnum` for each character takes 0.1 s.
    codes = np.arange(_UNSPACED[-1].stop, dtype="<u4")
    characters = codes.tobytes().decode("utf-32-le", "surrogatepass")
    # Use character classes, because an alternation for each character is ten times as slow on a long text.
    unspaced = _character_class((script.start, script.stop) for script in _UNSPACED)
    joined = _character_class(found.span() for found in re.finditer(rf"[^\W_{unspaced}]+", characters))
    letters = re.compile(r"[^\W_]+")
    in_scripts = (letters.finditer(characters, script.start, script.stop) for script in _UNSPACED)
    single = f"[{_character_class(found.span() for found in chain.from_iterable(in_scripts))}]"
    selectors = (_VARIATION_SELECTORS.start, _VARIATION_SELECTORS.stop)
    marks = _character_class((*_marks(characters), selectors))
    # The first branch is redundant but fast, because most letters of an unspaced script precede another letter. A
    # check that no mark follows is slower, because marks have hundreds of ranges beyond the first plane.
    return re.compile(f"{single}(?={single})|[{joined}][{joined}{marks}]*|{single}[{marks}]*")


_WORD: Final = _compiled_word()  # compile at start, because compiling needs 0.1 s


def split_words(text: str) -> list[str]:
    """Return lower-case words, at least one for a non-blank text.

    A word is a run of letters, digits and marks. Each letter of a script without spaces between words is a separate
    word. All other characters, including "_", separate words. A text without words ("?!") is split at white space.
    """
    lowered = text.lower()
    pattern = _ASCII_WORD if lowered.isascii() else _WORD
    if len(lowered) <= MAX_CHARACTERS:
        return pattern.findall(lowered) or lowered.split()
    # `findall` would hold the GIL for 0.3 s for a megabyte; `finditer` lets other threads run between matches.
    return [found[0] for found in pattern.finditer(lowered)] or lowered.split()


def first_words(text: str) -> tuple[list[str], bool]:
    """Return the first MAX_WORDS words of `split_words`, and True if the text was cut."""
    begun = text.lstrip()
    words = split_words(begun[:MAX_CHARACTERS])
    return words[:MAX_WORDS], len(words) > MAX_WORDS or len(begun) > MAX_CHARACTERS


def words_of_references(
    references: Sequence[str], words_of: Callable[[str], tuple[list[str], bool]]
) -> tuple[list[list[str]], bool]:
    """Return each reference's words, at most MAX_REFERENCE_WORDS in total, and True if any words were omitted."""
    kept: list[list[str]] = []
    room = MAX_REFERENCE_WORDS
    cut = False
    for reference in references:
        words, shortened = words_of(reference)
        if len(words) > room:
            return kept, True
        kept.append(words)
        room -= len(words)
        cut |= shortened
    return kept, cut
