"""Latencies in an HdrHistogram: three digits from a microsecond to an hour, mergeable over processes.

The library has no types; this is the one module that knows it.
"""

from __future__ import annotations

import math
from typing import Any

from hdrh.histogram import HdrHistogram

_LOWEST_US, _HIGHEST_US, _DIGITS = 1, 3_600_000_000, 3
# Percentiles of the curve: each step halves what is left above.
_HALVINGS = 18


class Latencies:
    """Counts latencies; beyond an hour they count as an hour."""

    def __init__(self) -> None:
        self._histogram: Any = HdrHistogram(_LOWEST_US, _HIGHEST_US, _DIGITS)

    def __len__(self) -> int:
        return int(self._histogram.get_total_count())

    def record(self, latency_s: float) -> None:
        """Counts one; less than a microsecond counts as none."""
        self._histogram.record_value(min(max(0, round(latency_s * 1e6)), _HIGHEST_US))

    def add(self, other: Latencies) -> None:
        """Adds those of another; `other` stays as it is."""
        self._histogram.add(other._histogram)

    def percentile_s(self, percentile: float) -> float:
        """The latency below or at which so many of 100 lie, seconds, within a thousandth; NaN where there are none."""
        if not len(self):
            return float("nan")
        return float(self._histogram.get_value_at_percentile(self._whole_rank(percentile))) / 1e6

    @property
    def max_s(self) -> float:
        """The largest, within a thousandth, seconds; NaN where there are none."""
        return self.percentile_s(100.0)

    def curve(self) -> list[tuple[float, float]]:
        """Percentiles with their latencies, seconds: 0, 50, 75, 87.5, … as far as there are calls; then 100."""
        if not len(self):
            return []
        halvings = range(min(_HALVINGS, len(self).bit_length()))
        wanted = [100 - 100 / 2**place for place in halvings] + [100.0]
        ranks = [self._whole_rank(percentile) for percentile in wanted]
        found = self._histogram.get_percentile_to_value_dict(ranks)
        return [(percentile, found[rank] / 1e6) for percentile, rank in zip(wanted, ranks, strict=True)]

    def _whole_rank(self, percentile: float) -> float:
        # HdrHistogram rounds to the nearest rank: of 60 calls p99 would be the slowest but one.
        return min(100.0, math.ceil(percentile / 100 * len(self) - 1e-9) / len(self) * 100)

    def __getstate__(self) -> bytes:
        """HdrHistogram's own compressed form."""
        encoded: bytes = self._histogram.encode()
        return encoded

    def __setstate__(self, state: bytes) -> None:
        # What `decode` gives has only as many places as were used, and counts no further.
        self._histogram = HdrHistogram(_LOWEST_US, _HIGHEST_US, _DIGITS)
        self._histogram.decode_and_add(state)
