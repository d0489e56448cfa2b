"""How unlike the fitted rows an item is, by numbers that say what kind of item it is (`Shape`).

The distance is the mean one to the closest of some fitted rows, in units of how far the numbers spread. It says nothing
of how well an answer matches: a better match never moves an item away from what a fit knows.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

KEPT_ROWS: Final = 384
"""Rows that stand for all of them in a fit, the same number of each source."""
NEAREST: Final = 4
_LEAST_SPREAD: Final = 0.25
_AT_ONCE: Final = 2048
_DIGITS: Final = 4


def scales(shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[numbers], how far each of float64[rows, numbers] spreads; not below 0.25."""
    found: NDArray[np.float64] = np.maximum(shapes.std(axis=0), _LEAST_SPREAD).round(_DIGITS)
    return found


def neighbourhood(
    shapes: NDArray[np.float64], scale: NDArray[np.float64], keys: Sequence[str], sources: Sequence[str]
) -> dict[str, Any]:
    """What of the rows a fit keeps to tell how unlike another item is.

    Args:
        shapes: float64[rows, numbers], finite.
        scale: float64[numbers], of `scales`: the units of distances.
        keys: Of the rows' questions: rows are drawn in the order of their hashes.
        sources: Of the rows; of each the same number is drawn, as far as it has them.

    Returns:
        `scale`, one for each number, `rows`, in units of it, and `nearest`.
    """
    order = sorted(range(len(keys)), key=lambda row: (blake2b(f"{keys[row]}\0{row}".encode()).digest(), row))
    named = sorted(set(sources))
    each = max(1, KEPT_ROWS // len(named))
    drawn = [row for source in named for row in [row for row in order if sources[row] == source][:each]]
    rows = (shapes[drawn] / scale).round(_DIGITS)
    return {"scale": scale.tolist(), "rows": rows.tolist(), "nearest": min(NEAREST, len(drawn))}


def distances(kept: Mapping[str, Any], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[rows], how far float64[rows, numbers] are from what `neighbourhood` kept."""
    scaled, rows = shapes / np.array(kept["scale"]), np.array(kept["rows"])
    nearest = min(int(kept["nearest"]), len(rows))
    found = [np.empty(0)]
    for start in range(0, len(scaled), _AT_ONCE):
        mine = scaled[start : start + _AT_ONCE]
        # |a - b|^2 = a^2 + b^2 - 2ab, as matrices: differences of all pairs would take ten times as long.
        squares = (mine**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * mine @ rows.T
        closest = np.partition(squares, nearest - 1, axis=1)[:, :nearest]
        found.append(np.sqrt(np.maximum(closest, 0.0)).mean(axis=1))
    return np.concatenate(found)


def ramp(found: NDArray[np.float64], near: float, far: float) -> NDArray[np.float64]:
    """float64[rows], 0 up to the distance `near`, 1 from the larger one `far`, a straight line between them."""
    return ((found - near) / (far - near)).clip(0.0, 1.0)
