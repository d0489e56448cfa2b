"""What chat models put before a label of one letter: "Answer B", and "a tie", which is no vote for label A."""

import re
from functools import lru_cache
from typing import Final

_ARTICLE: Final = "a"
_BETWEEN: Final = r"[\s*_`\"']"


@lru_cache(maxsize=256)
def lead_words(options: tuple[str, ...], opening: str) -> re.Pattern[str] | None:
    """What may stand before a label and is no part of it; None where no label has one letter.

    It is "answer", or "the answer", before a label of one letter, and where "A" is a label, an "a" before a longer
    one; either behind the opening or without it.

    Args:
        options: Labels.
        opening: What the judge may have repeated; may be empty.
    """
    letters = [re.escape(option) for option in options if len(option) == 1 and option.isalpha()]
    if not letters:
        return None
    words = [re.escape(option) for option in options if len(option) > 1]
    leads = [rf"(?:the\s)?answer{_BETWEEN}*:?{_BETWEEN}+(?=(?:{'|'.join(letters)})(?!\w))"]
    if words and _ARTICLE in map(str.casefold, options):
        leads.append(rf"{_ARTICLE}{_BETWEEN}+(?=(?:{'|'.join(words)})(?!\w))")
    begun = r"\s+".join(map(re.escape, opening.split()))
    return re.compile(rf"\W*(?:{begun}\W+)?(?:{'|'.join(leads)})", re.IGNORECASE)


@lru_cache(maxsize=256)
def several_letters(options: tuple[str, ...]) -> re.Pattern[str] | None:
    """A text that begins with two labels ("A and B are equal", "A or B"); None where no label has one letter."""
    letters = [re.escape(option) for option in options if len(option) == 1 and option.isalpha()]
    if not letters:
        return None
    label = rf"(?:answer\s)?(?:{'|'.join(letters)})(?!\w)"
    return re.compile(rf"\W*{label}\W*(?:\b(?:and|or)\b|[&/,])\W*{label}", re.IGNORECASE)
