"""SMILE's rounds of encoder requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import SmilePreset
from gradewire_server.domain.needs import Embed, EmbedRoughly, EmbedTokens, Rounds, Tier, TokenVectors, Vectors, ask
from gradewire_server.metrics.common import TIE, ask_together, expect, first_of_the_highest, is_cut, sentence_needs
from gradewire_server.metrics.smile.formula import (
    Keyword,
    Similarities,
    SmileParameters,
    can_still_win,
    closest_of,
    closest_windows,
    held_keywords,
)
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.text.normalise import word_spans


@dataclass(frozen=True, slots=True)
class WordsInContext:
    """A prediction's words with the vectors of their tokens.

    Attributes:
        sums: float32[tokens + 1, dims]; row i is the sum of the first i token vectors.
        bounds: intp[words + 1], the index of each word's first token.
        read: intp[words + 1]; element i says how many of the first i words have a token. Words beyond the encoder's
            limit have no token.
    """

    sums: NDArray[np.float32]
    bounds: NDArray[np.intp]
    read: NDArray[np.intp]

    @classmethod
    def of(cls, spans: NDArray[np.int32], tokens: TokenVectors) -> Self:
        """Assign tokens to words by character position; `spans` are int32[words, 2] from `word_spans`."""
        begin, end = tokens.offsets[:, 0], tokens.offsets[:, 1]
        word = np.searchsorted(spans[:, 1], begin, side="right")
        inside = (word < len(spans)) & (end > begin)
        inside[inside] = spans[word[inside], 0] < end[inside]
        bounds = np.searchsorted(word[inside], np.arange(len(spans) + 1))
        sums = np.zeros((int(inside.sum()) + 1, tokens.tokens.shape[1]), dtype=np.float32)
        np.cumsum(tokens.tokens[inside], axis=0, out=sums[1:])
        return cls(sums, bounds, np.concatenate(([0], np.cumsum(bounds[1:] > bounds[:-1]))))

    def windows(self, length: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the start and vector of each window of `length` words: intp[windows] and float32[windows, dims].

        The vectors have length 1. Windows that the encoder did not read in full are skipped.
        """
        starts = np.flatnonzero(self.read[length:] - self.read[:-length] == length)
        vectors = self.sums[self.bounds[starts + length]] - self.sums[self.bounds[starts]]
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        return starts, vectors / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]


def closest_in_context(texts: SmileTexts, tokens: TokenVectors, keywords: NDArray[np.float32]) -> dict[int, Keyword]:
    """Return the keyword terms of `texts.open_references` by index, computed only from vectors in context.

    `keywords` are the vectors of `texts.open_keywords`, float32[open, dims], rows of length 1. Ties go to the first
    window. If the encoder did not read any window of one length in full, the prediction's vector replaces the vector
    of this length's first window.
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
            found[texts.open_references[row]] = Keyword(float(column.max()), window)
    return found


FEW_TOKENS: Final = 128
"""Maximum number of tokens of windows to embed exactly in the first round. A further round would cost as much."""
_FEW_NEAR_TOKENS: Final = 64
"""Maximum number of tokens of windows near the highest cosine to embed exactly in one round."""
_SPECIAL_TOKENS: Final = 2


@dataclass(frozen=True, slots=True)
class RoughCosines:
    """Approximate cosines of an item's windows with its open references.

    Attributes:
        texts: The texts to compare.
        keywords: Exact vectors of `texts.open_keywords`, float32[open, dims], rows of length 1.
        by_length: The cosines of `texts.candidates` of each length with the references of this length, in the order of
            `texts.rows_of`, float32[windows, references].
        error: The maximum error of a cosine.
    """

    texts: SmileTexts
    keywords: NDArray[np.float32]
    by_length: Mapping[int, NDArray[np.float32]]
    error: float

    @classmethod
    def of(
        cls, texts: SmileTexts, vectors: NDArray[np.float32], keywords: NDArray[np.float32], *, error: float
    ) -> Self:
        """Compare windows with references; `vectors` are those of `texts.candidates`, float32[windows, dims]."""
        by_length = {}
        start = 0
        for length, windows in texts.candidates.items():
            by_length[length] = vectors[start : start + len(windows)] @ keywords[texts.rows_of[length]].T
            start += len(windows)
        return cls(texts, keywords, by_length, error)

    def highest(self) -> dict[int, float]:
        """Return the highest cosine of each open reference by index."""
        found: dict[int, float] = {}
        for length, rows in self.texts.rows_of.items():
            indices = [self.texts.open_references[row] for row in rows]
            found.update(zip(indices, self.by_length[length].max(axis=0).tolist(), strict=True))
        return found

    def narrowed(self, open_references: tuple[int, ...]) -> "RoughCosines":
        """Return a copy with fewer open references."""
        texts = self.texts.with_open(open_references)
        kept = [row for row, index in enumerate(self.texts.open_references) if index in open_references]
        by_length = {
            length: self.by_length[length][:, [self.texts.rows_of[length].index(kept[row]) for row in rows]]
            for length, rows in texts.rows_of.items()
        }
        return RoughCosines(texts, self.keywords[kept], by_length, self.error)

    def near(self, margins: Mapping[int, float]) -> dict[int, tuple[str, ...]]:
        """Return the windows of each length that are near a reference's highest cosine, in order of position.

        `margins` are the distances from the highest cosine that still count as near, by the reference's index.
        """
        near = {}
        for length, windows in self.texts.candidates.items():
            cosines = self.by_length[length]
            indices = [self.texts.open_references[row] for row in self.texts.rows_of[length]]
            least = cosines.max(axis=0) - np.array([margins[index] for index in indices], np.float32) - TIE
            near[length] = tuple(windows[at] for at in np.flatnonzero((cosines >= least).any(axis=1)).tolist())
        return near

    def exact(
        self, texts: SmileTexts, windows: Mapping[int, Sequence[str]], vectors: NDArray[np.float32]
    ) -> dict[int, NDArray[np.float32]]:
        """Return exact cosines of some windows with the open references of `texts`, like `by_length`.

        `texts` are narrowed ones, and `vectors` are those of `windows`, float32[windows of all lengths, dims]. The last
        bits of a matrix product depend on its shape, so the products have the shape that all windows would give them.
        """
        cosines = {}
        start = 0
        for length, chosen in windows.items():
            stop = start + len(chosen)
            rows, among = self.texts.rows_of[length], frozenset(chosen)
            places = [at for at, window in enumerate(self.texts.candidates[length]) if window in among]
            every = np.zeros((len(self.texts.candidates[length]), vectors.shape[1]), np.float32)
            every[places] = vectors[start:stop]
            indices = [self.texts.open_references[row] for row in rows]
            columns = [indices.index(texts.open_references[row]) for row in texts.rows_of[length]]
            cosines[length] = (every @ self.keywords[rows].T)[np.ix_(places, columns)]
            start = stop
        return cosines


_FIRST: Final = 1 / 3
"""Windows within this share of the error of the highest approximate cosine are embedded first."""
SHORTLIST = 3
"""Number of windows of each length to embed out of context."""
NEAR_TIE = 1e-3
"""A further window is also embedded if its cosine is at most this much below the last shortlisted window's cosine."""


def needs_ranking(texts: SmileTexts) -> bool:
    """Return True if any length has more windows than SHORTLIST."""
    return any(len(windows) > SHORTLIST for windows in texts.candidates.values())


def shortlist(texts: SmileTexts, tokens: TokenVectors, keywords: NDArray[np.float32]) -> dict[int, tuple[str, ...]]:
    """Return, for each length, the windows that are closest in context to a reference, sorted by position.

    If a length has more than SHORTLIST windows, return the closest SHORTLIST windows, and the windows within NEAR_TIE
    of these. Skip windows that the encoder did not read in full; if no window is left, return the first SHORTLIST
    windows. See `closest_in_context` for `keywords`.
    """
    words = WordsInContext.of(word_spans(texts.prediction, texts.windows.words), tokens)
    chosen = {}
    for length, windows in texts.candidates.items():
        if len(windows) <= SHORTLIST:
            chosen[length] = windows
            continue
        starts, vectors = words.windows(length)
        similarity = (vectors @ keywords[texts.rows_of[length]].T).max(axis=1, initial=-np.inf)
        looked_at = set(windows) if texts.windows.truncated else None
        chosen[length] = closest_texts(_window_at(texts, length, looked_at), starts, similarity) or windows[:SHORTLIST]
    return chosen


def _window_at(texts: SmileTexts, length: int, looked_at: set[str] | None) -> Callable[[int], str | None]:
    words = texts.words.words

    def window_at(start: int) -> str | None:
        text = " ".join(words[start : start + length])
        return text if looked_at is None or text in looked_at else None

    return window_at


def closest_texts(
    window_at: Callable[[int], str | None],
    starts: NDArray[np.intp],
    similarity: NDArray[np.float32],
    *,
    most: int | None = None,
) -> tuple[str, ...]:
    """Return the SHORTLIST most similar distinct windows, and windows within NEAR_TIE of these, sorted by position.

    `starts` are the indices of the windows' first words, ascending. `window_at` returns the window at an index, or None
    to skip the window. `most` is the maximum number of windows.
    """
    found: dict[str, int] = {}
    last = -np.inf
    for rank in np.argsort(-similarity, kind="stable").tolist():
        if len(found) >= SHORTLIST and (similarity[rank] < last - NEAR_TIE or len(found) == most):
            break
        start = int(starts[rank])
        text = window_at(start)
        if text is None:
            continue
        found[text] = min(found.get(text, start), start)
        if len(found) <= SHORTLIST:
            last = similarity[rank]
    return tuple(sorted(found, key=found.__getitem__))


def gather(texts: SmileTexts, parameters: SmileParameters, *, rough_error: float | None = None) -> Rounds[Similarities]:
    """Request everything that the score of `texts` needs; `rough_error` is `ModelMetadata.rough_cosine_error`."""
    if not texts.held:
        return (yield from _gather_windows(texts, parameters, None, rough_error))
    needs = sentence_needs(parameters.model, texts.prediction, texts.sentences)
    prediction, sentences = yield from ask_together(*needs)
    known = Similarities(
        sentences=_cosines(prediction.values[0], sentences),
        keywords=held_keywords(texts),
        truncated=texts.windows.truncated or is_cut(prediction, sentences),
    )
    rest = texts.with_open(can_still_win(texts, known.sentences, parameters))
    return (yield from _gather_windows(rest, parameters, known, rough_error)) if rest.open_references else known


def _gather_windows(
    texts: SmileTexts, parameters: SmileParameters, known: Similarities | None, rough_error: float | None
) -> Rounds[Similarities]:
    if parameters.preset is SmilePreset.ONE_PASS or (parameters.preset is SmilePreset.FAST and needs_ranking(texts)):
        return (yield from _in_context(texts, parameters, known))
    return (yield from _all_windows(texts, parameters, known, rough_error))


def _all_windows(
    texts: SmileTexts, parameters: SmileParameters, known: Similarities | None, rough_error: float | None
) -> Rounds[Similarities]:
    windows = texts.candidates
    every = tuple(chain.from_iterable(windows.values()))
    is_rough = rough_error is not None and _tokens_in(windows) > FEW_TOKENS
    keywords, vectors, *rest = yield from ask_together(
        Embed(parameters.model, texts.open_keywords, Tier.REFERENCE),
        EmbedRoughly(parameters.model, every) if is_rough else Embed(parameters.model, every, Tier.WINDOW),
        *(() if known else sentence_needs(parameters.model, texts.prediction, texts.sentences)),
    )
    if known is None:
        prediction, sentences = rest
        cosines = _cosines(prediction.values[0], sentences)
        known = Similarities(cosines, {}, texts.windows.truncated or is_cut(prediction, sentences))
    truncated = is_cut(keywords, vectors)
    if is_rough and rough_error is not None:
        rough = RoughCosines.of(texts, vectors.values, keywords.values, error=rough_error)
        closest = yield from _closest_of(rough, parameters, known.sentences)
    else:
        closest = closest_windows(texts, windows, vectors.values, keywords.values)
    return known.joined_by(closest, truncated=truncated)


def _tokens_in(windows: Mapping[int, Sequence[str]]) -> int:
    """Return about how many tokens windows have, by length in words."""
    return sum((length + _SPECIAL_TOKENS) * len(texts) for length, texts in windows.items())


def _closest_of(
    rough: RoughCosines, parameters: SmileParameters, sentences: Sequence[float]
) -> Rounds[dict[int, Keyword]]:
    """Return the keyword terms of the references that can win, from exact vectors of the windows that can be closest.

    The apparently closest window may be off by the error, and so may the closest one, which is therefore within twice
    the error of it. If these are many windows, some of them are embedded first. All others must then be within the
    error of an exact cosine.
    """
    error, every = rough.error, rough
    bounds = {index: (highest - error, highest + error) for index, highest in rough.highest().items()}
    rough = rough.narrowed(can_still_win(rough.texts, sentences, parameters, bounds))
    windows = rough.near(dict.fromkeys(rough.texts.open_references, 2 * error))
    if _tokens_in(windows) > _FEW_NEAR_TOKENS:
        windows = rough.near(dict.fromkeys(rough.texts.open_references, _FIRST * error))
        vectors = yield from embed_windows(parameters.model, windows)
        found = closest_of(rough.texts, windows, every.exact(rough.texts, windows, vectors.values))
        bounds = {index: (found[index].cosine, highest + error) for index, highest in rough.highest().items()}
        rough = rough.narrowed(can_still_win(rough.texts, sentences, parameters, bounds))
        margins = {index: highest + error - found[index].cosine for index, highest in rough.highest().items()}
        if all(margin <= _FIRST * error for margin in margins.values()):
            return {index: found[index] for index in margins}
        # The cache still has the vectors of the windows that were embedded first.
        windows = rough.near({index: max(margin, _FIRST * error) for index, margin in margins.items()})
    if not windows:
        return {}
    vectors = yield from embed_windows(parameters.model, windows)
    return closest_of(rough.texts, windows, every.exact(rough.texts, windows, vectors.values))


def _in_context(texts: SmileTexts, parameters: SmileParameters, known: Similarities | None) -> Rounds[Similarities]:
    keywords, (prediction,), *rest = yield from ask_together(
        Embed(parameters.model, texts.open_keywords, Tier.REFERENCE),
        EmbedTokens(parameters.model, (texts.prediction,), Tier.PREDICTION),
        *(() if known else (Embed(parameters.model, texts.sentences, Tier.REFERENCE),)),
    )
    if known is None:
        (sentences,) = rest
        cosines = _cosines(prediction.sentence, sentences)
        known = Similarities(cosines, {}, texts.windows.truncated or prediction.truncated or is_cut(sentences))
    if parameters.preset is SmilePreset.ONE_PASS:
        closest = closest_in_context(texts, prediction, keywords.values)
        return known.joined_by(closest, truncated=is_cut(keywords))
    windows = shortlist(texts, prediction, keywords.values)
    vectors = yield from embed_windows(parameters.model, windows)
    closest = closest_windows(texts, windows, vectors.values, keywords.values)
    return known.joined_by(closest, truncated=is_cut(keywords, vectors))


def embed_windows(model: str, windows: Mapping[int, Sequence[str]]) -> Rounds[Vectors]:
    """Request the vectors of windows, length by length."""
    return (yield from expect(ask(Embed(model, tuple(chain.from_iterable(windows.values())), Tier.WINDOW))))


def _cosines(prediction: NDArray[np.float32], sentences: Vectors) -> list[float]:
    found: list[float] = (sentences.values @ prediction).tolist()
    return found
