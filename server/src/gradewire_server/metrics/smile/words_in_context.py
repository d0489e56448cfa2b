"""Windows of a prediction as one pass over all of it sees them; preset `one_pass` looks at nothing else.

A window's vector in context is the mean of the vectors of its words' tokens. It is not the vector that the window has
alone, but it agrees with humans as well (docs/research/windows-in-context.md).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import TokenVectors
from gradewire_server.metrics.smile.formula import Keyword
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.text.smile_normalise import word_spans
from gradewire_server.metrics.ties import first_of_the_highest


@dataclass(frozen=True, slots=True)
class WordsInContext:
    """The words of a prediction, each with the tokens that cover it.

    Attributes:
        sums: float32[tokens of words + 1, dims], sums of the first i vectors of tokens that belong to a word.
        bounds: intp[words + 1], where each word's tokens begin among those.
        read: intp[words + 1], how many of the first i words have a token; a word the encoder did not get to has none.
    """

    sums: NDArray[np.float32]
    bounds: NDArray[np.intp]
    read: NDArray[np.intp]

    @classmethod
    def of(cls, spans: NDArray[np.int32], tokens: TokenVectors) -> Self:
        """Gives words the tokens whose characters they cover.

        Args:
            spans: int32[words, 2], where they stand in the text that the tokens are of (`word_spans`).
            tokens: Its token vectors.
        """
        begin, end = tokens.offsets[:, 0], tokens.offsets[:, 1]
        word = np.searchsorted(spans[:, 1], begin, side="right")
        inside = (word < len(spans)) & (end > begin)
        inside[inside] = spans[word[inside], 0] < end[inside]
        bounds = np.searchsorted(word[inside], np.arange(len(spans) + 1))
        sums = np.zeros((int(inside.sum()) + 1, tokens.tokens.shape[1]), dtype=np.float32)
        np.cumsum(tokens.tokens[inside], axis=0, out=sums[1:])
        return cls(sums, bounds, np.concatenate(([0], np.cumsum(bounds[1:] > bounds[:-1]))))

    def windows(self, length: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Where the windows of `length` words begin, and their vectors, rows of length 1.

        Only windows whose words were all read; the others would be judged by a part of themselves.

        Returns:
            intp[windows], ascending, and float32[windows, dims].
        """
        starts = np.flatnonzero(self.read[length:] - self.read[:-length] == length)
        vectors = self.sums[self.bounds[starts + length]] - self.sums[self.bounds[starts]]
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        return starts, vectors / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]


def closest_in_context(texts: SmileTexts, tokens: TokenVectors, keywords: NDArray[np.float32]) -> dict[int, Keyword]:
    """The keyword terms of the references in `texts.asked`, from vectors in context alone.

    Where no window of a length was read whole, e(y) stands for the first one.

    Args:
        texts: The item's texts.
        tokens: Token vectors of the raw prediction.
        keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, rows of length 1.

    Returns:
        By reference index; of equal windows the first is named.
    """
    words = WordsInContext.of(word_spans(texts.prediction, texts.windows.words), tokens)
    found = {}
    for length, rows in texts.rows_of.items():
        starts, vectors = words.windows(length)
        if not len(starts):
            starts, vectors = np.zeros(1, np.intp), tokens.sentence[None, :]
        for row, column in zip(rows, (vectors @ keywords[rows].T).T, strict=True):
            start = int(starts[first_of_the_highest(column)])
            window = " ".join(texts.words.words[start : start + length])
            found[texts.asked[row]] = Keyword(float(column.max()), window)
    return found
