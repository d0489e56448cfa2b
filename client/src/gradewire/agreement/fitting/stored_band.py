"""Where a stored fit trusts no verdict, for many rows: what a server computes of the form for one."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.stored_evaluation import far_shares
from gradewire.agreement.point_estimates import RIGHT_FROM

MISTAKEN_FROM: Final = 0.5
MISTAKEN_SLOPE: Final = 1.25
"""At confidence c the rows in the band hold (c - 1/2) 5/4 of the wrong verdicts and more: half of them at 0.9."""
_ROUNDING: Final = 1e-9


def uncertain(
    form: Mapping[str, Any], probabilities: NDArray[np.float64], confidence: float, shapes: NDArray[np.float64] | None
) -> NDArray[np.bool_]:
    """Which verdicts lie in the band.

    Args:
        form: Of `fit_form`.
        probabilities: float64[rows], of `probabilities`.
        confidence: From 0.5 to below 1.
        shapes: float64[rows, numbers]; None: all rows are near.

    Returns:
        bool[rows].
    """
    near = _band(form["conformal"], confidence)
    far = _band(form["far"]["conformal"], confidence) if "far" in form else (0.0, 1.0)
    share = far_shares(form, shapes) if shapes is not None else np.zeros(len(probabilities))
    lower = near[0] - share * (near[0] - min(near[0], far[0]))
    upper = near[1] + share * (max(near[1], far[1]) - near[1])
    return (probabilities >= lower) & (probabilities <= upper)


def _band(conformal: Mapping[str, Any], confidence: float) -> tuple[float, float]:
    lower = _value(conformal["right"], 1 - confidence, 0.0)
    upper = _value(conformal["wrong"], 1 - confidence, 1.0)
    held = MISTAKEN_SLOPE * (confidence - MISTAKEN_FROM)
    edge = _value(conformal["mistaken"], 1 - held, 1.0) if held > 0 and "mistaken" in conformal else RIGHT_FROM
    return min(lower, 1 - edge, RIGHT_FROM), max(upper, edge, RIGHT_FROM)


def _value(ranks: Mapping[str, Any], beyond: float, none: float) -> float:
    """The value that at most the share `beyond` of its rows lies beyond; `none` where they are too few to say."""
    most = int(beyond * (ranks["count"] + 1) + _ROUNDING)
    row = int(np.searchsorted(ranks["ranks"], most, side="right")) - 1
    return float(ranks["values"][row]) if row >= 0 else none
