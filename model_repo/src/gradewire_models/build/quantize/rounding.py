"""Weights as 8-bit integers, one scale a column."""

import numpy as np
from numpy.typing import NDArray

Array64 = NDArray[np.float64]
Codes = NDArray[np.int8]

_LEVELS = 127
_DAMPING = 0.01
_BLOCK = 64


def round_to_nearest(weight: Array64) -> tuple[Codes, NDArray[np.float32]]:
    """Rounds each weight to the nearest step.

    Args:
        weight: float64 [inputs, outputs].

    Returns:
        int8 [inputs, outputs] in [-127, 127], and float32 [outputs], the step of each column.
    """
    steps = _steps(weight)
    return _codes(weight / steps), steps


def round_with_gram(weight: Array64, rows: Array64) -> tuple[Codes, NDArray[np.float32]]:
    """Rounds input by input and makes up for each error in the inputs that are still to come.

    The error that counts is that of the product on `rows`, not that of the weights (Frantar et al. 2023, GPTQ: the
    same update, from the Cholesky factor of the inverse of the inputs' Gram matrix; largest inputs first).

    Args:
        weight: float64 [inputs, outputs].
        rows: float64 [tokens, inputs], what enters the product.

    Returns:
        As `round_to_nearest`.
    """
    steps = _steps(weight)
    gram = rows.T @ rows
    power = np.diag(gram)
    damped = gram + np.diag(np.full(len(gram), max(_DAMPING * float(power.mean()), 1e-12)))
    order = np.argsort(-power, kind="stable")
    factor = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    left = weight[order]
    codes = np.empty(weight.shape, np.int8)
    for start in range(0, len(order), _BLOCK):
        end = min(start + _BLOCK, len(order))
        errors = np.empty((end - start, weight.shape[1]))
        for place in range(start, end):
            row = _codes(left[place] / steps)
            codes[order[place]] = row
            errors[place - start] = (left[place] - row * steps.astype(np.float64)) / factor[place, place]
            left[place + 1 : end] -= np.outer(factor[place, place + 1 : end], errors[place - start])
        left[end:] -= factor[start:end, end:].T @ errors
    return codes, steps


def _steps(weight: Array64) -> NDArray[np.float32]:
    steps: NDArray[np.float32] = (np.maximum(np.abs(weight).max(axis=0), 1e-12) / _LEVELS).astype(np.float32)
    return steps


def _codes(values: Array64) -> Codes:
    return np.clip(np.rint(values), -_LEVELS, _LEVELS).astype(np.int8)
