"""What the page of a load run is made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradewire.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """A step.

    Attributes:
        name: Rate and verdict, in words.
        rate_per_s: Calls per second that were offered.
        is_knee: Whether it is the highest rate that held.
        over_knee: Whether it is the one at twice that.
        curve: Percentiles (0 to 100, ascending) with the latency of scored calls, seconds.
        p50_s: Of the same; NaN where none was scored, as `p99_s`.
        p99_s: Of the same.
        scored_per_s: Calls per second that were scored in time.
        refused_share: Of the offered calls.
        lag_p99_s: How late the client sent.
    """

    name: str
    rate_per_s: float
    is_knee: bool
    over_knee: bool
    curve: Sequence[tuple[float, float]]
    p50_s: float
    p99_s: float
    scored_per_s: float
    refused_share: float
    lag_p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInput:
    """A load run.

    Attributes:
        source: The server, as the headline names it.
        created: Date for the headline; the page reads no clock.
        notes: What was found, and how, in sentences.
        checks: Promises at twice the knee, in words, and whether they were kept; None: not measured.
        slo_s: Most that p99 may be at the knee.
        steps: In the order in which they were measured.
        tables: All figures.
    """

    source: str
    created: str
    notes: Sequence[str]
    checks: Sequence[tuple[str, bool | None]]
    slo_s: float
    steps: Sequence[LoadStep]
    tables: Sequence[Table]
