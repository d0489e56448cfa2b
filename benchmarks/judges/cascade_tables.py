"""Make the cascade's tables for benchmarks/results/cascade.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.judges.cascade_statistics import (
    Graded,
    accuracy,
    asked_by_budget,
    asked_by_risk,
    cascade,
    cheap,
    crossed,
    difference,
    estimate_statistics,
    judge_alone,
    pearson,
    split_statistics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_stats.calibration.cascade import CascadeFit, CascadeRows, HeldRisk, JudgeGain

RISK = 0.05
BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SAMPLES = 500
SHARES = (0.1, 0.2, 0.4)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with right-aligned columns, except for the first."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def ways_table(judges: Mapping[str, CascadeRows]) -> str:
    """Return a table of `auto`, `correctness` and every judge, with paired differences."""
    first = next(iter(judges.values()))
    ways: list[tuple[Graded, CascadeRows]] = [(cheap(first), first)]
    for name, rows in judges.items():
        told = name if " " in name else f"`{name}`"
        ways.append((judge_alone(rows, told), rows))
        asked = crossed(rows, asked_by_risk(RISK, refusing=True))
        ways.append((cascade(rows, asked, f"`auto` with {told}"), rows))
        forced = crossed(rows, asked_by_risk(RISK, refusing=False))
        if forced.any():
            ways.append((cascade(rows, forced, f"the same, whatever {told} is worth"), rows))
    lines = []
    for graded, rows in ways:
        base = cheap(rows)
        cells = [graded.name, str(int(graded.asked.sum()))]
        for statistic in (accuracy, pearson):
            value = difference(graded, None, rows, statistic)
            against = difference(graded, base, rows, statistic)
            same = np.array_equal(graded.scores, base.scores) and np.array_equal(graded.verdicts, base.verdicts)
            cells += [
                between(value),
                "-" if graded.name == "correctness" else "the same" if same else between(against, "+"),
            ]
        lines.append(cells)
    head = ["", "judge calls", "accuracy", "minus `correctness`", "Pearson", "minus `correctness`"]
    return table(head, lines)


def against_judges_table(judges: Mapping[str, CascadeRows]) -> str:
    """Return a table of the differences between `auto` and each judge alone."""
    lines = []
    for name, rows in judges.items():
        auto = cascade(rows, crossed(rows, asked_by_risk(RISK, refusing=True)), "auto")
        alone = judge_alone(rows, name)
        found = [between(difference(auto, alone, rows, statistic), "+") for statistic in (accuracy, pearson)]
        saved = 1 - auto.asked.sum() / len(rows)
        lines.append([f"`auto` with `{name}` minus `{name}`", *found, f"{saved:.0%}"])
    return table(["", "accuracy", "Pearson", "judge calls saved"], lines)


def budget_table(judges: Mapping[str, CascadeRows]) -> str:
    """Return a table of accuracy and Pearson by budget, as if `auto` never refused a judge."""
    lines = []
    for budget in BUDGETS:
        cells = [f"{budget:g}"]
        for rows in judges.values():
            asked = crossed(rows, asked_by_budget(budget))
            graded, weights = cascade(rows, asked, ""), np.ones(len(rows))
            cells += [
                f"{asked.mean():.0%}",
                f"{accuracy(graded, rows.right, weights):.3f}",
                f"{pearson(graded, rows.right, weights):.3f}",
            ]
        lines.append(cells)
    head = ["budget"]
    for name in judges:
        head += [f"`{name}`: asked", "accuracy", "Pearson"]
    return table(head, lines)


def gains_table(gains: Sequence[JudgeGain]) -> str:
    """Return a table of verdicts with and without the judge on the least certain rows."""
    lines = []
    for each in gains:
        told = "too few rows"
        if not math.isnan(each.low):
            told = f"{each.judge - each.cheap:+.3f} [{each.low:+.3f}, {each.high:+.3f}]"
        values = [f"{value:.3f}" if value == value else "-" for value in (each.cheap, each.judge)]  # noqa: PLR0124 - NaN
        lines.append([f"{each.share:.0%}", str(each.rows), *values, told, "yes" if each.adds else "no"])
    return table(["least certain rows", "judged", "without it", "judge", "difference", "adds"], lines)


def risks_table(fit: CascadeFit, held: Sequence[HeldRisk]) -> str:
    """Return a table of the bands on rows that the fit did not use."""
    lines = [
        [
            f"{each.risk:g}",
            "nothing" if math.isinf(fitted.accepts_from) else f"{fitted.accepts_from:.3f}",
            f"{each.accepted / each.rows:.1%}",
            "-" if not each.accepted else f"{each.wrong_share:.4f}",
            "yes" if each.held else "no",
        ]
        for each, fitted in zip(held, fit.risks, strict=True)
    ]
    return table(["risk", "accepted from confidence", "accepted there", "wrong of them", "held"], lines)


def splits_table(sets: Mapping[str, CascadeRows], risks: Sequence[float], splits: int) -> str:
    """Return a table of risk bounds over random splits."""
    lines = []
    for name, rows in sets.items():
        for each in split_statistics(rows, risks, splits):
            wrong = "-" if math.isnan(each.wrong) else f"{each.wrong:.4f}"
            shares = [f"{each.held:.3f}", f"{each.accepted:.1%}", wrong, f"{each.nothing:.1%}"]
            lines.append([name, f"{each.risk:g}", *shares])
    head = ["rows", "risk", "held", "accepted, mean", "wrong of them, mean", "splits with nothing accepted"]
    return table(head, lines)


def estimates_table(rows: CascadeRows, judge: str) -> str:
    """Return a table of the bias, coverage and width of estimates."""
    lines = []
    nobody = np.zeros(len(rows), np.bool_)
    band = rows.confidence < np.sort(rows.confidence)[len(rows) // 10]
    gold: dict[str, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]] = {
        f"`{judge}`'s mean score, refused": (rows.scores, rows.judge_scores, nobody),
        f"`{judge}`'s share right, refused": (rows.verdicts.astype(np.float64), rows.judge_verdicts, nobody),
        f"`{judge}`'s mean score, asked in the band": (
            np.where(band, rows.judge_scores, rows.scores),
            rows.judge_scores,
            band,
        ),
        "annotators' share right": (rows.scores, rows.right.astype(np.float64), nobody),
    }
    for name, (scores, judged, known) in gold.items():
        naive = float(scores.mean() - judged.mean())
        for share in SHARES:
            found = estimate_statistics(scores, judged, known, share, SAMPLES)
            lines.append(
                [
                    name,
                    f"{share:g}",
                    f"{found.truth:.4f}",
                    f"{naive:+.4f}",
                    f"{found.error:+.5f} ± {1.96 * found.error_of_mean:.5f}",
                    f"{found.coverage:.3f}",
                    f"{found.width:.4f}",
                    f"{found.plain_width:.4f}",
                    f"{found.calls:.0f}",
                ]
            )
    head = ["what is estimated", "sample", "truth", "error of `auto`'s own mean", "mean error", "coverage"]
    return table([*head, "width", "width without cheap scores", "calls"], lines)


def between(value: tuple[float, float, float], sign: str = "") -> str:
    """Return a value and its interval as text."""
    middle, low, high = (f"{each:{sign}.3f}" for each in value)
    return f"{middle} [{low}, {high}]"


def paragraphs(*parts: str) -> str:
    """Join parts with empty lines."""
    return "\n\n".join(parts)
