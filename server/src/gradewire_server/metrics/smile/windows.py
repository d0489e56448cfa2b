"""All windows of n words of a prediction, for the lengths n of its references.

Source: SMILE, eq. 2 (the n-grams of the response). The limits are ours.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from gradewire_server.metrics.text.word_split import MAX_WORDS

MAX_WINDOWS = 512
"""Distinct windows of a prediction that are looked at; one of each length always is."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The distinct windows of one prediction.

    Attributes:
        by_length: Texts by window length in words, each in order of first position. A reference longer than the
            prediction looks at the one window that is the whole of it, so lengths are at most `words`.
        words: How many words the windows are taken from, at most MAX_WORDS.
        truncated: The prediction has more words or more distinct windows than are looked at.
    """

    by_length: dict[int, tuple[str, ...]]
    words: int
    truncated: bool

    def length_for(self, reference_words: int) -> int:
        """Window length that a reference of so many words looks at."""
        return min(reference_words, self.words)


def windows_of(words: tuple[str, ...], lengths: Iterable[int]) -> Windows:
    """Distinct windows of `words` for reference `lengths` (each at least 1).

    They are taken position by position and at each position from short to long, until MAX_WINDOWS are found. Those at
    the first position are all taken: each length has a window, even where there are more lengths than MAX_WINDOWS.
    """
    kept = words[:MAX_WORDS]
    count = len(kept)
    distinct_lengths = sorted({min(length, count) for length in lengths})
    cut = len(words) > MAX_WORDS
    if sum(count - length + 1 for length in distinct_lengths) <= MAX_WINDOWS:
        found = {
            length: tuple(dict.fromkeys([" ".join(kept[at : at + length]) for at in range(count - length + 1)]))
            for length in distinct_lengths
        }
        return Windows(found, count, cut)
    return _first_windows(kept, distinct_lengths, cut=cut)


def _first_windows(words: tuple[str, ...], lengths: list[int], *, cut: bool) -> Windows:
    found: dict[int, dict[str, None]] = {length: {} for length in lengths}
    total = 0
    # Slices of the whole text: a thousand lengths make half a million windows, and joining each takes seconds.
    whole = " ".join(words)
    begins = list(accumulate((len(word) + 1 for word in words), initial=0))
    for start in range(len(words)):
        for length in lengths:
            if start + length > len(words):
                break  # lengths ascend
            text = whole[begins[start] : begins[start + length] - 1]
            if text in found[length]:
                continue
            if start and total >= MAX_WINDOWS:
                return Windows({n: tuple(texts) for n, texts in found.items()}, len(words), truncated=True)
            found[length][text] = None
            total += 1
    return Windows({n: tuple(texts) for n, texts in found.items()}, len(words), truncated=cut)
