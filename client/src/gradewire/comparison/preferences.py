"""Which of two answers a metric prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TieMargin = float | Literal["verdict"]
"""Scores that differ by this much or less are a tie; `verdict`: answers with the same verdict are."""
TIE_MARGIN: Final = 0.2
"""In units of the score: what smile and correctness keep most of people's ties with (docs/guides/compare-runs.md)."""
# Differences of scores carry their rounding: 0.5 - 0.3 is more than 0.2.
_ROUNDING = 1e-9


def preferences(
    scores: NDArray[np.float64], verdicts: NDArray[np.float64], tie_margin: TieMargin
) -> NDArray[np.float64]:
    """Which answer of each pair is preferred.

    Args:
        scores: float64[pairs, 2], of the baseline's answer and of the candidate's; NaN for none.
        verdicts: float64[pairs, 2], 1 right, 0 wrong; NaN for none.
        tie_margin: In units of the score, 0 or more; or `verdict`.

    Returns:
        float64[pairs]: 1 where the candidate's answer is preferred, -1 where the baseline's is, 0 for a tie, NaN where
        one of them has no score (with `verdict`: no verdict).
    """
    apart = (verdicts if tie_margin == "verdict" else scores) @ np.array([-1.0, 1.0])
    margin = 0.0 if tie_margin == "verdict" else tie_margin + _ROUNDING
    return np.where(np.abs(apart) <= margin, 0.0, np.sign(apart))
