"""What is promised at twice the knee, and whether it was kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gradewire.load_testing.counts import HANGING, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.load_testing.steps import Step

_MOST_P99: Final = 2.0
_MOST_GROWTH: Final = 0.05


@dataclass(frozen=True, slots=True)
class Check:
    """A promise.

    Attributes:
        name: What is looked at.
        measured: In words.
        promised: In words.
        holds: None where it could not be measured.
    """

    name: str
    measured: str
    promised: str
    holds: bool | None

    def __str__(self) -> str:
        """One line."""
        verdict = {True: "pass", False: "FAIL", None: "not measured"}[self.holds]
        return f"{verdict}: {self.name}: {self.measured} (promised: {self.promised})"


def overload_checks(knee: Step, over: Step) -> Iterator[Check]:
    """Holds the step at twice the knee against the one at the knee."""
    if over.client_limited:
        lag = f"one call in a hundred left {over.lag_s * 1e3:.0f} ms late or more"
        yield Check("the client offers twice the knee", lag, f"<= {over.objective.max_lag_s * 1e3:.0f} ms", None)
        return
    counts = over.counts
    at_knee_s, p99_s = knee.counts.latency.percentile_s(99), counts.latency.percentile_s(99)
    yield Check(
        "p99 of admitted calls",
        f"{p99_s * 1e3:.0f} ms, {p99_s / at_knee_s:.2f} x that of the knee",
        f"<= {_MOST_P99:g} x",
        p99_s <= _MOST_P99 * at_knee_s,
    )
    others = {code: calls for code, calls in counts.codes.items() if code not in {"OK", REFUSED}}
    yield Check(
        "calls that are neither scored nor refused",
        f"{counts.failed} of {counts.due}" + (f" {others}" if others else ""),
        "0",
        counts.failed == 0,
    )
    yield Check(
        f"{REFUSED} without grpc-retry-pushback-ms",
        f"{counts.refused - counts.hinted} of {counts.refused}",
        "0",
        counts.refused == counts.hinted,
    )
    missing = counts.due - counts.codes.total() + counts.codes[HANGING]
    yield Check("calls that do not end", f"{missing} of {counts.due}", "0", missing == 0)
    if over.before is None or over.after is None:
        yield Check(
            "the server's memory",
            "no --metrics-url, or its page could not be read",
            f"grows by <= {_MOST_GROWTH:.0%}",
            None,
        )
        return
    if not over.before.resident_bytes:
        yield Check("the server's memory", "its page does not say", f"grows by <= {_MOST_GROWTH:.0%}", None)
        return
    growth = over.after.resident_bytes / over.before.resident_bytes - 1
    told = f"{over.before.resident_bytes / 2**20:.0f} -> {over.after.resident_bytes / 2**20:.0f} MiB ({growth:+.1%})"
    yield Check("the server's memory", told, f"grows by <= {_MOST_GROWTH:.0%}", growth <= _MOST_GROWTH)
