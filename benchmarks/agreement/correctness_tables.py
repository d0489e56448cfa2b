"""Compare `correctness` with `smile` in Markdown tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks.agreement.correctness_rows import COLUMNS, SMILE_CUT, ScoredRows, together
from benchmarks.common.rows import HEADLINE_MODELS

from gradewire_server.metrics.correctness.mentions import STANCES
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.fit_correctness import held_out_probabilities, left_out_log_odds
from gradewire_stats.calibration.labelled_rows import left_out_sources
from gradewire_stats.calibration.quality import accuracy_at_coverage, brier_score, calibration_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.agreement.correctness_rows import Fitted
    from numpy.typing import NDArray

    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.bootstrap import Difference


GROUPS = {
    "SMILE's terms": ("sentence", "keyword", "exact"),
    "words": ("contained", "recall", "last_word", "new_recall"),
    "what is missing": ("head_recall", "modifier_recall", "name_recall", "member_recall"),
    "spelling": ("spelling_least", "spelling_begin", "spelling_within"),
    "values": ("value_recall", "value_conflict", "values_beside"),
    "doubts about values": ("value_altered", "value_compared", "result_conflict", "identifier_conflict"),
    "yes and no": ("verdict", "verdict_unread", "verdict_doubt", "verdict_conflict"),
    "statements": (
        "negated",
        "antonym",
        "exchanged",
        "symbol_altered",
        "name_altered",
        "outcome_reversed",
        "role_reversed",
        "other_subject",
    ),
    "mentions": ("claim_unclear", *STANCES, "stances"),
    "new words": ("new_words", "new_share", "new_beside"),
    "members of lists": ("members_beside", "members_missing"),
    "names in references": ("reference_names",),
    "refusals, denials and candidates": ("refusals", "value_veto", "refused", "denied", "alternatives"),
}
STATISTICS: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
UNSEEN = (
    "NQ301 is graded by a fit on the other sources. No fit uses the rows below. Brackets contain 95 % intervals "
    "over questions."
)
ABSTENTION = (
    "confidence",
    "band near the rows",
    "without the warning",
    "accuracy there",
    "right called wrong",
    "wrong called right",
    "wrong verdicts with the warning",
)
COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5)

LINE_CHARACTERS: Final = 120


def ablation_table(parts: tuple[ScoredRows, ...]) -> str:
    """Return a table of fits with all features, without each feature group, and with only SMILE's features.

    The first part's values are cross-validated over questions; the mean AUC is over left-out sources.
    """
    lines = [
        "| | mean Pearson of four cells | Brier score | mean AUC of sources left out |",
        "|---|---:|---:|---:|",
        f"| `smile:one_pass` itself | {mean_pearson(parts[0], parts[0].smile):.3f} | | |",
    ]
    every = [column.name for column in COLUMNS]
    choices = {"all features": every, "SMILE's terms alone": list(GROUPS["SMILE's terms"])}
    choices |= {f"without {name}": [each for each in every if each not in group] for name, group in GROUPS.items()}
    for name, wanted in choices.items():
        rows = together(*parts)
        kept = [number for number, column in enumerate(COLUMNS) if column.name in wanted]
        rows = replace(rows, features=[COLUMNS[number] for number in kept], values=rows.values[:, kept])
        found = held_out_probabilities(rows)[: len(parts[0].rows)]
        brier = float(np.mean((found - parts[0].labels) ** 2))
        left_out = left_out_log_odds(rows)
        aucs = [auc(left_out[inside], rows.right[inside]) for _, inside in left_out_sources(rows)]
        lines.append(f"| {name} | {mean_pearson(parts[0], found):.3f} | {brier:.4f} | {np.mean(aucs):.3f} |")
    return "\n".join(lines)


def mean_pearson(rows: ScoredRows, scores: NDArray[np.float64]) -> float:
    """Return Pearson's correlation with the labels, averaged over the cells of data set and headline model."""
    cells = {(row["dataset"], row["model"]) for row in rows.rows if row["model"] in HEADLINE_MODELS}
    found = []
    for cell in sorted(cells):
        inside = np.array([(row["dataset"], row["model"]) == cell for row in rows.rows])
        found.append(np.corrcoef(scores[inside], rows.labels[inside])[0, 1])
    return float(np.mean(found))


@dataclass(frozen=True)
class Read:
    """Rows, and a fit on other questions or other sources."""

    name: str
    rows: ScoredRows
    fit: Fitted

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The rows' P(right), float64[rows]."""
        return self.fit.probabilities(self.rows)


def tables_block(held_out: Read, nq301: Read, parts: tuple[ScoredRows, ...], *, ablation: bool) -> str:
    """Return all tables in Markdown; `parts` are the fitted rows, by source."""
    cells = held_out.rows.where(lambda row: row["model"] in HEADLINE_MODELS)
    sets = [Read(f"{held_out.name}, gpt35 and gpt4", cells, held_out.fit)]
    sets += [Read(f"{held_out.name}, all five models", held_out.rows, held_out.fit), nq301]
    blocks = [_origin(held_out.fit, parts)]
    for each in sets:
        name = f"{each.name[0].upper()}{each.name[1:]}"
        blocks += [f"**{name}**, {len(each.rows.rows)} rows.", agreement_table(each.rows, each.probabilities)]
    blocks += ["**Reliability.**", _calibration_table(sets)]
    blocks += ["**Accuracy where the least certain answers are left out** (by probability alone).", _risk_table(sets)]
    blocks += ["**Abstention** at the requested confidences of `correctness`.", _abstention_table(sets)]
    if ablation:
        blocks += [
            "**Groups of features left out**, cross-validated over questions, and with each source left out.",
            ablation_table(parts),
        ]
    return "\n\n".join(blocks)


def _origin(fit: Fitted, parts: tuple[ScoredRows, ...]) -> str:
    figures = ", ".join(f"{name} {value:.3f}" for name, value in fit.form["figures"].items())
    rows = fit.form["rows"]
    counts = ", ".join(f"{count} of {name}" for name, count in rows["sources"].items())
    told = (
        f"Fitted on {rows['count']} rows ({counts}), with the weights in `correctness_rows.COUNTING`; EVOUNA's rows "
        f"are from one split. {rows['questions']} questions, {rows['right']} right, SHA-256 "
        f"{rows['sha256'][:12]}, with `{parts[0].line}`. {len(fit.form['features'])} features, "
        f"{len(fit.form['trees']['roots'])} trees and a linear part. Cross-validated there, all rows at once: "
        f"{figures}. {UNSEEN}"
    )
    return fill(told, LINE_CHARACTERS, break_long_words=False, break_on_hyphens=False)


def _report(rows: ScoredRows, probabilities: NDArray[np.float64]) -> AgreementReport:
    smile = {f"smile:one_pass, {model}": scores for model, scores in rows.smile_of_others.items()} | {
        "smile:one_pass": rows.smile
    }
    return agreement(
        JudgedRows(
            scores={**smile, "correctness": probabilities},
            verdicts={
                **{name: (scores >= SMILE_CUT).astype(np.float64) for name, scores in smile.items()},
                "correctness": (probabilities >= 0.5).astype(np.float64),
            },
            labels=rows.labels,
            datasets=rows.column("dataset"),
            models=rows.column("model"),
            questions=rows.keys,
        ),
        compare=[("correctness", name) for name in smile],
        compare_statistics=STATISTICS,
        statistics=STATISTICS,
    )


def agreement_table(rows: ScoredRows, probabilities: NDArray[np.float64]) -> str:
    """Return a table of each cell's results, their mean, and the differences from SMILE, with intervals."""
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


def _calibration_table(sets: Sequence[Read]) -> str:
    lines = ["| | rows | ECE, 15 bins of equal mass | Brier score |", "|---|---:|---:|---:|"]
    for each in sets:
        right = each.rows.labels > 0
        error, brier = calibration_error(each.probabilities, right), brier_score(each.probabilities, right)
        lines.append(f"| {each.name} | {len(right)} | {error:.3f} | {brier:.3f} |")
    return "\n".join(lines)


def _risk_table(sets: Sequence[Read]) -> str:
    lines = [f"| share judged | {' | '.join(f'{c:.0%}' for c in COVERAGES)} |", f"|---|{'---:|' * len(COVERAGES)}"]
    for each in sets:
        accuracies = accuracy_at_coverage(each.probabilities, each.rows.labels > 0, COVERAGES)
        lines.append(f"| {each.name} | {' | '.join(f'{accuracy:.3f}' for accuracy in accuracies)} |")
    return "\n".join(lines)


def _abstention_table(sets: Sequence[Read]) -> str:
    lines = [
        f"| | {' | '.join(ABSTENTION)} |",
        "|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for each in sets:
        right, said = each.rows.labels > 0, each.probabilities >= 0.5
        for confidence in CONFIDENCES:
            band, certain = each.fit.served.band(confidence), ~each.fit.uncertain(each.rows, confidence)
            missed = float((certain & ~said)[right].mean())
            praised = float((certain & said)[~right].mean())
            accuracy = float((said == right)[certain].mean())
            held = float((~certain)[said != right].mean())
            lines.append(
                f"| {each.name} | {confidence} | {band.lower:.3f} to {band.upper:.3f} | {certain.mean():.1%} "
                f"| {accuracy:.3f} | {missed:.3f} | {praised:.3f} | {held:.0%} |"
            )
    return "\n".join(lines)
