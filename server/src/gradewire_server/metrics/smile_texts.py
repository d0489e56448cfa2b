"""The texts of one item as SMILE compares them, and the sentence each reference stands for."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from gradewire_server.domain.needs import Need, PreparedSynthetic, ask
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.parameters import SyntheticMode
from gradewire_server.metrics.windows import Windows, windows_of
from gradewire_server.metrics.words import Normalised, normalise


@dataclass(frozen=True, slots=True)
class SmileTexts:
    """What of an item is embedded.

    Attributes:
        prediction: y, raw.
        words: N(y).
        sentences: One per reference: the reference itself or its synthetic answer, raw.
        keywords: N(r), one per reference.
        windows: The distinct windows of N(y).
        references_of: Window length to the indices of the references that look at windows of that length.
    """

    prediction: str
    words: Normalised
    sentences: tuple[str, ...]
    keywords: tuple[Normalised, ...]
    windows: Windows
    references_of: dict[int, list[int]]

    @property
    def reference_texts(self) -> tuple[str, ...]:
        """All sentences, then all keywords: 2 texts per reference, embedded in one call."""
        return self.sentences + tuple(keyword.text for keyword in self.keywords)


def smile_texts(prediction: str, references: tuple[str, ...], sentences: tuple[str, ...]) -> SmileTexts:
    """Normalises prediction and references (not blank) and cuts the windows."""
    words = normalise(prediction)
    keywords = tuple(map(normalise, references))
    windows = windows_of(words.words, {len(keyword.words) for keyword in keywords})
    references_of: dict[int, list[int]] = {}
    for index, keyword in enumerate(keywords):
        references_of.setdefault(windows.length_for(len(keyword.words)), []).append(index)
    return SmileTexts(prediction, words, sentences, keywords, windows, references_of)


def reference_sentences(
    mode: SyntheticMode, question: str, references: tuple[str, ...], inline: tuple[str, ...]
) -> Generator[tuple[Need, ...], Any, tuple[str, ...] | Failure]:
    """The sentence that stands for each reference under `mode`; asks the engine only for PREPARED.

    Returns:
        One text per reference; INVALID_INPUT where `inline` does not fit, NOT_PREPARED where a prepared
        answer is missing.
    """
    if mode is SyntheticMode.NONE:
        return references
    if mode is SyntheticMode.INLINE:
        return check_synthetic(references, inline) or inline
    prepared = yield from ask(PreparedSynthetic(question, references))
    if isinstance(prepared, Failure):
        return prepared
    found = tuple(answer for answer in prepared if answer is not None)
    if len(found) == len(references):
        return found
    missing = ", ".join(f"references[{index}]" for index, answer in enumerate(prepared) if answer is None)
    return Failure(
        Status.NOT_PREPARED,
        f"no synthetic answer is stored for {missing} of this question: call References.Prepare with it first",
    )


def check_synthetic(references: tuple[str, ...], synthetic_answers: tuple[str, ...]) -> Failure | None:
    """INVALID_INPUT unless there is one synthetic answer per reference and none is blank."""
    if len(synthetic_answers) != len(references):
        return Failure(
            Status.INVALID_INPUT,
            f"synthetic_answers: {len(synthetic_answers)} for {len(references)} references; give one each, in order",
        )
    for index, answer in enumerate(synthetic_answers):
        if not answer or answer.isspace():
            return Failure(Status.INVALID_INPUT, f"synthetic_answers[{index}]: is blank")
    return None
