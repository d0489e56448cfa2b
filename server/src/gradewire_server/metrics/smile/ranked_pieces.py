"""Which windows of a long answer are embedded alone, ranked in context as its pieces are read one after another."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import Need, TokenVectors
from gradewire_server.metrics.smile.closest_piece import words_of_piece
from gradewire_server.metrics.smile.shortlist import SHORTLIST, closest_texts
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.text.smile_normalise import word_spans

MAX_NEAR: Final = 16
"""Windows of a length that are embedded alone at the most: of an answer that says nearly the same again and again, all
windows would be near-ties."""


@dataclass(slots=True)
class RankedPieces:
    """The closest sentence, and how close each window comes in context, so far.

    Attributes:
        sentences: float64[references], largest cosine of a piece and each reference's sentence.
    """

    sentences: NDArray[np.float64]
    _texts: SmileTexts
    _spans: NDArray[np.int32]
    _reference_sentences: NDArray[np.float32]
    _reference_keywords: NDArray[np.float32]
    _near: dict[int, NDArray[np.float32]]
    """Window length to float32[windows], largest cosine in context with a reference of that length; -inf where the
    window was not read whole."""

    @classmethod
    def of(cls, texts: SmileTexts, keywords: NDArray[np.float32], sentences: NDArray[np.float32]) -> Self:
        """Before any piece.

        Args:
            texts: The item's texts.
            keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, rows of length 1.
            sentences: float32[references, dims], of all of them.
        """
        words = texts.windows.words
        return cls(
            sentences=np.full(len(sentences), -np.inf),
            _texts=texts,
            _spans=word_spans(texts.prediction, words),
            _reference_sentences=sentences,
            _reference_keywords=keywords,
            _near={length: np.full(words - length + 1, -np.inf, np.float32) for length in texts.rows_of},
        )

    def look_at(self, tokens: TokenVectors, begin: int) -> None:
        """Takes in a piece; `tokens` are those of the text from character `begin` on."""
        np.maximum(self.sentences, self._reference_sentences @ tokens.sentence, out=self.sentences)
        first, words = words_of_piece(self._spans, tokens, begin)
        for length, rows in self._texts.rows_of.items():
            starts, vectors = words.windows(length)
            near = (vectors @ self._reference_keywords[rows].T).max(axis=1, initial=-np.inf)
            self._near[length][first + starts] = np.maximum(self._near[length][first + starts], near)

    def shortlist(self, lengths: Iterable[int]) -> Generator[tuple[Need, ...], Any, dict[int, tuple[str, ...]]]:
        """The windows of these lengths that are closest in context, the first ones where none was read whole.

        It asks for nothing, and lets others have their turn after each length: where words repeat, all windows of a
        length may be as close.

        Returns:
            Window length to distinct texts in order of position, 1 to MAX_NEAR of them.
        """
        chosen = {}
        for length in lengths:
            starts = np.flatnonzero(self._near[length] > -np.inf)
            near = closest_texts(partial(self._window, length), starts, self._near[length][starts], most=MAX_NEAR)
            chosen[length] = near or self._first_windows(length)
            yield ()
        return chosen

    def _window(self, length: int, start: int) -> str:
        return " ".join(self._texts.words.words[start : start + length])

    def _first_windows(self, length: int) -> tuple[str, ...]:
        count = min(SHORTLIST, self._texts.windows.words - length + 1)
        return tuple(dict.fromkeys(self._window(length, start) for start in range(count)))
