"""The outputs of `gradewire bench load`: table, notes, JSON, HTML page and manifest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from gradewire_cli.bench.load.calls import CONNECTIONS, StepCounts
from gradewire_cli.bench.load.run import PERCENTILES, Knee, LoadResult, Outcome, Step
from gradewire_cli.pages.charts import BOTTOM, LEFT, RIGHT, TOP, Axis, Chart, Dot, Label, Mark, Path, axes, line, upward
from gradewire_cli.pages.page import Block, Charts, Heading, Page, Paragraph, Section, ShownTable, today
from gradewire_cli.pages.texts import ShownText, cut
from gradewire_cli.problems import redacted
from gradewire_cli.results.manifest import RunCounts, RunManifest
from gradewire_cli.results.manifest_entries import digests_of, metric_fields, versions
from gradewire_cli.results.tables import Table, Value, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire_cli.bench.load.processes import LoadOptions
    from gradewire_cli.results.manifest_entries import RunClock

_VERDICTS: Final = {
    Outcome.HOLDS: "keeps up",
    Outcome.MISSES: "does not keep up",
    Outcome.VOID: "void: client late",
    Outcome.LOST: "no answer",
    Outcome.STOPPED: "partial",
}
_NOTE_CHARACTERS: Final = 1000
_MANY_LOST: Final = 0.01
_CHECKS: Final = {None: "unmeasured", True: "kept", False: "broken"}
_PROMISE: Final = "at twice the knee: "


def step_table(result: LoadResult) -> Table:
    """Return the table of all steps by rate."""
    heads = ["calls/s", "step", *(f"p{each:g}" for each in PERCENTILES), "max", "calls", "scored\nin time"]
    heads += ["refused", "failed", "client lag\np99"]
    with_server = any(step.before is not None for step in result.steps)
    if with_server:
        heads += ["server CPU\nper item", "server MiB\nbefore", "server MiB\nafter"]
    rows = []
    for step in sorted(result.steps, key=lambda step: (step.rate_per_s, step.over_knee)):
        counts = step.counts
        row: list[Value | str] = [Value(f"{step.rate_per_s:.4g}", step.rate_per_s), _verdict(step, result)]
        row += [_ms(step.latency_s(each)) for each in PERCENTILES]
        row += [_ms(step.latency_s(100)), count(counts.due)]
        row += [_share(step.share(calls)) for calls in (counts.in_time, counts.refused, counts.failed)]
        row.append(_ms(step.lag_s))
        if with_server:
            sizes = [math.nan if each is None else each.resident_bytes for each in (step.before, step.after)]
            row += [_ms(step.server_cpu_s_per_item, 3), *(_number(size / 2**20, 0) for size in sizes)]
        rows.append(row)
    return Table("Latency of scored calls from their due time (ms), by offered rate", heads, rows, heads=2)


def load_notes(result: LoadResult, given: LoadOptions) -> list[str]:
    """Return sentences on the result, the checks, and the settings."""
    notes = []
    if result.stopped:
        notes.append("PARTIAL: the run was interrupted. Values cover only the completed steps")
    elif result.error:
        notes.append(f"PARTIAL: the run failed ({result.error}). Values cover only the completed steps")
    if result.knee is not None:
        notes.append(_knee_note(result.knee, result.knee_step))
    elif any(step.is_lost for step in result.steps):
        notes.append("NO RESULT: the server was unavailable. Check its log")
    elif any(step.client_limited for step in result.steps):
        notes.append(
            "NO RESULT: the client was the bottleneck (see client lag). Use more --client-processes"
            + "".join(map(_overload_note, result.steps))
        )
    else:
        notes += [
            f"{'kept up with' if step.outcome is Outcome.HOLDS else 'DID NOT KEEP UP with'} {step.rate_per_s:.4g} "
            f"calls/s ({step.objective})"
            for step in result.steps
            if step.outcome is not Outcome.STOPPED
        ]
    notes += [f"{_PROMISE}{check}" for check in result.checks]
    if result.unread:
        notes.append(f"the server's metrics page became unreadable: {redacted(result.unread)}")
    if _items_beyond_file_rows(result, given):
        notes.append(_missing_rows_note(result, given))
    notes.append(
        f"{given.batch} answers per call, deadline {given.deadline_s:g} s; {given.client_processes} client processes, "
        f"each with {CONNECTIONS} connections to every server process; metrics "
        f"{', '.join(given.metrics.labels)}; seed {given.seed}"
    )
    if loads := [step.load for step in result.steps if not math.isnan(step.load)]:
        notes.append(f"load average of this machine: {min(loads):.1f} to {max(loads):.1f}, including this run")
    return notes


def document_of(result: LoadResult, given: LoadOptions, lines: Mapping[str, str]) -> dict[str, Any]:
    """Return all values for JSON. Times are in seconds."""
    knee, step = result.knee, result.knee_step
    return {
        "partial": result.is_partial,
        "error": result.error or None,
        "server": given.endpoint.address,
        "metrics": dict(lines),
        "parameters": given.parameters,
        "file_rows": given.file_rows,
        "missing_rows": _items_beyond_file_rows(result, given),
        "metrics_page_unread": redacted(result.unread) or None,
        "objective": given.objective,
        "knee": knee
        and {
            "calls_per_s": knee.rate_per_s,
            "answers_per_s": step and step.rate_per_s * step.batch,
            "client_limited": knee.client_limited,
            "at_most": knee.at_most,
            "lost": knee.lost,
        },
        "checks": result.checks,
        "steps": [each.document() for each in result.steps],
    }


def load_page(result: LoadResult, given: LoadOptions, table: Table, notes: Sequence[str]) -> Page:
    """Return the HTML page."""
    source = ShownText(cut(given.endpoint.address, _NOTE_CHARACTERS))
    found: list[Block] = [
        Paragraph((ShownText(cut(note, _NOTE_CHARACTERS)),)) for note in notes if not note.startswith(_PROMISE)
    ]
    if result.checks:
        found.append(Heading(("At twice the knee",)))
        found += [Paragraph((cut(str(check), _NOTE_CHARACTERS),), _CHECKS[check.holds]) for check in result.checks]
    chart = latency_chart(result)
    plot = Charts([chart], "wide") if chart is not None else Paragraph(("Nothing was measured.",))
    return Page(
        title=f"Load on {source.before}",
        heading=("Load on ", source),
        lead=(f"{today()}: {len(result.steps)} steps",),
        sections=[
            Section("found", ("Result",), found),
            Section("plot", ("Latency by offered rate",), [plot]),
            Section("steps", ("Steps",), [ShownTable("t-steps", table)]),
        ],
    )


def latency_chart(result: LoadResult) -> Chart | None:
    """Return a chart of p50 and p99 by offered rate, or None if no call was scored.

    If a rate was tried twice, the chart shows the second try.
    """
    by_rate = {(step.rate_per_s, step.over_knee): step for step in result.steps if step.counts.latency_s}
    steps = sorted(by_rate.values(), key=lambda step: step.rate_per_s)
    if not steps:
        return None
    slo_ms = 1e3 * result.steps[0].objective.p99_s
    values = {
        name: [1e3 * step.latency_s(percentile) for step in steps] for name, percentile in (("p99", 99), ("p50", 50))
    }
    low = 10.0 ** math.floor(math.log10(max(min(*values["p50"], slo_ms), 1e-3)))
    high = 10.0 ** math.ceil(math.log10(max(*values["p99"], slo_ms)))
    x, y = Axis(0.0, 1.02 * steps[-1].rate_per_s), upward(low, max(10 * low, high), is_log=True)
    limit = y.at(slo_ms)
    marks: list[Mark] = [
        *axes(x.ticks, y.ticks, "offered calls/s", "latency, ms"),
        Path("limit", f"M{LEFT:g} {limit}H{RIGHT:g}"),
        Label("tick", RIGHT - 2, limit - 3, "SLO", "end"),
    ]
    if result.knee_step is not None:
        knee = x.at(result.knee_step.rate_per_s)
        marks += [Path("mark", f"M{knee} {TOP:g}V{BOTTOM:g}"), Label("direct", knee - 3, TOP + 10, "knee", "end")]
    for style, (name, found) in zip(("first", "second"), values.items(), strict=True):
        dots = [
            Dot(
                x.at(step.rate_per_s), y.at(value), f"{step.rate_per_s:.4g} calls/s: {name} {value:.4g}", f"dot {style}"
            )
            for step, value in zip(steps, found, strict=True)
        ]
        marks += [Path(f"curve {style}", line([(dot.x, dot.y) for dot in dots])), *dots]
    summary = "Median and 99th percentile of scored calls; the vertical axis is logarithmic."
    key = [("curve first", "p99"), ("curve second", "p50")]
    return Chart(title="Latency by offered rate", summary=summary, caption=summary, marks=marks, key=key)


def load_manifest(
    result: LoadResult, given: LoadOptions, lines: Mapping[str, str], server_version: str, clock: RunClock
) -> RunManifest:
    """Return a manifest that contains the run's settings and results."""
    total = StepCounts()
    for step in result.steps:
        total.add(step.counts)
    return RunManifest(
        command="bench load",
        versions=versions(server_version),
        place=given.endpoint.address,
        **metric_fields(lines),
        inputs=digests_of(given.files),
        parameters=given.parameters,
        counts=RunCounts(
            rows=total.sent_items,
            failed=total.failed * given.batch,
            unscored=(total.failed + total.refused) * given.batch,
            statuses={", ".join(lines): dict(total.statuses)},
        ),
        times=clock.times(),
        machine=clock.machine(),
        results={
            "partial": result.is_partial,
            "error": result.error or None,
            "knee_calls_per_s": None if result.knee is None else result.knee.rate_per_s,
            "calls_by_code": dict(total.codes),
            "checks": [str(check) for check in result.checks],
        },
    )


def _overload_note(step: Step) -> str:
    shares = {"refused": step.share(step.counts.refused), "failed": step.share(step.counts.failed)}
    said = " and ".join(f"{share:.0%} were {name}" for name, share in shares.items() if share > _MANY_LOST)
    return f". The server may be overloaded too: of the calls, {said}" if said else ""


def _items_beyond_file_rows(result: LoadResult, given: LoadOptions) -> int:
    return 0 if given.file_rows is None else max(0, result.sent_items - given.file_rows)


def _missing_rows_note(result: LoadResult, given: LoadOptions) -> str:
    sent = sum(step.counts.sent_items for step in result.steps)
    repeated = sum(step.counts.repeated for step in result.steps)
    return (
        f"too few rows: {' '.join(given.files)} has {given.file_rows}, but this run needs about {result.sent_items}. "
        f"Therefore {repeated / max(1, sent):.0%} of the answers had been sent before and cost the server less. "
        "Add rows, or measure one --rate for a shorter --duration"
    )


def _verdict(step: Step, result: LoadResult) -> str:
    if step.over_knee and step.outcome is not Outcome.VOID:
        return "twice the knee"
    return "the knee" if step is result.knee_step else _VERDICTS[step.outcome]


def _knee_note(knee: Knee, step: Step | None) -> str:
    if step is None:
        return _no_knee_note(knee)
    rates = f"{step.rate_per_s:.4g} calls/s, {step.rate_per_s * step.batch:.4g} answers/s"
    if knee.lost:
        return f"NO RESULT: the server kept up with {rates}, then became unavailable. Check its log"
    if knee.client_limited:
        return f"NO RESULT: above {rates} the client was the bottleneck, so the knee is higher"
    highest = "; no higher rate was tried (--max-rate)" if knee.at_most else ""
    return f"the knee: {rates} ({step.objective}){highest}"


def _no_knee_note(knee: Knee) -> str:
    if knee.lost:
        return "NO RESULT: the server became unavailable. Check its log"
    if knee.stopped:
        return "no knee: the run was interrupted before the server kept up with a rate"
    if knee.client_limited:
        return "NO RESULT: the client was the bottleneck at every rate. Use more --client-processes"
    return "no knee: the server could not keep up with any of the rates"


def _ms(seconds: float, digits: int = 1) -> Value:
    return _number(seconds * 1e3, digits)


def _share(share: float) -> Value:
    return Value("-" if math.isnan(share) else f"{share:.2%}", share)


def _number(value: float, digits: int) -> Value:
    return Value("-" if math.isnan(value) else f"{value:.{digits}f}", value)
