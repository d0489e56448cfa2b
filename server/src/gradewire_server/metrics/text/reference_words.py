"""How many words of an item's references are looked at, by metrics that compare words of every reference."""

from collections.abc import Callable, Sequence
from typing import Final

MAX_REFERENCE_WORDS: Final = 8192
"""Words of all references of an item or entry that are looked at: a thousand long ones would take seconds."""


def words_of_references(
    references: Sequence[str], words_of: Callable[[str], tuple[list[str], bool]]
) -> tuple[list[list[str]], bool]:
    """Words of the first references, as many as have MAX_REFERENCE_WORDS together at most.

    Args:
        references: At least the first one is kept where `words_of` gives no more than MAX_REFERENCE_WORDS.
        words_of: The words of a text that are looked at, and whether it has more.

    Returns:
        The words of each reference that is kept, and whether anything is left out.
    """
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
