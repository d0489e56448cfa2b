"""The quality of a fit by the number of its labels, on questions that the fit has not seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import one_blas_thread

SIZES: Final = (50, 100, 200, 400, 800, 1600, 3200)
FOLDS: Final = 10
DRAWS: Final = 20
_SPREAD: Final = (10.0, 90.0)
"""Percentiles over the draws."""

Predict = Callable[[NDArray[np.bool_], NDArray[np.bool_]], NDArray[np.float64]]
"""Fit to the rows of the first mask (bool[rows]), and return values for the rows of the second, float64[read rows].

It raises ValueError if these rows do not allow a fit.
"""
Quality = Callable[[NDArray[np.float64], NDArray[np.bool_]], float]
"""Return a statistic of values, float64[rows], and of human labels, bool[rows]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRows:
    """Labelled rows.

    Attributes:
        right: bool[rows], human labels.
        keys: Each row's question key. A fit never reads a row whose question it has seen.
        added: bool[rows], True for the rows to draw from and to measure on. Every fit uses all other rows.
    """

    right: NDArray[np.bool_]
    keys: Sequence[str]
    added: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spread:
    """A statistic over several draws: the mean, and the 10th and 90th percentile. NaN without a usable draw."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The quality of fits to some labels.

    Attributes:
        labels: Number of drawn labels.
        draws: Number of draws that allowed a fit.
        values: Statistics by name.
    """

    labels: int
    draws: int
    values: Mapping[str, Spread]


def learning_curve(  # noqa: PLR0913 - the fit, the rows, the statistics, and three numbers
    predict: Predict,
    rows: CurveRows,
    statistics: Mapping[str, Quality],
    *,
    draws: int = DRAWS,
    folds: int = FOLDS,
    seed: int = 0,
) -> list[CurvePoint]:
    """Return the quality of fits to 50, 100, 200 … labels, and to all labels.

    Each draw shuffles the added rows, and deals their questions into parts. For each part, a fit uses the first labels
    of the draw and all rows that were not added, except rows with a question of this part. So with ten parts, a fit to
    n labels uses about nine tenths of them, and every point of the curve is measured on all added rows.

    Args:
        predict: Fits and reads.
        rows: At least two questions with added rows.
        statistics: Statistics by name.
        draws: Number of draws.
        folds: Number of parts, at least 2. Fewer parts are faster.
        seed: Seed of the draws.

    Returns:
        A point for each number of labels, in ascending order. The first has 0 labels if not all rows were added.
        Draws in which some part allows no fit do not count.

    Raises:
        ValueError: There are fewer than two questions with added rows.
        MissingScipyError: threadpoolctl is not installed.
    """
    places = np.flatnonzero(rows.added)
    codes = {key: code for code, key in enumerate(dict.fromkeys(rows.keys))}
    keys = np.array([codes[key] for key in rows.keys], dtype=np.intp)
    questions, number = np.unique(keys[places], return_inverse=True)
    if len(questions) < 2:
        raise ValueError("a learning curve needs labels of at least two questions")
    folds = min(folds, len(questions))
    sizes = ([] if rows.added.all() else [0]) + [size for size in SIZES if size < len(places)] + [len(places)]
    found: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    with one_blas_thread():  # hundreds of small fits, for which threads cost more than they gain
        for draw in range(draws):
            generator = np.random.default_rng([seed, draw])
            order = generator.permutation(places)
            part = generator.permutation(len(questions))[number] % folds
            for size in sizes:
                if size == 0 and draw:
                    continue  # the same fits in each draw
                values = _held_out(predict, rows, keys, drawn=order[:size], part=part)
                if values is not None:
                    right = rows.right[places]
                    found[size].append({name: of(values, right) for name, of in statistics.items()})
    return [CurvePoint(size, len(drawn), _spreads(drawn, statistics)) for size, drawn in found.items()]


def _held_out(
    predict: Predict, rows: CurveRows, keys: NDArray[np.intp], *, drawn: NDArray[np.intp], part: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Return the values of all added rows, float64[added rows], or None if the rows of some part allow no fit."""
    places = np.flatnonzero(rows.added)
    used = ~rows.added
    used[drawn] = True
    values = np.empty(len(places))
    for number in range(int(part.max()) + 1):
        read = np.zeros(len(used), dtype=np.bool_)
        read[places[part == number]] = True
        fitted_on = used & ~np.isin(keys, keys[read])
        try:
            values[part == number] = predict(fitted_on, read)
        except ValueError:
            return None
    return values


def _spreads(drawn: Sequence[Mapping[str, float]], names: Mapping[str, object]) -> dict[str, Spread]:
    found = {}
    for name in names:
        values = np.array([each[name] for each in drawn if np.isfinite(each[name])])
        low, high = np.percentile(values, _SPREAD) if len(values) else (np.nan, np.nan)
        found[name] = Spread(float(values.mean()) if len(values) else np.nan, float(low), float(high))
    return found
