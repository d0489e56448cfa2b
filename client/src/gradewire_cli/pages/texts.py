"""Make rows' texts safe to show, and find SMILE's best window in an answer."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np

_NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]+")
_RUN = re.compile(r"\S+")
_WORD = re.compile(r"\w(?:\S*\w)?")
# The server's windows lie within the first 1,024 words.
_MAX_WORDS = 1024
# A window's first 64 words are enough to find the window.
_MAX_ALIGNED = 64
_MAX_COMPARED = 64
# Minimum mean likeness of words, from 0 to 1.
_LEAST_LIKENESS = 0.5
# Control characters except tab and newline, lone surrogates, and format characters that hide or reverse text. Scripts
# and emoji need joiners, so joiners are allowed.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARK_CONTEXT = 200
MAX_NAME_CHARACTERS = 80
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """A passage of the raw text, from `start` up to but not including `end`.

    Attributes:
        exact: True if the passage's normalised words equal the window's words.
    """

    start: int
    end: int
    exact: bool


def find_window(text: str, window: str) -> FoundWindow | None:
    """Return the first passage of `text` (in NFC) that normalises to `window`.

    If there is no such passage, return the most similar passage, or None if no passage is similar.
    """
    words, spans = _bare_words(text)
    wanted = window.split()
    if not words or not wanted or len(wanted) > len(words):
        return None
    places = len(words) - len(wanted) + 1
    for start in range(places):
        if words[start] == wanted[0] and words[start : start + len(wanted)] == wanted:
            return FoundWindow(spans[start][0], spans[start + len(wanted) - 1][1], exact=True)
    aligned = wanted[:_MAX_ALIGNED]
    total = np.zeros(places)
    distinct = {word: number for number, word in enumerate(dict.fromkeys(words))}
    position = np.array([distinct[word] for word in words])
    for offset, word in enumerate(aligned):
        likeness = np.array([_common_beginning(word[:_MAX_COMPARED], other[:_MAX_COMPARED]) for other in distinct])
        total += likeness[position[offset : offset + places]]
    best = int(total.argmax())
    if total[best] < _LEAST_LIKENESS * len(aligned):
        return None
    return FoundWindow(spans[best][0], spans[best + len(wanted) - 1][1], exact=False)


def _bare_words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    words, spans = [], []
    for run in islice(_RUN.finditer(text), 4 * _MAX_WORDS):
        bare = _NEITHER_WORD_NOR_SPACE.sub("", run[0].lower())
        inside = _WORD.search(run[0])
        if bare and inside:
            words.append(bare)
            spans.append((run.start() + inside.start(), run.start() + inside.end()))
        if len(words) == _MAX_WORDS:
            break
    if words:
        return words, spans
    runs = list(islice(_RUN.finditer(text), _MAX_WORDS))
    return [run[0].lower() for run in runs], [run.span() for run in runs]


def _common_beginning(lemma: str, word: str) -> float:
    if lemma[0] != word[0]:
        return 0.0
    common = takewhile(lambda pair: pair[0] == pair[1], zip(lemma, word, strict=False))
    return sum(1 for _ in common) / max(len(lemma), len(word))


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text on the page.

    Attributes:
        before: The text before the marked passage, or the whole text if nothing is marked.
        cut: A note on the omitted characters, or "".
    """

    before: str
    marked: str = ""
    after: str = ""
    cut: str = ""


def signed(text: str) -> str:
    """Replace a number's hyphen with a true minus sign."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def cut(text: str, most: int) -> str:
    """Return at most `most` characters of a text, with invisible characters written out."""
    beginning = visible(text[:most])
    return beginning if len(beginning) <= most and len(text) <= most else f"{beginning[: most - 1]}…"


def name_of(text: str) -> ShownText:
    """Return a name, cut and isolated from the writing direction of the words around it."""
    return ShownText(cut(text, MAX_NAME_CHARACTERS))


def visible(text: str) -> str:
    """Write out every invisible character, e.g. as "[U+202E]"."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def normal_form(text: str) -> str:
    """Return the text in NFC. Positions in texts refer to NFC."""
    return unicodedata.normalize("NFC", text)


def shown(text: str, *, max_characters: int, mark: FoundWindow | None = None) -> ShownText:
    """Cut an NFC text to its beginning, or to the surroundings of a marked passage beyond the beginning.

    Args:
        text: The text in NFC.
        max_characters: Maximum number of characters, counted before invisible characters are written out.
        mark: The passage that must be visible.
    """
    start, end = (mark.start, mark.end) if mark else (0, 0)
    first = 0 if end <= max_characters else max(0, start - _MARK_CONTEXT)
    last = min(len(text), first + max_characters)
    end = min(end, last)
    cut = ""
    if last - first < len(text):
        cut = f"characters {first + 1:,} to {last:,} of {len(text):,}"
    if not mark:
        return ShownText(visible(text[:last]), cut=cut)
    return ShownText(visible(text[first:start]), visible(text[start:end]), visible(text[end:last]), cut)
