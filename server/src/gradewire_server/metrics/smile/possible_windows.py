"""Which windows can be the closest, by approximate vectors with a known error: the others need no exact vector."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.ties import TIE

FEW_WINDOWS: Final = 8
"""Up to so many windows are embedded exactly at once: a second round would cost more than it saves."""


def possibly_closest(
    texts: SmileTexts, vectors: NDArray[np.float32], keywords: NDArray[np.float32], *, error: float
) -> dict[int, tuple[str, ...]]:
    """The windows of each length that can be the closest to a reference of that length.

    With cosines that are wrong by at most `error`, the closest window is within twice the error of the one that looks
    closest; so is every window that ties with it.

    Args:
        texts: The item's texts.
        vectors: float32[windows of `texts.candidates`, dims], approximate, rows of length 1, in their order.
        keywords: float32[asked, dims], e(N(r)) of the references in `texts.asked`, exact, rows of length 1.
        error: Largest error of a cosine of the two.

    Returns:
        Window length to distinct texts in order of position, at least one each.
    """
    possible = {}
    start = 0
    for length, windows in texts.candidates.items():
        cosines = vectors[start : start + len(windows)] @ keywords[texts.rows_of[length]].T
        start += len(windows)
        near = (cosines >= cosines.max(axis=0) - 2 * error - TIE).any(axis=1)
        possible[length] = tuple(windows[index] for index in np.flatnonzero(near).tolist())
    return possible
