"""Compare metrics with labels from VQA v2's annotators; write benchmarks/results/vqa-annotators.md.

Half a of the questions fits and chooses, half b reports. With --write-fit, the program only makes the fit of
`correctness?fit=votes` on half a, and writes it to a file of the catalog. Judges grade a sample of each half. Scores
are stored in --results, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks.agreement.correctness import DEFAULT_MODEL, ROOT, VOTES, write_fit, written
from benchmarks.agreement.correctness_rows import COLUMNS, Recipe, ScoredRows, fitted
from benchmarks.common.measurements import machine, write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_lines, require_files, resume_or_overwrite
from benchmarks.common.servers import run_gradewire
from benchmarks.judges.agreement import judge_environment, score_rows

from gradewire_cli.rows.official.vqa_annotators import Evidence, annotator_records
from gradewire_server.metrics.correctness.features import INPUT_KIND, VOTE_FEATURES
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import RIGHT_FROM, JudgedRows
from gradewire_stats.calibration.fit_correctness import held_out_probabilities
from gradewire_stats.calibration.labelled_rows import FittedFeature, InputKinds, checked, half_of, question_key
from gradewire_stats.calibration.quality import calibration_error, probability_quality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.agreement.statistics import Statistic

RESULTS: Final = ROOT / "benchmarks" / "results" / "vqa-annotators"
DOCUMENT: Final = ROOT / "benchmarks" / "results" / "vqa-annotators.md"
FITTED: Final = "correctness?fit=votes"
PLAIN: Final = (
    *(FITTED, "correctness", "correctness?grader=none", "smile", "smile:one_pass", "sbert", "bertscore"),
    *("vqa_accuracy", "soft_vqa_accuracy", "exact_match", "easy_match", "lexical_match", "token_f1", "rouge_l"),
)
SETTINGS: Final = {
    "vqa_accuracy": ("vqa_accuracy?consensus=direct", "vqa_accuracy?normalise=always"),
    "smile": ("smile:one_pass", "smile:paper", "smile?sentence_weight=0.3", "smile?sentence_weight=0.7"),
    "correctness": ("correctness?grader=none",),
}
"""Metrics by name, with settings that could be better defaults for short answers about images."""
LAVE_SETTINGS: Final = (
    *("lave?reference_filter=0", "lave?references=closest", "lave?references=all", "lave?binary=judge"),
)
REPORTED: Final[tuple[Statistic, ...]] = ("auc", "pearson", "accuracy")
TYPES: Final = ("yes/no", "number", "other")
ALONE: Final = frozenset({"alternative", "doubted", "other_question"})
"""Evidence on answers that are not among their references."""
CHOSEN_ROWS, REPORTED_ROWS = 60, 150
"""Numbers of rows that judges grade: of half a to choose settings, and of half b to report."""
FEATURES_ONLY: Final = "correctness?features_only=true&fit=votes&grader=none"


def rows_of(data: Path, half: str) -> list[Row]:
    """Return the labelled rows of one half of the questions."""
    directory = data / VOTES
    files = directory / "annotations.json", directory / "questions.json"
    require_files(*files)
    records = annotator_records(str(files[0]), questions=str(files[1]))
    found = [dict(record.fields) for record in records if record.fields is not None]
    return [row for row in found if row["label"] is not None and half_of(row["question"]) == half]


def sample_of(rows: Sequence[Row], half: str, count: int) -> list[Row]:
    """Return a sample of the rows, drawn independently of labels, in the rows' order."""
    draw = random.Random(f"gradewire vqa annotators {half}")  # noqa: S311 - no secret
    return [rows[index] for index in sorted(draw.sample(range(len(rows)), min(count, len(rows))))]


@dataclass(frozen=True)
class Scores:
    """Labelled rows with several metrics' scores and verdicts.

    Attributes:
        scores: float64[rows] by metric, NaN for a failed row.
        verdicts: float64[rows] by metric: 1, 0 or NaN (no verdict).
    """

    rows: Sequence[Row]
    scores: Mapping[str, NDArray[np.float64]]
    verdicts: Mapping[str, NDArray[np.float64]]

    @classmethod
    def read(cls, rows: Sequence[Row], metrics: Sequence[str], *files: Path) -> Scores:
        """Read the files that `gradewire score` wrote for these rows. `metrics` name their scores in order.

        Raises:
            ValueError: A file has other rows, or the number of metrics differs.
        """
        columns: list[tuple[list[float], list[float]]] = []
        for file in files:
            lines = read_lines(file)
            if [line["id"] for line in lines] != [row["id"] for row in rows]:
                raise ValueError(f"{file} has other rows. Delete it and run again")
            for results in zip(*(line["scores"].values() for line in lines), strict=True):
                found = [each["score"] if each["status"] == "OK" else np.nan for each in results]
                said = [np.nan if each.get("correct") is None else float(each["correct"]) for each in results]
                columns.append((found, said))
        named = dict(zip(metrics, columns, strict=True))
        scores = {name: np.array(found, np.float64) for name, (found, _) in named.items()}
        return cls(rows, scores, {name: np.array(said, np.float64) for name, (_, said) in named.items()})

    def where(self, wanted: Callable[[Row], bool]) -> Scores:
        """Return the rows for which `wanted` returns True."""
        kept = np.array([wanted(row) for row in self.rows], np.bool_)
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        cut = [{name: values[kept] for name, values in each.items()} for each in (self.scores, self.verdicts)]
        return Scores(rows, cut[0], cut[1])

    def of_type(self, kind: str) -> Scores:
        """Return the rows of questions with this answer type."""
        return self.where(lambda row: row["answer_type"] == kind)

    def of_rows(self, rows: Iterable[Row]) -> Scores:
        """Return only these rows."""
        wanted = {row["id"] for row in rows}
        return self.where(lambda row: row["id"] in wanted)

    def only(self, metrics: Iterable[str]) -> Scores:
        """Return the scores of these metrics, each once, in this order."""
        names = list(dict.fromkeys(metrics))
        return replace(
            self,
            scores={name: self.scores[name] for name in names},
            verdicts={name: self.verdicts[name] for name in names},
        )

    def with_more(self, other: Scores) -> Scores:
        """Return the scores with other metrics' scores of the same rows.

        Raises:
            ValueError: The rows differ.
        """
        if [row["id"] for row in self.rows] != [row["id"] for row in other.rows]:
            raise ValueError("the scores are of other rows")
        return replace(self, scores={**self.scores, **other.scores}, verdicts={**self.verdicts, **other.verdicts})

    @cached_property
    def labels(self) -> NDArray[np.float64]:
        """The labels, float64[rows], 0 to 1."""
        return np.array([row["label"] for row in self.rows], np.float64)

    @property
    def right(self) -> NDArray[np.bool_]:
        """bool[rows], True for labels of at least 0.5."""
        return self.labels >= RIGHT_FROM

    def alone(self) -> Scores:
        """Return the rows whose prediction is not among the references."""
        return self.where(lambda row: row["evidence"] in ALONE)

    def own_alone(self) -> Scores:
        """Return the rows of `alone` whose prediction is an annotator's answer to the question itself."""
        return self.where(lambda row: row["evidence"] in ALONE - {Evidence.OTHER_QUESTION.value})

    def by_agreement(self) -> Scores:
        """Return the rows whose label can follow from agreement alone, with that label."""
        own = self.where(lambda row: row["evidence"] != "other_question")
        return replace(own, rows=[{**row, "label": row["agreement"]} for row in own.rows])

    def report(self, statistics: Sequence[Statistic] = REPORTED, compare: str = "") -> AgreementReport:
        """Compare the scores with the labels, and each metric with `compare` if it is given."""
        rows = JudgedRows(
            scores=self.scores,
            verdicts=self.verdicts,
            labels=self.labels,
            datasets=[""] * len(self.rows),
            models=[""] * len(self.rows),
            questions=[question_key(row["question"]) for row in self.rows],
        )
        pairs = [(compare, name) for name in self.scores if name != compare] if compare else []
        return agreement(rows, statistics=statistics, compare=pairs, compare_statistics=("auc", "pearson"))

    def best_cut(self, metric: str) -> float:
        """Return the cut with the most right verdicts: the midpoint of two scores, or the lowest score."""
        known = np.unique(self.scores[metric][np.isfinite(self.scores[metric])])
        cuts = np.concatenate([known[:1], (known[1:] + known[:-1]) / 2])
        return float(max(cuts, key=lambda cut: self.accuracy_at(metric, cut)))

    def accuracy_at(self, metric: str, cut: float) -> float:
        """Return the share of right verdicts if scores of at least `cut` are right. Failed rows count as wrong."""
        return float(((np.nan_to_num(self.scores[metric], nan=-np.inf) >= cut) == self.right).mean())


def run(rows: Sequence[Row], metrics: Sequence[str], results: Path, name: str) -> tuple[Path, Path]:
    """Score rows with metrics that need no judge; continue an earlier run. Return the rows' and the scores' file."""
    results.mkdir(parents=True, exist_ok=True)
    data = written(results / f"{name}.rows.jsonl", rows)
    out = results / f"{name}.jsonl"
    run_gradewire(
        *("score", data, "--embedded", "--metrics", ",".join(metrics), "--out", out),
        *("--fail-on", "never", "--quiet", resume_or_overwrite(out)),
    )
    return data, out


def judged(rows: Sequence[Row], metrics: Sequence[str], results: Path, name: str) -> Scores:
    """Score rows with the judge, one run for each metric, and read the scores."""
    results.mkdir(parents=True, exist_ok=True)
    data = written(results / f"{name}.rows.jsonl", rows)
    return Scores.read(rows, metrics, *(score_rows(data, (metric,), results / name) for metric in metrics))


def features_of_rows(rows: Sequence[Row], results: Path, name: str) -> ScoredRows:
    """Return rows with all features of the fit `votes`, and with labels 0 and 1."""
    whole = [{**row, "label": int(row["label"] >= RIGHT_FROM)} for row in rows]
    files = run(whole, (FEATURES_ONLY,), results, f"{name}-features")
    columns = (*COLUMNS, *(FittedFeature(each.name, each.monotone, each.width) for each in VOTE_FEATURES))
    return ScoredRows.read(*files, "vqa annotators", columns=columns)


def cross_validated(rows: ScoredRows, columns: Sequence[FittedFeature]) -> NDArray[np.float64]:
    """Return P(right), float64[rows], from fits with these features on the other folds' questions."""
    kept = [rows.columns.index(column) for column in columns]
    return held_out_probabilities(
        checked(columns, rows.values[:, kept], rows.labels, rows.questions, shapes=InputKinds(INPUT_KIND, rows.shapes))
    )


def _bounds(value: float, low: float, high: float, *, sign: str = "") -> str:
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]" if np.isfinite(value) else "-"


def _estimates(report: AgreementReport, statistic: Statistic) -> Iterator[str]:
    for metric in report.metrics:
        found = metric.headline[statistic]
        yield _bounds(found.value, found.low, found.high)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _code(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def rows_table(halves: Mapping[str, Sequence[Row]]) -> str:
    """Return the numbers of rows by evidence, answer type and half."""
    rows = [row for half in halves.values() for row in half]
    names = sorted({row["evidence"] for row in rows}, key=[each.value for each in Evidence].index)
    lines = []
    for name in names:
        found = [row for row in rows if row["evidence"] == name]
        counts = [str(sum(row["answer_type"] == kind for row in found)) for kind in TYPES]
        counts += [str(sum(row["evidence"] == name for row in half)) for half in halves.values()]
        right = sum(row["label"] >= RIGHT_FROM for row in found)
        lines.append([f"`{name}`", *counts, str(right)])
    return _table(["evidence", *TYPES, *(f"half {half}" for half in halves), "right"], lines)


def agreement_table(scores: Scores, chosen: Scores | None = None) -> str:
    """Return each metric's agreement with the labels; with `chosen`, also the accuracy at those rows' best cut."""
    report = scores.report(compare=FITTED if FITTED in scores.scores else "")
    columns = [list(_estimates(report, statistic)) for statistic in REPORTED]
    errors = []
    for values in scores.scores.values():
        known = np.isfinite(values)
        errors.append(f"{calibration_error(values[known], scores.right[known]):.3f}")
    columns.append(errors)
    heads = ["metric", "AUC", "Pearson", "accuracy", "ECE"]
    if chosen is not None:
        cuts = {name: chosen.best_cut(name) for name in scores.scores}
        columns.append([f"{scores.accuracy_at(name, cut):.3f} at {cut:.2f}" for name, cut in cuts.items()])
        heads.append("accuracy at the cut of half a")
    if report.comparisons:
        for statistic in ("auc", "pearson"):
            gains = {each.baseline: each.all_rows for each in report.comparisons if each.statistic == statistic}
            told = {name: _bounds(gain.value, gain.low, gain.high, sign="+") for name, gain in gains.items()}
            columns.append([told.get(name, "") for name in scores.scores])
            heads.append(f"{'AUC' if statistic == 'auc' else 'Pearson'}, gain of the first")
    return _table(heads, zip(_code(scores.scores), *columns, strict=True))


def type_table(scores: Scores) -> str:
    """Return AUC and Pearson by answer type."""
    columns, heads = [], ["metric"]
    for kind in TYPES:
        part = scores.of_type(kind)
        report = part.report(("auc", "pearson"))
        columns += [list(_estimates(report, "auc")), list(_estimates(report, "pearson"))]
        heads += [f"{kind} ({len(part.rows)}): {title}" for title in ("AUC", "Pearson")]
    return _table(heads, zip(_code(scores.scores), *columns, strict=True))


def fit_table(rows: ScoredRows, usual: NDArray[np.float64]) -> str:
    """Return the quality of fits on half a, cross-validated over questions, beside the usual fit's."""
    ways = {
        "`correctness?grader=none`, whose fit has seen votes on these questions": usual,
        "fit on these rows, usual features": cross_validated(rows, COLUMNS),
        "fit on these rows, with the features of votes": cross_validated(rows, rows.columns),
    }
    names = ("auc", "pearson", "accuracy", "brier", "ece")
    quality = {name: probability_quality(found, rows.labels > 0) for name, found in ways.items()}
    lines = [[name, *(f"{found[each]:.3f}" for each in names)] for name, found in quality.items()]
    return _table(["half a", "AUC", "Pearson", "accuracy", "Brier", "ECE"], lines)


def blocks(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Score missing rows, and yield the name and the text of each block of the document."""
    halves = {half: rows_of(options.data, half) for half in ("a", "b")}
    yield "rows", rows_table(halves)
    metrics = tuple(dict.fromkeys((*PLAIN, *chain.from_iterable(SETTINGS.values()))))
    scores = {
        half: Scores.read(rows, metrics, run(rows, metrics, options.results, half)[1]) for half, rows in halves.items()
    }
    chosen, reported = scores["a"], scores["b"]
    usual = chosen.scores["correctness?grader=none"]
    yield "fit", fit_table(features_of_rows(halves["a"], options.results, "a"), usual)
    yield "settings", agreement_table(chosen.only([*SETTINGS, *chain.from_iterable(SETTINGS.values())]))
    plain = reported.only(PLAIN)
    yield "report", agreement_table(plain, chosen)
    yield "types", type_table(plain)
    yield "alone", agreement_table(plain.of_type("other").alone())
    yield "own", agreement_table(plain.of_type("other").own_alone())
    yield "agreement", agreement_table(plain.by_agreement())
    for half, count, names in (
        ("a", CHOSEN_ROWS, ("lave", *LAVE_SETTINGS)),
        ("b", REPORTED_ROWS, ("lave", "judge_grade", "judge_verdict")),
    ):
        sample = sample_of(halves[half], half, count)
        beside = scores[half].only((FITTED, "smile", "vqa_accuracy")).of_rows(sample)
        by_judge = judged(sample, names, options.results, f"judged-{half}")
        yield f"judge-{half}", agreement_table(beside.with_more(by_judge))


def main() -> None:
    """Fit and write the fit, or score, compare and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--write-fit", type=Path, help="write the fit on half a to this file of the catalog")
    parser.add_argument("--date", help="ISO date of the fit; needed with --write-fit")
    options = parser.parse_args()
    if options.write_fit and not options.date:
        parser.error("--write-fit needs --date")
    if options.write_fit:
        rows = features_of_rows(rows_of(options.data, "a"), options.results, "a")
        write_fit(options.write_fit, fitted((rows,), Recipe(DEFAULT_MODEL, options.date), "a", figures=True))
        return
    judge_environment(options.judges)
    for name, block in blocks(options):
        write_block(options.document, name, block)
    sys.stderr.write(f"{machine()}, load {os.getloadavg()[0]:.0f}\n")


if __name__ == "__main__":
    main()
