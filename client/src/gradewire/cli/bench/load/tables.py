"""The tables of a load run, and what is said below them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gradewire.cli.url_keys import without_keys
from gradewire.load_testing.knee import Outcome
from gradewire.load_testing.steps import PERCENTILES
from gradewire.tables import Table, Value, count

if TYPE_CHECKING:
    from gradewire.cli.bench.load.options import LoadOptions
    from gradewire.load_testing.knee import Knee
    from gradewire.load_testing.run import LoadResult
    from gradewire.load_testing.steps import Step

_VERDICTS: Final = {
    Outcome.HOLDS: "keeps up",
    Outcome.MISSES: "does not keep up",
    Outcome.VOID: "void: client late",
    Outcome.LOST: "no answer",
    Outcome.STOPPED: "partial",
}
_SERVER_HEADS: Final = (
    "scored\nitems/s", "CPU ms\nper item", "texts from\nthe cache", "MiB before", "MiB after", "predicted\nwait ms",
    "items in\nwork", "load",
)  # fmt: skip


def step_tables(result: LoadResult) -> list[Table]:
    """Latency of every step, by rate; and what it cost the server, where it was asked."""
    steps = sorted(result.steps, key=lambda step: (step.rate_per_s, step.over_knee))
    heads = [f"p{place:g}" for place in PERCENTILES]
    latency = Table(
        "Latency of scored calls from when they were due (ms), by offered rate",
        ["calls/s", "step", *heads, "max", "calls", "scored\nin time", "refused", "failed", "client lag\np99"],
        [[*_heads(step, result), *_latency_cells(step)] for step in steps],
        heads=2,
    )
    if all(step.before is None for step in steps):
        return [latency]
    server = Table(
        "The server in every step",
        ["calls/s", "step", *_SERVER_HEADS],
        [[*_heads(step, result), *_server_cells(step)] for step in steps],
        heads=2,
    )
    return [latency, server]


def load_notes(result: LoadResult, given: LoadOptions) -> list[str]:
    """What was found, the checks at twice the knee, and how it was measured."""
    notes = []
    if result.stopped:
        notes.append("PARTIAL: the run was interrupted; the figures are of what was measured until then")
    elif result.error:
        notes.append(f"PARTIAL: the run broke off ({result.error}); the figures are of what was measured until then")
    if result.knee is not None:
        notes.append(_knee_note(result.knee, result.knee_step))
    elif any(step.is_lost for step in result.steps):
        notes.append("NO RESULT: the server could not be reached (UNAVAILABLE): look at its log")
    elif any(step.client_limited for step in result.steps):
        notes.append("NO RESULT: the client was the bottleneck (see its lag): give more --client-processes")
    notes += [f"at twice the knee: {check}" for check in result.checks]
    if result.unread:
        notes.append(
            f"the server's page of metrics could not be read {len(result.unread)} times, and steps lack its figures "
            f"there; the last time: {without_keys(result.unread[-1])}"
        )
    if given.own_rows is not None and result.missing_rows:
        notes.append(_missing_rows_note(result, given, len(given.own_rows.encoded)))
    setup = given.setup
    notes.append(
        f"{given.plan.arrivals if given.arrivals is None else 'replayed'} arrivals, {setup.batch} answers a call, "
        f"{setup.call} calls, deadline {setup.deadline_s:g} s; {given.processes} client processes with "
        f"{setup.connections} connections each; metrics {', '.join(given.metrics.labels)}; seed {given.plan.seed}"
    )
    if loads := [step.load for step in result.steps if not math.isnan(step.load)]:
        notes.append(f"load average of this machine {min(loads):.1f} to {max(loads):.1f}, the run's own included")
    return notes


def _missing_rows_note(result: LoadResult, given: LoadOptions, rows: int) -> str:
    sent = sum(step.counts.sent_items for step in result.steps)
    repeated = sum(step.counts.repeated for step in result.steps)
    return (
        f"too few rows: {' '.join(given.rows_from)} has {rows} and this run needs about {rows + result.missing_rows}, "
        f"so {repeated / max(1, sent):.0%} of the answers that were measured had been sent before and cost the server "
        "less: give more rows, or measure one --rate for a shorter --duration"
    )


def verdict(step: Step, result: LoadResult) -> str:
    """What a step showed, in words."""
    if step.over_knee and step.outcome is not Outcome.VOID:
        return "twice the knee"
    return "the knee" if step is result.knee_step else _VERDICTS[step.outcome]


def _knee_note(knee: Knee, step: Step | None) -> str:
    if step is None:
        return _no_knee_note(knee)
    rates = f"{step.rate_per_s:.4g} calls/s, {step.rate_per_s * step.batch:.4g} answers/s"
    if knee.lost:
        return f"NO RESULT: it kept up with {rates}, then it could not be reached any more (UNAVAILABLE): see its log"
    if knee.client_limited:
        return f"NO RESULT: beyond {rates} the client was the bottleneck, so the knee is higher"
    highest = "; no higher rate was tried (--max-rate)" if knee.at_most else ""
    return f"the knee: {rates} ({step.objective.told}){highest}"


def _no_knee_note(knee: Knee) -> str:
    if knee.lost:
        return "NO RESULT: the server could not be reached any more (UNAVAILABLE): look at its log"
    if knee.stopped:
        return "no knee: the run was interrupted before the server kept up with a rate"
    if knee.client_limited:
        return "NO RESULT: the client was the bottleneck at every rate: give more --client-processes"
    return "no knee: the server kept up with no rate that was tried"


def _heads(step: Step, result: LoadResult) -> list[Value | str]:
    return [Value(f"{step.rate_per_s:.4g}", step.rate_per_s), verdict(step, result)]


def _latency_cells(step: Step) -> list[Value | str]:
    counts = step.counts
    return [
        *(_ms(counts.latency.percentile_s(place)) for place in PERCENTILES),
        _ms(counts.latency.max_s),
        count(counts.due),
        _share(step.share(counts.in_time)),
        _share(step.share(counts.refused)),
        _share(step.share(counts.failed)),
        _ms(step.lag_s),
    ]


def _server_cells(step: Step) -> list[Value | str]:
    before, after = step.before, step.after
    if before is None or after is None:
        return [_number(math.nan, 0)] * len(_SERVER_HEADS)
    return [
        _number(step.scored_per_s * step.batch, 1),
        _number(step.server_cpu_s_per_item * 1e3, 3),
        _share(step.hit_rate),
        _number(before.resident_bytes / 2**20, 0),
        _number(after.resident_bytes / 2**20, 0),
        _number(after.admission_wait_s * 1e3, 0),
        _number(after.items_in_flight, 0),
        _number(step.load, 1),
    ]


def _ms(seconds: float) -> Value:
    return _number(seconds * 1e3, 1)


def _share(share: float) -> Value:
    return Value("-" if math.isnan(share) else f"{share:.2%}", share)


def _number(value: float, digits: int) -> Value:
    return Value("-" if math.isnan(value) else f"{value:.{digits}f}", value)
