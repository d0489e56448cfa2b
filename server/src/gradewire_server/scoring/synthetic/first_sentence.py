"""The first sentence of a short text that a language model wrote, in any script."""

import re
from typing import Final

MAX_CHARACTERS: Final = 4096
"""Characters of a text that are looked at."""

# A mark that ends a sentence, with the quotes and brackets that close behind it. Scripts whose marks need no blank
# behind them: CJK full stops, Devanagari's danda, Arabic's question mark and full stop, Ethiopic's.
_SPACED: Final = r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\u00bb)\]]*(?=\s|$)"
_UNSPACED: Final = r"[\u3002\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u1362]+[\"'\u201d\u2019\u300d\u300f)\]]*"
_END: Final = re.compile(f"{_SPACED}|{_UNSPACED}")
_NEXT_WORD: Final = re.compile(r"\s*(\S+)")
_LAST_WORD: Final = re.compile(r"\S+$")
_QUOTES: Final = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u300c": "\u300d"}
_ABBREVIATION: Final = re.compile(
    r"mrs?|ms|dr|st|[js]r|prof|rev|gen|col|lt|sgt|capt|hon|gov|sen|rep|vs|etc|inc|ltd|co|corp|mt|ft|ave|approx|e\.g|i\.e|"
    r"u\.[sk]|[ap]\.m|b\.c|a\.d|ph\.d|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
_STARTER: Final = re.compile(
    r"[\"'(\u201c]*(?:it|s?he|they|we|i|this|that|these|those|the|an?|in|on|its|his|her|their|there)\W*", re.IGNORECASE
)
"""Words that, with a capital, begin a new sentence even behind an initial or an abbreviation."""


def first_sentence(text: str, *, keep: str = "") -> tuple[str, bool]:
    """The first sentence of the first line that is not blank, without quotes around it.

    Args:
        text: At most its first MAX_CHARACTERS are looked at.
        keep: A phrase whose own marks end no sentence ("Yahoo!", "St. Louis").

    Returns:
        The sentence, and whether a mark ends it; the whole line where none does.
    """
    line = text[:MAX_CHARACTERS].strip().partition("\n")[0].strip()
    closing = _QUOTES.get(line[:1])
    if closing and len(line) > 1 and line.endswith(closing) and line.count(closing) <= 1 + (closing == line[0]):
        line = line[1:-1].strip()
    kept = _spans(line, keep.strip().rstrip("."))
    for match in _END.finditer(line):
        inside = any(start <= match.start() < end for start, end in kept)
        if not inside and _ends_here(line, match):
            return line[: match.end()], True
    return line, False


def _spans(line: str, phrase: str) -> list[tuple[int, int]]:
    return [(found.start(), found.end()) for found in re.finditer(re.escape(phrase), line)] if phrase else []


def _ends_here(line: str, match: re.Match[str]) -> bool:
    """Whether a mark ends the sentence: not a dot within a name or an abbreviation."""
    following = _NEXT_WORD.match(line, match.end())
    if following is None or match[0][0] not in ".!?\u2026":
        return True
    word = following[1]
    if word[0].islower():
        return False
    if match[0] != "." or _STARTER.fullmatch(word):
        return True
    before = _LAST_WORD.search(line, max(0, match.start() - 32), match.start())
    last = before[0].lstrip("(\"'\u201c") if before else ""
    initial = len(last) == 1 and last.isalpha()
    number = last.lower() == "no" and word[0].isdigit()
    return not (initial or number or _ABBREVIATION.fullmatch(last))
