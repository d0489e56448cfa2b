"""Write the tables of the runs' results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.agreement.sfve_ablations import ALL, CHANGES, SETS, UNTRAINED

from gradewire_stats.ave import AveRows, ave_differences, ave_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.agreement.sfve_ablations.measuring import StandIn


def tables(work: Path, sets: Mapping[str, StandIn]) -> str:
    """Return the tables of all finished runs below `work`, in Markdown: spread over seeds, gains, learning curve.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: Runs differ in their numbers of steps or examples, so a table of them would mislead.
    """
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(work.glob("*/result.json"))]
    sizes = {(each["steps"], each["batch_size"]) for each in results if each["kind"] != UNTRAINED}
    if len(sizes) > 1:
        told = ", ".join(f"{steps} steps of {batch}" for steps, batch in sorted(sizes))
        raise ValueError(f"the runs in {work} have {told}. Use a folder for each")
    lines = []
    for base in dict.fromkeys(each["base"] for each in results):
        own = [each for each in results if each["base"] == base]
        lines += ["", f"`{base}`:", "", *_table(own, sets), "", *_gains(own, sets), *_curve(own, sets["a"])]
    return "\n".join(lines)


def _rows(scores: Sequence[Sequence[float]], standin: StandIn) -> AveRows:
    return standin.scored(np.array(scores, dtype=np.float64))


def _alignment(scores: Sequence[Sequence[float]], standin: StandIn) -> float:
    return ave_properties(_rows(scores, standin), resamples=0).alignment.value


def _table(results: Sequence[Mapping[str, Any]], sets: Mapping[str, StandIn]) -> Iterator[str]:
    heads = [f"{title}, {name}" for name in SETS.values() for title in ("alignment", "consistency")]
    yield f"| run | seeds | {' | '.join(heads)} |"
    yield "|---|---:|" + "---:|" * len(heads)
    for kind in (UNTRAINED, *CHANGES):
        own = [each["sets"] for each in results if each["kind"] == kind]
        cells = []
        for name in SETS if own else ():
            # The mean of a part of the seeds would look like that of all.
            whole = own if all(name in each for each in own) else ()
            found = [ave_properties(_rows(each[name], sets[name]), resamples=0) for each in whole]
            cells.append(_spread([each.alignment.value for each in found], 3))
            cells.append(_spread([each.consistency.value for each in found], 2))
        if own:
            yield f"| {kind} | {len(own)} | {' | '.join(cells)} |"


def _spread(values: Sequence[float], digits: int) -> str:
    """Return the mean, and with several values their standard deviation."""
    if not values:
        return "-"
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def _gains(results: Sequence[Mapping[str, Any]], sets: Mapping[str, StandIn]) -> Iterator[str]:
    """Yield each seed's gain in alignment, with its interval over questions."""
    before = next((each["sets"] for each in results if each["kind"] == UNTRAINED), None)
    if before is None:
        return
    yield "| gain in alignment over the untrained base | mean | by seed |"
    yield "|---|---:|---|"
    for kind in CHANGES:
        own = [each["sets"] for each in results if each["kind"] == kind]
        for name in [name for name in ("b", "apart") if own and all(name in each for each in own)]:
            untrained, *trained = (_rows(each[name], sets[name]) for each in (before, *own))
            gains = [ave_differences(each, untrained).alignment for each in trained]
            told = ", ".join(f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains)
            yield f"| {kind}, {SETS[name]} | {np.mean([gain.value for gain in gains]):+.3f} | {told} |"


def _curve(results: Sequence[Mapping[str, Any]], standin: StandIn) -> Iterator[str]:
    whole = next((each for each in results if each["kind"] == ALL and each["curve"]), None)
    before = next((each["sets"]["a"] for each in results if each["kind"] == UNTRAINED), None)
    if whole is None or before is None:
        return
    yield from ("", "| steps | examples read | alignment on the fit split |", "|---:|---:|---:|")
    last = {"step": whole["steps"], "scores": whole["sets"]["a"]}
    for look in ({"step": 0, "scores": before}, *whole["curve"], last):
        yield f"| {look['step']} | {look['step'] * whole['batch_size']} | {_alignment(look['scores'], standin):.3f} |"
