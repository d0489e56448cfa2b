"""Preset `fast`: one encoder pass over the prediction ranks its windows, and only the closest few are embedded alone.

SMILE's cost is its windows; the shortlist agrees with humans as well as all windows do (docs/research/agreement.md).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import TokenVectors
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.smile.words_in_context import WordsInContext
from gradewire_server.metrics.text.smile_normalise import word_spans

SHORTLIST = 3
"""Windows per length that are embedded alone."""
NEAR_TIE = 1e-3
"""Cosine; windows this close to the last of the shortlist are embedded too, so that no near-tie decides."""


def needs_ranking(texts: SmileTexts) -> bool:
    """Whether any length has more windows than are embedded alone."""
    return any(len(windows) > SHORTLIST for windows in texts.candidates.values())


def shortlist(texts: SmileTexts, tokens: TokenVectors, keywords: NDArray[np.float32]) -> dict[int, tuple[str, ...]]:
    """The windows of each length that are closest in context to any reference of that length.

    Windows with a word that has no token (the encoder did not read so far) are left out; where that leaves none of a
    length, its first ones are taken.

    Args:
        texts: The item's texts.
        tokens: Token vectors of the raw prediction.
        keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, rows of length 1.

    Returns:
        Window length to distinct texts in order of position: all of them where there are at most SHORTLIST, else
        SHORTLIST and those within NEAR_TIE of the last.
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
    """The windows with the highest `similarity`: SHORTLIST distinct texts, and those within NEAR_TIE of the last.

    Args:
        window_at: The window that begins at a word; None where it is not looked at.
        starts: intp[windows], the words at which they begin, ascending.
        similarity: float32[windows].
        most: Texts that are taken, the closest ones; None: as many as there are.

    Returns:
        Distinct texts in order of position; none where `starts` is empty.
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
