"""Finds in the raw text the window that SMILE names in its normal form.

The server lower-cases, deletes what is neither word character nor white space, and replaces words by lemmas (METRICS,
"SMILE"). The client has no lemmas: a stretch whose bare words are the window's own is found exactly, any other by the
best alignment, and the page says which of the two it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np

_NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]+")
_RUN = re.compile(r"\S+")
_WORD = re.compile(r"\w(?:\S*\w)?")
# As the server: windows are taken from the first 1,024 words.
_MAX_WORDS = 1024
# Words of a window that are aligned; they settle where it begins.
_MAX_ALIGNED = 64
# Characters of a word that are compared: a text may be one word of a megabyte.
_MAX_COMPARED = 64
# Mean similarity of words, 0 to 1, below which a stretch is not called the window's place.
_LEAST_LIKENESS = 0.5


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """A stretch of the raw text, half open.

    Attributes:
        start: Its first character.
        end: One beyond its last.
        exact: Its bare words are the window's; otherwise some differ, as inflected forms do from lemmas.
    """

    start: int
    end: int
    exact: bool


def find_window(text: str, window: str) -> FoundWindow | None:
    """Looks for the stretch of `text` that normalises to `window`.

    Args:
        text: Raw, in normal form NFC.
        window: Normalised words joined by single spaces.

    Returns:
        The first exact stretch, else the one most like it, or None where nothing is like it.
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
        likeness = np.array([_likeness(word[:_MAX_COMPARED], other[:_MAX_COMPARED]) for other in distinct])
        total += likeness[position[offset : offset + places]]
    best = int(total.argmax())
    if total[best] < _LEAST_LIKENESS * len(aligned):
        return None
    return FoundWindow(spans[best][0], spans[best + len(wanted) - 1][1], exact=False)


def _bare_words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    words, spans = [], []
    for run in islice(_RUN.finditer(text), 4 * _MAX_WORDS):  # runs of punctuation alone are no words
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


def _likeness(lemma: str, word: str) -> float:
    """Share of the longer word that both begin with: inflection changes ends, mostly."""
    if lemma[0] != word[0]:
        return 0.0
    common = takewhile(lambda pair: pair[0] == pair[1], zip(lemma, word, strict=False))
    return sum(1 for _ in common) / max(len(lemma), len(word))
