"""Tables and sentences about a fit of `auto`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.cli.output.figures import number
from gradewire.cli.output.tables import FigureTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradewire.agreement.fitting.cascade.fit import CascadeFit
    from gradewire.agreement.fitting.cascade.judge_gain import JudgeGain
    from gradewire.cli.calibrate.cascade import HeldOut, ScoredCascade

_SHOWN_RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)


def cascade_tables(fit: CascadeFit, held: Sequence[HeldOut]) -> Iterator[FigureTable]:
    """The bands of the usual risks, how they held on other questions, and the judge beside the cheap verdicts."""
    yield FigureTable(
        f"Bands, each with the probability {1 - fit.delta:g}",
        ["risk", "accepted from confidence", "accepted, one of each question", "wrong of them"],
        [
            [f"{each.risk:g}", _confidence(each.accepts_from), str(each.accepted), str(each.wrong)]
            for each in fit.risks
            if each.risk in _SHOWN_RISKS
        ],
    )
    for part in held:
        yield FigureTable(
            f"How it held: {part.on}",
            ["risk", "rows", "accepted", "wrong of them", "share", "held", "judge asked", "accuracy, all rows"],
            [
                [
                    *(f"{each.risk:g}", str(each.rows), str(each.accepted), str(each.wrong), number(each.wrong_share)),
                    *("yes" if each.held else "no", str(each.asked), number(each.accuracy)),
                ]
                for each in part.risks
                if each.risk in _SHOWN_RISKS
            ],
        )
    yield FigureTable(
        "The judge beside exact_match and correctness, on the least certain rows",
        ["share of rows", "judged rows", "accuracy without it", "of the judge", "judge minus, interval", "adds"],
        [_gain(each) for each in fit.gains],
    )


def judge_line(fit: CascadeFit, judge: str) -> str:
    """Where the judge is asked, in a sentence."""
    if fit.asked_below is None:
        return (
            f"{judge} is refused: on no share of the least certain rows does the interval of what it adds lie above 0, "
            "so auto never lets it decide"
        )
    share = max(each.share for each in fit.gains if each.adds)
    return (
        f"{judge} is asked below the confidence {_confidence(fit.asked_below)}: the least certain {share:.0%} of rows"
    )


def cascade_warnings(scored: ScoredCascade, told: Iterable[str]) -> Iterator[str]:
    """Warnings about the rows, a sentence each; `told` are the lines of what was fitted for the encoder."""
    lines = [line for line in told if line.startswith("fitted for correctness")]
    for name, digest in scored.digests.items():
        if digest and any(digest[:12] in line for line in lines):
            way_out = {"half a of these rows": "--half b", "half b of these rows": "--half a"}.get(name, "others")
            yield (
                f"warning: correctness was fitted on {name}, so its probabilities look surer there than they are "
                f"elsewhere: fit auto on {way_out}, and believe no figure that is read there"
            )
    if scored.unjudged:
        reasons = ", ".join(f"{status} {count}" for status, count in sorted(scored.unjudged.items()))
        yield f"warning: rows without a judge's verdict count for the bands alone: {reasons}"
    if scored.cheap.failed:
        yield f"warning: {scored.cheap.failed} rows have no probability and were left out"


def _gain(gain: JudgeGain) -> list[str]:
    if math.isnan(gain.low):
        return [f"{gain.share:.0%}", str(gain.rows), number(gain.cheap), number(gain.judge), "too few rows", "no"]
    between = f"{gain.judge - gain.cheap:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
    adds = "yes" if gain.adds else "no"
    return [f"{gain.share:.0%}", str(gain.rows), number(gain.cheap), number(gain.judge), between, adds]


def _confidence(value: float) -> str:
    if math.isinf(value):
        return "nothing"
    if value > 2:
        return "of any kind"
    return "exact matches" if value == 2 else f"{value:.4f}"
