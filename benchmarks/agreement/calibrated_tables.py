"""What `calibrated` is worth beside `smile`: agreement, calibration, abstention and groups of features, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.calibrated_groups import ablation_table
from benchmarks.agreement.calibrated_rows import SMILE_CUT, ScoredRows
from benchmarks.common.rows import HEADLINE_MODELS

from gradewire.agreement import agreement
from gradewire.agreement.fitting.probability_figures import accuracy_at_coverage, brier_score, calibration_error
from gradewire.agreement.rows import JudgedRows

if TYPE_CHECKING:
    from benchmarks.agreement.calibrated_fitting import Fitted
    from numpy.typing import NDArray

    from gradewire.agreement.estimates import Difference
    from gradewire.agreement.point_estimates import Statistic
    from gradewire.agreement.result_tables import AgreementReport

STATISTICS: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5)


def figures_block(
    fit: Fitted, fit_split: ScoredRows, held_out_split: ScoredRows, nq301: ScoredRows, *, ablation: bool
) -> str:
    """All tables, in Markdown.

    Args:
        fit: Made on `fit_split`.
        fit_split: Rows of all models under test.
        held_out_split: The same, of the other questions.
        nq301: Without the questions of either.
        ablation: Whether groups of features are left out in turn, on the fit split.
    """
    cells = held_out_split.where(lambda row: row["model"] in HEADLINE_MODELS)
    sets = {
        "held-out split, gpt35 and gpt4": cells,
        "held-out split, all five models": held_out_split,
        "NQ301 without shared questions": nq301,
    }
    probabilities = {name: fit.probabilities(rows) for name, rows in sets.items()}
    blocks = [_origin(fit, fit_split)]
    for name, rows in sets.items():
        blocks += [
            f"**{name[0].upper()}{name[1:]}**, {len(rows.rows)} rows.",
            agreement_table(rows, probabilities[name]),
        ]
    blocks += ["**Reliability.**", _calibration_table(sets, probabilities)]
    blocks += [
        "**Accuracy where the least certain answers are left out** (by probability alone).",
        _risk_table(sets, probabilities),
    ]
    blocks += [
        "**Abstention** at the confidences that `calibrated` is asked for.",
        _abstention_table(fit, sets, probabilities),
    ]
    if ablation:
        blocks += ["**Groups of features left out**, cross-validated on the fit split.", ablation_table(fit_split)]
    return "\n\n".join(blocks)


def _origin(fit: Fitted, fit_split: ScoredRows) -> str:
    figures = ", ".join(f"{name} {value:.3f}" for name, value in fit.cross_validated.items())
    rows = fit.form["rows"]
    return (
        f"Fitted on the fit split of EVOUNA's development questions: {rows['count']} rows of five models, "
        f"{rows['questions']} questions, {rows['right']} right, SHA-256 {fit_split.sha256[:12]}, with "
        f"`{fit_split.line}`. {len(fit.form['features'])} features, {len(fit.form['trees']['roots'])} trees. "
        f"Cross-validated there, all rows at once: {figures}. No row of what follows was fitted on. In brackets: 95 % "
        "intervals over questions."
    )


def _report(rows: ScoredRows, probabilities: NDArray[np.float64]) -> AgreementReport:
    smile = {f"smile:v1, {model}": scores for model, scores in rows.smile_of_others.items()} | {"smile:v1": rows.smile}
    return agreement(
        JudgedRows(
            scores={**smile, "calibrated": probabilities},
            verdicts={
                **{name: (scores >= SMILE_CUT).astype(np.float64) for name, scores in smile.items()},
                "calibrated": (probabilities >= 0.5).astype(np.float64),
            },
            labels=rows.labels,
            datasets=rows.column("dataset"),
            models=rows.column("model"),
            questions=rows.keys,
        ),
        compare=[("calibrated", name) for name in smile],
        compare_statistics=STATISTICS,
        statistics=STATISTICS,
    )


def agreement_table(rows: ScoredRows, probabilities: NDArray[np.float64]) -> str:
    """Cells, their means, and differences to SMILE by each encoder whose scores the rows have, with intervals.

    Args:
        rows: Of one part of the data.
        probabilities: float64[rows], P(right).
    """
    report = _report(rows, probabilities)
    cells = [cell for cell in report.metrics[0].cells if cell.level == "cell"]
    names = [f"{cell.dataset} {cell.model}".strip() for cell in cells]
    head = f"| | {' | '.join(names)} | mean of cells |"
    lines = [head, f"|---|{'---:|' * (len(names) + 1)}"]
    blank = f" |{' |' * len(names)} "
    several = len({pair.baseline for pair in report.comparisons}) > 1
    for statistic in STATISTICS:
        for metric in report.metrics:
            found = [f"{cell.estimates[statistic].value:.3f}" for cell in metric.cells if cell.level == "cell"]
            mean = metric.headline[statistic].value
            lines.append(f"| {statistic}, `{metric.metric}` | {' | '.join(found)} | {mean:.3f} |")
        for pair in (each for each in report.comparisons if each.statistic == statistic):
            to = f" to `{pair.baseline}`" if several else ""
            lines.append(f"| {statistic}, difference{to}{blank}{_signed(pair.mean_of_cells)} |")
    for pair in (each for each in report.comparisons if each.statistic == "pearson"):
        to = f" to `{pair.baseline}`" if several else ""
        lines.append(f"| pearson, difference{to}, all rows at once{blank}{_signed(pair.all_rows)} |")
    return "\n".join(lines)


def _signed(gain: Difference) -> str:
    return f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"


def _calibration_table(sets: dict[str, ScoredRows], probabilities: dict[str, NDArray[np.float64]]) -> str:
    lines = ["| | rows | ECE, 15 bins of equal mass | Brier score |", "|---|---:|---:|---:|"]
    for name, rows in sets.items():
        right = rows.labels > 0
        error, brier = calibration_error(probabilities[name], right), brier_score(probabilities[name], right)
        lines.append(f"| {name} | {len(rows.rows)} | {error:.3f} | {brier:.3f} |")
    return "\n".join(lines)


def _risk_table(sets: dict[str, ScoredRows], probabilities: dict[str, NDArray[np.float64]]) -> str:
    lines = [f"| share judged | {' | '.join(f'{c:.0%}' for c in COVERAGES)} |", f"|---|{'---:|' * len(COVERAGES)}"]
    for name, rows in sets.items():
        accuracies = accuracy_at_coverage(probabilities[name], rows.labels > 0, COVERAGES)
        lines.append(f"| {name} | {' | '.join(f'{accuracy:.3f}' for accuracy in accuracies)} |")
    return "\n".join(lines)


def _abstention_table(fit: Fitted, sets: dict[str, ScoredRows], probabilities: dict[str, NDArray[np.float64]]) -> str:
    lines = [
        "| | confidence | band | without the warning | accuracy there | right called wrong | wrong called right |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for name, rows in sets.items():
        found, right = probabilities[name], rows.labels > 0
        for confidence in CONFIDENCES:
            band = fit.served.band(confidence)
            certain = (found < band.lower) | (found > band.upper)
            said = found >= 0.5
            missed = float((certain & ~said)[right].mean())
            praised = float((certain & said)[~right].mean())
            accuracy = float((said == right)[certain].mean())
            lines.append(
                f"| {name} | {confidence} | {band.lower:.3f} to {band.upper:.3f} | {certain.mean():.1%} "
                f"| {accuracy:.3f} | {missed:.3f} | {praised:.3f} |"
            )
    return "\n".join(lines)
