"""An item's texts for SMILE."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from gradewire_server.domain.items import Failure, Status
from gradewire_server.metrics.common import is_blank
from gradewire_server.metrics.text.normalise import Normalised, normalise
from gradewire_server.metrics.text.words import MAX_WORDS

MAX_WINDOWS = 512
"""Maximum number of distinct windows in a prediction; each length always gets at least one window."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The distinct windows of one prediction.

    Attributes:
        by_length: The windows by length in words, in order of first position. If a reference is longer than the
            prediction, the reference's window is the whole prediction.
        words: Number of words used from the prediction.
        truncated: True if some words or windows are not used.
    """

    by_length: dict[int, tuple[str, ...]]
    words: int
    truncated: bool

    def length_for(self, reference_words: int) -> int:
        """Return the window length for a reference with `reference_words` words."""
        return min(reference_words, self.words)


def windows_of(words: tuple[str, ...], lengths: Iterable[int]) -> Windows:
    """Return distinct windows of `words` for references with these `lengths` (each at least 1).

    Add windows by position, the shortest first, until there are MAX_WINDOWS. The first position always has windows of
    all lengths.
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
    # Slice the whole text, because joining the words of half a million windows would need seconds.
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


@dataclass(frozen=True)
class SmileTexts:
    """The texts of an item that SMILE embeds or compares.

    Attributes:
        words: The normalised prediction.
        sentences: For each reference, the raw reference or its synthetic answer.
        keywords: The normalised references.
        windows: The distinct windows of `words`; empty if windows are used only in context.
        held: The indices of references that equal a window. Their keyword similarity is 1 and needs no encoder.
        open_references: The indices of references whose keyword similarity needs the encoder, ascending.
    """

    prediction: str
    words: Normalised
    sentences: tuple[str, ...]
    keywords: tuple[Normalised, ...]
    windows: Windows
    held: tuple[int, ...]
    open_references: tuple[int, ...]

    @cached_property
    def rows_of(self) -> dict[int, list[int]]:
        """The indices in `open_references` by window length."""
        rows_of: dict[int, list[int]] = {}
        for row, index in enumerate(self.open_references):
            rows_of.setdefault(self.windows.length_for(len(self.keywords[index].words)), []).append(row)
        return rows_of

    @property
    def open_keywords(self) -> tuple[str, ...]:
        """The normalised references in `open_references`."""
        return tuple(self.keywords[index].text for index in self.open_references)

    @property
    def candidates(self) -> dict[int, tuple[str, ...]]:
        """The distinct windows that references in `open_references` need, by window length."""
        return {length: self.windows.by_length[length] for length in self.rows_of}

    def with_open(self, open_references: tuple[int, ...]) -> "SmileTexts":
        """Return a copy with different `open_references`."""
        if open_references == self.open_references:
            return self
        return SmileTexts(
            self.prediction, self.words, self.sentences, self.keywords, self.windows, self.held, open_references
        )


def smile_texts(prediction: str, references: tuple[str, ...], sentences: tuple[str, ...]) -> SmileTexts:
    """Normalise the prediction and the references, and create the windows. No text may be blank."""
    words = normalise(prediction)
    keywords = tuple(map(normalise, references))
    windows = windows_of(words.words, {len(keyword.words) for keyword in keywords})
    held = tuple(
        index
        for index, keyword in enumerate(keywords)
        if keyword.text in windows.by_length[windows.length_for(len(keyword.words))]
    )
    open_references = tuple(index for index in range(len(keywords)) if index not in held)
    return SmileTexts(prediction, words, sentences, keywords, windows, held, open_references)


def full_texts(prediction: str, references: tuple[str, ...], *, end: int, most_words: int) -> SmileTexts:
    """Return texts without windows, for metrics that use windows only in context. The sentences are the raw references.

    Use only the prediction's first `end` characters, and only the first `most_words` words of these.
    """
    words = normalise(prediction[:end])
    keywords = tuple(map(normalise, references))
    kept = words.words[:most_words]
    spaced = f" {' '.join(kept)} "
    held = tuple(index for index, keyword in enumerate(keywords) if f" {keyword.text} " in spaced)
    open_references = tuple(index for index in range(len(keywords)) if index not in held)
    cut = len(words.words) > most_words or len(prediction.rstrip()) > end
    windows = Windows({}, len(kept), cut)
    return SmileTexts(prediction, words, references, keywords, windows, held, open_references)


def check_synthetic(references: tuple[str, ...], synthetic_answers: tuple[str, ...]) -> Failure | None:
    """Return INVALID_INPUT unless each reference has one synthetic answer and no answer is blank."""
    if len(synthetic_answers) != len(references):
        return Failure(
            Status.INVALID_INPUT,
            f"synthetic_answers: has {len(synthetic_answers)} answers for {len(references)} references. Give one "
            "answer for each reference, in the references' order",
        )
    for index, answer in enumerate(synthetic_answers):
        if is_blank(answer):
            return Failure(Status.INVALID_INPUT, f"synthetic_answers[{index}]: is blank")
    return None
