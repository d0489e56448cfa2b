"""Preset `fast`: one encoder pass over the prediction ranks its windows, and only the closest few are embedded alone.

SMILE's cost is its windows; the shortlist agrees with humans as well as all windows do (docs/scores.md).
"""

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import TokenVectors
from gradewire_server.metrics.smile_texts import SmileTexts
from gradewire_server.metrics.words import word_spans

SHORTLIST = 3
"""Windows per length that are embedded alone."""
NEAR_TIE = 1e-3
"""Cosine; windows this close to the last of the shortlist are embedded too, so that no near-tie decides."""


def needs_ranking(texts: SmileTexts) -> bool:
    """Whether any length has more windows than are embedded alone."""
    return any(len(windows) > SHORTLIST for windows in texts.candidates.values())


def shortlist(texts: SmileTexts, tokens: TokenVectors, keywords: NDArray[np.float32]) -> dict[int, tuple[str, ...]]:
    """The windows of each length that are closest in context to any reference of that length.

    A window's vector in context is the mean of the vectors of its words' tokens. Windows with a word that has no token
    (the encoder did not read so far) are left out; where that leaves none of a length, its first ones are taken.

    Args:
        texts: The item's texts.
        tokens: Token vectors of the raw prediction.
        keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, rows of length 1.

    Returns:
        Window length to distinct texts in order of position: all of them where there are at most SHORTLIST, else
        SHORTLIST and those within NEAR_TIE of the last.
    """
    sums, bounds = _running_sums(tokens, word_spans(texts.prediction, texts.windows.words))
    read = np.concatenate(([0], np.cumsum(bounds[1:] > bounds[:-1])))
    chosen = {}
    for length, windows in texts.candidates.items():
        if len(windows) <= SHORTLIST:
            chosen[length] = windows
            continue
        # Only windows whose words were all read; the others would be judged by a part of themselves.
        starts = np.flatnonzero(read[length:] - read[:-length] == length)
        vectors = sums[bounds[starts + length]] - sums[bounds[starts]]
        closest = (vectors @ keywords[texts.rows_of[length]].T).max(axis=1, initial=-np.inf)
        similarity = closest / np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        chosen[length] = _closest(texts, length, starts, similarity) or windows[:SHORTLIST]
    return chosen


def _running_sums(tokens: TokenVectors, spans: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Sums of the first i vectors of tokens that belong to a word, and where each word's tokens begin among them.

    Returns:
        float32[tokens of words + 1, dims] and intp[words + 1].
    """
    begin, end = tokens.offsets[:, 0], tokens.offsets[:, 1]
    word = np.searchsorted(spans[:, 1], begin, side="right")
    inside = (word < len(spans)) & (end > begin)
    inside[inside] = spans[word[inside], 0] < end[inside]
    bounds = np.searchsorted(word[inside], np.arange(len(spans) + 1))
    sums = np.zeros((int(inside.sum()) + 1, tokens.tokens.shape[1]), dtype=np.float32)
    np.cumsum(tokens.tokens[inside], axis=0, out=sums[1:])
    return sums, bounds


def _closest(
    texts: SmileTexts, length: int, starts: NDArray[np.intp], similarity: NDArray[np.float32]
) -> tuple[str, ...]:
    """Distinct texts with the highest `similarity`, in order of position; none where `starts` is empty."""
    words = texts.words.words
    looked_at = set(texts.windows.by_length[length]) if texts.windows.truncated else None
    found: dict[str, int] = {}
    last = -np.inf
    for rank in np.argsort(-similarity, kind="stable").tolist():
        if len(found) >= SHORTLIST and similarity[rank] < last - NEAR_TIE:
            break
        start = int(starts[rank])
        text = " ".join(words[start : start + length])
        if looked_at is not None and text not in looked_at:
            continue
        found[text] = min(found.get(text, start), start)
        if len(found) <= SHORTLIST:
            last = similarity[rank]
    return tuple(sorted(found, key=found.__getitem__))
