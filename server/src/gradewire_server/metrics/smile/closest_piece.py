"""What comes closest to each reference in the pieces of a long answer, as they are read one after another."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import TokenVectors
from gradewire_server.metrics.smile.formula import Keyword
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.smile.words_in_context import WordsInContext
from gradewire_server.metrics.text.smile_normalise import word_spans
from gradewire_server.metrics.ties import TIE, first_of_the_highest


def words_of_piece(spans: NDArray[np.int32], tokens: TokenVectors, begin: int) -> tuple[int, WordsInContext]:
    """The first word of an answer that stands whole in a piece of it, and the words from there on.

    Args:
        spans: int32[words, 2], of the whole answer (`word_spans`).
        tokens: Token vectors of the text from character `begin` on.
        begin: Where the piece begins.
    """
    first = int(np.searchsorted(spans[:, 0], begin))
    last = int(np.searchsorted(spans[:, 1], begin + tokens.offsets[:, 1].max(initial=0), side="right"))
    return first, WordsInContext.of(spans[first : max(first, last)] - begin, tokens)


@dataclass(slots=True)
class ClosestPiece:
    """The closest sentence and window so far.

    Attributes:
        sentences: float64[references], largest cosine of a piece and each reference's sentence.
    """

    sentences: NDArray[np.float64]
    _texts: SmileTexts
    _spans: NDArray[np.int32]
    _reference_sentences: NDArray[np.float32]
    _reference_keywords: NDArray[np.float32]
    _windows: NDArray[np.float64]
    """float64[asked], largest cosine of a window; -inf where none was read whole."""
    _starts: NDArray[np.intp]
    """intp[asked], the word at which that window begins."""
    _pieces: NDArray[np.float64]
    """float64[asked], largest cosine of a whole piece and N(r)."""

    @classmethod
    def of(cls, texts: SmileTexts, keywords: NDArray[np.float32], sentences: NDArray[np.float32]) -> Self:
        """Before any piece.

        Args:
            texts: The item's texts.
            keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, rows of length 1.
            sentences: float32[references, dims], of all of them.
        """
        asked = len(texts.asked)
        return cls(
            sentences=np.full(len(sentences), -np.inf),
            _texts=texts,
            _spans=word_spans(texts.prediction, texts.windows.words),
            _reference_sentences=sentences,
            _reference_keywords=keywords,
            _windows=np.full(asked, -np.inf),
            _starts=np.zeros(asked, np.intp),
            _pieces=np.full(asked, -np.inf),
        )

    def look_at(self, tokens: TokenVectors, begin: int) -> None:
        """Takes in a piece; `tokens` are those of the text from character `begin` on."""
        np.maximum(self.sentences, self._reference_sentences @ tokens.sentence, out=self.sentences)
        if not self._texts.asked:
            return
        np.maximum(self._pieces, self._reference_keywords @ tokens.sentence, out=self._pieces)
        first, words = words_of_piece(self._spans, tokens, begin)
        for length, rows in self._texts.rows_of.items():
            starts, vectors = words.windows(length)
            if not len(starts):
                continue
            for row, column in zip(rows, (vectors @ self._reference_keywords[rows].T).T, strict=True):
                if column.max() > self._windows[row] + TIE:
                    self._windows[row] = column.max()
                    self._starts[row] = first + starts[first_of_the_highest(column)]

    def keywords(self) -> dict[int, Keyword]:
        """The keyword terms of the references in `texts.asked`, by index.

        Where no window of a length was read whole, the closest piece stands for the first one.
        """
        found = {}
        words = self._texts.words.words
        for length, rows in self._texts.rows_of.items():
            for row in rows:
                start = int(self._starts[row])
                cosine = self._windows[row] if np.isfinite(self._windows[row]) else self._pieces[row]
                found[self._texts.asked[row]] = Keyword(float(cosine), " ".join(words[start : start + length]))
        return found
