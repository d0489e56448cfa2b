"""Tables and notes on the thresholds, probabilities and cascades that `gradewire calibrate` fits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradewire_cli.calibrate.fits import AFTER, BEFORE, LevelFit, ProbabilityFit, Split, ThresholdFit, difference_text
from gradewire_cli.results.tables import TITLES, Table, Value, differing, estimated, number
from gradewire_stats.calibration.quality import COVERAGES, TransferStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gradewire_cli.calibrate.cascade import HeldOut, ScoredCascade
    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.calibration.cascade import CascadeFit, JudgeGain
    from gradewire_stats.calibration.level import Level


# Minimum number of rows for a useful fit. With fewer rows, an accuracy's interval is wider than a threshold's gain.
FEW_ROWS = 100
ENOUGH_FOR_A_LEVEL = 50


def fit_table(fit: ThresholdFit) -> Table:
    """Return a table of statistics before and after the fit, with paired differences."""
    table = _table(fit.report, fit.measured_on, (BEFORE, AFTER))
    balanced = ["balanced accuracy", number(fit.balanced[BEFORE]), number(fit.balanced[AFTER]), ""]
    return replace(table, rows=[table.rows[0], balanced, *table.rows[1:]])


def probability_tables(fit: ProbabilityFit, before: str) -> Iterator[Table]:
    """Yield tables of a probability's statistics: on held-out rows, by source, and compared with `before`."""
    yield Table(
        "Held out by question",
        ["", "probability"],
        [[name, number(value)] for name, value in fit.result.quality.items()],
    )
    if fit.result.transfer:
        yield Table(
            "Each source, with a fit on the other sources",
            ["source left out", "rows", "Pearson", "AUC", "accuracy", "ECE"]
            + [f"accuracy of {share:.0%}" for share in COVERAGES]
            + ["UNCERTAIN", "accuracy of certain verdicts", "UNCERTAIN share of wrong verdicts"],
            [[each.source, str(each.rows), *map(number, _transfer_numbers(each))] for each in fit.result.transfer],
        )
    table = _table(fit.report, fit.measured_on, (before, "new fit"))
    rest = [
        [name, *(number(value) if math.isfinite(value) else "" for value in values), ""]
        for name, values in fit.other_values.items()
    ]
    if fit.brier is not None:
        rest[-1][-1] = difference_text(fit.brier)
    yield replace(table, rows=[*table.rows, *rest])


def level_table(fit: LevelFit) -> Table:
    """Return a table of statistics before and after the level."""
    table = _table(fit.report, fit.measured_on, (BEFORE, AFTER))
    rest = [[name, *map(number, values), ""] for name, values in fit.other_values.items()]
    return replace(table, rows=[*rest, *table.rows])


def level_lines(fit: LevelFit, fit_id: str, rows: Split, replaced: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield notes on the level, the fitted rows, the level that is `replaced`, and the gain."""
    yield from fit_lines(f"{level_words(fit.level)} of fit {fit_id}", rows, rows)
    if replaced is not None:
        yield (
            f"this replaces the level of {replaced['date']} (offset {replaced['offset']:+.3f}, slope "
            f"{replaced['slope']:.3f}, {replaced['rows']['count']} rows). Both start from fit {fit_id}, so rows of the "
            f'old level count only if you give them again. "{BEFORE}" is fit {fit_id} without a level'
        )


def level_words(level: Level) -> str:
    """Return the level's two numbers in words."""
    return f"level: offset {level.offset:+.3f}, slope {level.slope:.3f}"


def _transfer_numbers(each: TransferStatistics) -> tuple[float, ...]:
    certain = (each.uncertain, each.accuracy_certain, each.held)
    return (each.pearson, each.auc, each.accuracy, each.ece, *each.at_coverage, *certain)


def _table(report: AgreementReport, measured_on: str, names: tuple[str, str]) -> Table:
    before, after = (metric.cells[-1] for metric in report.metrics)
    differences = {found.statistic: found.all_rows for found in report.comparisons}
    rows: list[list[Value | str]] = [
        [
            TITLES[statistic],
            estimated(before.estimates[statistic]),
            estimated(after.estimates[statistic]),
            differing(differences[statistic]),
        ]
        for statistic in differences
    ]
    return Table(f"Measured on {after.rows} rows: {measured_on}", ["", *names, f"{names[1]} minus {names[0]}"], rows)


def fit_lines(fitted: str, before: Split, after: Split) -> Iterator[str]:
    """Yield notes on the fitted rows and on the metric before and after the fit."""
    rows = after.fitted
    count, right = len(rows.scores), int(rows.right.sum())
    yield f"{fitted}: fitted on {count} rows, {right} of them right, SHA-256 {rows.sha256[:12]}"
    yield f"before: {before.fitted.line}"
    if after.fitted.line != before.fitted.line:
        yield f"after: {after.fitted.line}"


def warning_lines(after: Split, labelled: LabelledRows, *, enough: int = FEW_ROWS) -> Iterator[str]:
    """Yield warnings about the rows. `enough` is the minimum number of rows for a useful fit."""
    count, fewer = len(after.fitted.scores), min(after.fitted.right.sum(), (~after.fitted.right).sum())
    if count < enough:
        yield f"warning: {count} rows are too few for a good fit. Label at least {enough}"
    elif fewer < enough // 10:
        which = "right" if after.fitted.right.sum() == fewer else "wrong"
        yield f"warning: only {fewer} rows are {which}. Label more"
    if after.fitted.failed:
        yield f"warning: skipped {after.fitted.failed} rows without a score"
    yield from (f"warning: {sentence}" for sentence in labelled.left_out())


_SHOWN_RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)


def cascade_tables(fit: CascadeFit, held: HeldOut) -> Iterator[Table]:
    """Yield tables of the bands, the bands' results on held-out questions, and the judge's gain."""
    yield Table(
        f"Bands, each valid with probability {1 - fit.delta:g}",
        ["risk", "minimum confidence", "accepted, one per question", "wrong among accepted"],
        [
            [f"{each.risk:g}", _confidence(each.accepts_from), str(each.accepted), str(each.wrong)]
            for each in fit.risks
            if each.risk in _SHOWN_RISKS
        ],
    )
    for on, risks in held.items():
        yield Table(
            f"Held-out check: {on}",
            ["risk", "rows", "accepted", "wrong", "share wrong", "held", "judge called", "accuracy, all rows"],
            [
                [
                    *(f"{each.risk:g}", str(each.rows), str(each.accepted), str(each.wrong), number(each.wrong_share)),
                    *("yes" if each.held else "no", str(each.judged), number(each.accuracy)),
                ]
                for each in risks
                if each.risk in _SHOWN_RISKS
            ],
        )
    yield Table(
        "The judge compared with exact_match and correctness, on the least certain rows",
        ["share of rows", "judged rows", "accuracy without judge", "judge's accuracy", "difference, interval", "adds"],
        [_gain(each) for each in fit.gains],
    )


def judge_line(fit: CascadeFit, judge: str) -> str:
    """Return a sentence that says when auto calls the judge."""
    if fit.judged_below is None:
        return (
            f"auto never uses the verdicts of {judge}, because these rows do not prove that the verdicts improve the "
            "accuracy for any share of the least certain rows"
        )
    share = max(each.share for each in fit.gains if each.adds)
    return (
        f"{judge} is called below confidence {_confidence(fit.judged_below)}, for the least certain {share:.0%} of rows"
    )


def cascade_warnings(scored: ScoredCascade, fit_notes: Iterable[str]) -> Iterator[str]:
    """Yield warnings about the rows. `fit_notes` are the summaries of the encoder's fits."""
    lines = [line for line in fit_notes if line.startswith("fitted for correctness")]
    for name, digest in scored.digests.items():
        if digest and any(digest[:12] in line for line in lines):
            way_out = {"half a of these rows": "with --fit-half b", "half b of these rows": "with --fit-half a"}.get(
                name, "on different rows"
            )
            yield (
                f"warning: correctness was fitted on {name}, so its probabilities for them are too confident. "
                f"Fit auto {way_out}, and do not trust statistics measured on {name}"
            )
    if scored.unjudged:
        reasons = ", ".join(f"{status} {count}" for status, count in sorted(scored.unjudged.items()))
        yield f"warning: rows without a judge's verdict count only for the bands: {reasons}"
    if scored.cheap.failed:
        yield f"warning: skipped {scored.cheap.failed} rows without a probability"


def _gain(gain: JudgeGain) -> list[str]:
    between = f"{gain.judge - gain.cheap:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
    if math.isnan(gain.low):
        between = "too few rows"
    adds = "yes" if gain.adds else "no"
    return [f"{gain.share:.0%}", str(gain.rows), number(gain.cheap), number(gain.judge), between, adds]


def _confidence(value: float) -> str:
    if math.isinf(value):
        return "none"
    if value > 2:
        return "of any kind"
    return "exact matches" if value == 2 else f"{value:.4f}"
