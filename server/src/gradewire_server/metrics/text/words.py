"""Words of a text in any script, for metrics that count words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Final
from unicodedata import category

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


def _character_class(numbers: Iterable[int]) -> str:
    ranges = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        ranges.append(f"{chr(found[0])}-{chr(found[-1])}")
    return "".join(ranges)


def _compiled_word() -> re.Pattern[str]:
    """Return a pattern for a word with its combining marks, or for a single letter of a script without spaces."""
    # Use character classes, because an alternation for each character is ten times as slow on a long text.
    assigned = range(_UNSPACED[-1].stop)
    letters = [number for number in assigned if chr(number).isalnum()]
    unspaced = set(chain.from_iterable(_UNSPACED))
    alone = [number for number in letters if number in unspaced]
    joined = _character_class(sorted(set(letters).difference(alone)))
    marks = _character_class([n for n in (*assigned, *_VARIATION_SELECTORS) if category(chr(n))[0] == "M"])
    single = f"[{_character_class(alone)}]"
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
