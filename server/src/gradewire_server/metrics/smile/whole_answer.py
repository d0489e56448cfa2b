"""SMILE's preset `whole`, which reads long answers to their end, in overlapping pieces."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_proto.choices import SmilePreset
from gradewire_server.domain.items import Item
from gradewire_server.domain.needs import Embed, EmbedTokens, Rounds, Tier, TokenVectors, ask
from gradewire_server.metrics.common import TIE, ask_together, expect, first_of_the_highest, is_blank, is_cut
from gradewire_server.metrics.smile.formula import (
    Keyword,
    Similarities,
    SmileParameters,
    can_still_win,
    closest_windows,
    held_keywords,
)
from gradewire_server.metrics.smile.rounds import SHORTLIST, WordsInContext, closest_texts, embed_windows, gather
from gradewire_server.metrics.smile.texts import SmileTexts, full_texts, smile_texts
from gradewire_server.metrics.text.normalise import word_spans

MAX_NEAR: Final = 16
"""Maximum number of windows of each length to embed out of context."""

MAX_PIECES: Final = 64
_OVERLAP: Final = 0.25
"""Share of a piece that the next piece repeats, so that few windows are split."""
_LAST: Final = 0.9
"""Minimum length of the last piece, relative to the previous piece."""
_AHEAD: Final = 1.5
"""Length of the next input, relative to the part of the previous piece that the encoder read."""
_LEAST_CHARACTERS: Final = 256
_MAX_WORD_CHARACTERS: Final = 64

MAX_CHARACTERS: Final = 16_384
MAX_WORDS: Final = 2_048
_MAX_SHORT_ANSWER_CHARACTERS: Final = 512
"""Maximum number of characters in an answer that the encoder is expected to read to the end."""


def words_of_piece(spans: NDArray[np.int32], tokens: TokenVectors, begin: int) -> tuple[int, WordsInContext]:
    """Return the index of the first whole word in the piece that starts at `begin`, and the piece's words.

    `spans` are the words of the whole answer, int32[words, 2], from `word_spans`.
    """
    first = int(np.searchsorted(spans[:, 0], begin))
    last = int(np.searchsorted(spans[:, 1], begin + tokens.offsets[:, 1].max(initial=0), side="right"))
    return first, WordsInContext.of(spans[first : max(first, last)] - begin, tokens)


class Pieces(ABC):
    """The pieces of an answer that have been read so far.

    Args:
        texts: The texts to compare.
        keywords: The vectors of `texts.open_keywords`, float32[open, dims], rows of length 1.
        sentences: The vectors of all references' sentences, float32[references, dims], rows of length 1.

    Attributes:
        sentences: The largest cosine of each reference's sentence with a piece.
    """

    def __init__(self, texts: SmileTexts, keywords: NDArray[np.float32], sentences: NDArray[np.float32]) -> None:
        self.sentences = np.full(len(sentences), -np.inf)
        self._texts = texts
        self._spans = word_spans(texts.prediction, texts.windows.words)
        self._reference_sentences = sentences
        self._reference_keywords = keywords

    def look_at(self, tokens: TokenVectors, begin: int) -> None:
        """Add the piece that starts at character `begin`, with its tokens."""
        np.maximum(self.sentences, self._reference_sentences @ tokens.sentence, out=self.sentences)
        first, words = words_of_piece(self._spans, tokens, begin)
        for length, rows in self._texts.rows_of.items():
            starts, vectors = words.windows(length)
            if len(starts):
                self._look_at_windows(length, first + starts, vectors @ self._reference_keywords[rows].T)

    @abstractmethod
    def _look_at_windows(self, length: int, starts: NDArray[np.intp], cosines: NDArray[np.float32]) -> None:
        """Add the windows of `length` words that start at the words `starts`.

        `cosines` are float32[windows, references], with only the open references of this length.
        """


class ClosestPiece(Pieces):
    """Pieces that record the closest window for each open reference."""

    def __init__(self, texts: SmileTexts, keywords: NDArray[np.float32], sentences: NDArray[np.float32]) -> None:
        super().__init__(texts, keywords, sentences)
        count = len(texts.open_references)
        # For each open reference: the largest cosine with a window (-inf if no window was read in full), this window's
        # first word, and the largest cosine with a whole piece.
        self._windows = np.full(count, -np.inf)
        self._starts = np.zeros(count, np.intp)
        self._pieces = np.full(count, -np.inf)

    @override
    def look_at(self, tokens: TokenVectors, begin: int) -> None:
        super().look_at(tokens, begin)
        if self._texts.open_references:
            np.maximum(self._pieces, self._reference_keywords @ tokens.sentence, out=self._pieces)

    @override
    def _look_at_windows(self, length: int, starts: NDArray[np.intp], cosines: NDArray[np.float32]) -> None:
        for row, column in zip(self._texts.rows_of[length], cosines.T, strict=True):
            if column.max() > self._windows[row] + TIE:
                self._windows[row] = column.max()
                self._starts[row] = starts[first_of_the_highest(column)]

    def keywords(self) -> dict[int, Keyword]:
        """Return the keyword terms of the references in `texts.open_references`, by index.

        If no window of a reference's length was read in full, the term has the text of the first window and
        the cosine of the closest piece.
        """
        found = {}
        words = self._texts.words.words
        for length, rows in self._texts.rows_of.items():
            for row in rows:
                start = int(self._starts[row])
                cosine = self._windows[row] if np.isfinite(self._windows[row]) else self._pieces[row]
                found[self._texts.open_references[row]] = Keyword(
                    float(cosine), " ".join(words[start : start + length])
                )
        return found


class RankedPieces(Pieces):
    """Pieces that record how similar each window is, in context, to the closest reference."""

    def __init__(self, texts: SmileTexts, keywords: NDArray[np.float32], sentences: NDArray[np.float32]) -> None:
        super().__init__(texts, keywords, sentences)
        # By window length, float32[windows]: the largest cosine in context with a reference of this length; -inf if
        # the window was not read in full.
        words = texts.windows.words
        self._near = {length: np.full(words - length + 1, -np.inf, np.float32) for length in texts.rows_of}

    @override
    def _look_at_windows(self, length: int, starts: NDArray[np.intp], cosines: NDArray[np.float32]) -> None:
        near = self._near[length]
        near[starts] = np.maximum(near[starts], cosines.max(axis=1))

    def shortlist(self, lengths: Iterable[int]) -> Rounds[dict[int, tuple[str, ...]]]:
        """Return the windows of these lengths that are closest in context, or the first windows if no window was read.

        Each length has 1 to MAX_NEAR distinct windows, in order of position.
        """
        chosen = {}
        for length in lengths:
            starts = np.flatnonzero(self._near[length] > -np.inf)
            near = closest_texts(partial(self._window, length), starts, self._near[length][starts], most=MAX_NEAR)
            chosen[length] = near or self._first_windows(length)
            yield ()  # pause, because sorting many windows takes long
        return chosen

    def _window(self, length: int, start: int) -> str:
        return " ".join(self._texts.words.words[start : start + length])

    def _first_windows(self, length: int) -> tuple[str, ...]:
        count = min(SHORTLIST, self._texts.windows.words - length + 1)
        return tuple(dict.fromkeys(self._window(length, start) for start in range(count)))


def gather_to_the_end(texts: SmileTexts, parameters: SmileParameters, *, end: int) -> Rounds[Similarities]:
    """Run `gather`; if the encoder cut the prediction, also read all pieces up to `end`."""
    found = yield from gather(texts, parameters)
    if not found.truncated:
        return found
    (first,), keywords, sentences = yield from ask_together(
        EmbedTokens(parameters.model, (texts.prediction,), Tier.PREDICTION),
        Embed(parameters.model, texts.open_keywords, Tier.REFERENCE),
        Embed(parameters.model, texts.sentences, Tier.REFERENCE),
    )
    if not first.truncated:
        return found  # a reference was cut
    closest = ClosestPiece(texts, keywords.values, sentences.values)
    left = yield from read_pieces(texts.prediction[:end].rstrip(), parameters.model, first, closest)
    truncated = left or texts.windows.truncated or is_cut(keywords, sentences)
    return Similarities(closest.sentences.tolist(), {**held_keywords(texts), **closest.keywords()}, truncated)


def read_pieces(text: str, model: str, tokens: TokenVectors, pieces: Pieces) -> Rounds[bool]:
    """Add all pieces of a text to `pieces`; `tokens` belong to the first piece. Return True if a part was not read."""
    begin = 0
    if not _end_of_read_text(tokens, 0):  # blanks before the answer filled the encoder's input
        begin = len(text) - len(text.lstrip())
        tokens = yield from _read(model, text[begin:])
    pieces.look_at(tokens, begin)
    read = _end_of_read_text(tokens, begin) if tokens.truncated else len(text)
    for _ in range(MAX_PIECES - 1):
        if read >= len(text):
            return False
        length = read - begin
        if not length:
            return True
        begin = _word_begin(text, int(min(read - _OVERLAP * length, len(text) - _LAST * length)), after=begin)
        piece = text[begin : begin + max(_LEAST_CHARACTERS, int(_AHEAD * length))]
        if is_blank(piece):
            read = begin + len(piece)
            continue
        tokens = yield from _read(model, piece)
        pieces.look_at(tokens, begin)
        read = _end_of_read_text(tokens, begin) if tokens.truncated else begin + len(piece)
    return read < len(text)


def _end_of_read_text(tokens: TokenVectors, begin: int) -> int:
    return begin + int(tokens.offsets[:, 1].max(initial=0))


def _word_begin(text: str, at: int, *, after: int) -> int:
    """Return the start of the word at `at`, or `at` if the start is too far away. The result is above `after`."""
    at = max(at, after + 1)
    for place in range(at, max(after, at - _MAX_WORD_CHARACTERS), -1):
        if text[place - 1].isspace() and not text[place].isspace():
            return place
    return at


def gather_long(
    item: Item, sentences: tuple[str, ...], parameters: SmileParameters, *, rough_error: float | None = None
) -> Rounds[tuple[SmileTexts, Similarities]]:
    """Request everything that the preset WHOLE needs; return the compared texts and the similarities.

    `sentences` are the references' sentences; `rough_error` is `ModelMetadata.rough_cosine_error`.
    """
    texts = smile_texts(item.prediction, item.references, sentences)
    tokens = (
        (yield from _read(parameters.model, item.prediction))
        if len(item.prediction) > _MAX_SHORT_ANSWER_CHARACTERS
        else None
    )
    if tokens is None or not tokens.truncated:
        like_fast = replace(parameters, preset=SmilePreset.FAST)
        found = yield from gather(texts, like_fast, rough_error=rough_error)
        if tokens is None and found.truncated:
            tokens = yield from _read(parameters.model, item.prediction)
        if tokens is None or not tokens.truncated:
            return texts, found
    end = len(item.prediction) - len(item.prediction.lstrip()) + MAX_CHARACTERS
    texts = full_texts(item.prediction, item.references, end=end, most_words=MAX_WORDS)
    texts = replace(texts, sentences=sentences)
    similarities = yield from _to_the_end(texts, parameters, tokens, end)
    return texts, similarities


def _read(model: str, text: str) -> Rounds[TokenVectors]:
    (tokens,) = yield from expect(ask(EmbedTokens(model, (text,), Tier.PREDICTION)))
    return tokens


def _to_the_end(texts: SmileTexts, parameters: SmileParameters, first: TokenVectors, end: int) -> Rounds[Similarities]:
    model = parameters.model
    keywords, sentences = yield from ask_together(
        Embed(model, texts.open_keywords, Tier.REFERENCE), Embed(model, texts.sentences, Tier.REFERENCE)
    )
    pieces = RankedPieces(texts, keywords.values, sentences.values)
    left = yield from read_pieces(texts.prediction[:end].rstrip(), model, first, pieces)
    truncated = left or texts.windows.truncated or is_cut(keywords, sentences)
    known = Similarities(pieces.sentences.tolist(), held_keywords(texts), truncated)
    rest = texts.with_open(can_still_win(texts, known.sentences, parameters))
    if not rest.open_references:
        return known
    windows = yield from pieces.shortlist(rest.rows_of)
    vectors = yield from embed_windows(model, windows)
    rows = [row for row, index in enumerate(texts.open_references) if index in rest.open_references]
    closest = closest_windows(rest, windows, vectors.values, keywords.values[rows])
    return known.joined_by(closest, truncated=is_cut(vectors))
