"""Measure two versions of `correctness` on sources that they were not fitted on; write benchmarks/results/travel.md.

Each source is left out in turn. "Before" is version 2, with fits that have not seen the rows either. First write its
results for the rows into --before, under the file names in --data and --drawn, votes.jsonl and flips.jsonl.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.correctness import FILES, PUPILS, ROOT, other_sets, row_options, scored, scored_sets
from benchmarks.agreement.correctness_rows import DRAWN, Fitted, Recipe, ScoredRows, fitted, together, without_questions
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import HEADLINE_MODELS, read_lines, require_files

from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.fit_correctness import held_out_probabilities
from gradewire_stats.calibration.quality import calibration_error, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64], NDArray[np.bool_]], float]

DRAWS = 1000
HEAD = (
    "Pearson",
    "AUC",
    "accuracy",
    "ECE",
    "most certain 90 %",
    "80 %",
    "50 %",
    "UNCERTAIN",
    "accuracy of these",
    "of the others",
    "wrong verdicts UNCERTAIN",
)
BEFORE = "version 2"
CONFIDENCE = 0.9
EVOUNA, NQ301 = (Path(file).stem for file in FILES.values())
VOTES_AND_FLIPS = ("votes.jsonl", "flips.jsonl")


def pearson(found: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return Pearson's correlation, or NaN if either side is constant."""
    return float(np.corrcoef(found, right)[0, 1]) if np.ptp(found) and right.any() and not right.all() else np.nan


CHANGES: dict[str, Statistic] = {
    "Pearson": pearson,
    "AUC": auc,
    "accuracy": lambda found, right: float(np.mean((found >= 0.5) == right)),
    "ECE": calibration_error,
}


@dataclass(frozen=True)
class Way:
    """A version's results for a set of rows.

    Attributes:
        found: P(right), float64[rows].
        flagged: bool[rows], True for UNCERTAIN at the default confidence.
    """

    name: str
    found: NDArray[np.float64]
    flagged: NDArray[np.bool_]


@dataclass(frozen=True)
class ReadSet:
    """Rows, and several versions' results; tables compare each version with the first.

    Attributes:
        right: bool[rows], True for a right answer.
        keys: Key of each row's question; the bootstrap draws whole questions.
    """

    name: str
    right: NDArray[np.bool_]
    keys: Sequence[str]
    ways: Sequence[Way]


def ways_table(sets: Sequence[ReadSet]) -> str:
    """Return a Markdown table with a line for each set and version."""
    lines = [f"| | | {' | '.join(HEAD)} |", f"|---|---|{'---:|' * len(HEAD)}"]
    for each in sets:
        for way in each.ways:
            found = measured(way.name, way.found, each.right, way.flagged)
            hits = (way.found >= 0.5) == each.right
            of_flagged = f"{hits[way.flagged].mean():.3f}" if way.flagged.any() else ""
            numbers = (found.pearson, found.auc, found.accuracy, found.ece, *found.at_coverage)
            told = [*(f"{number:.3f}" for number in numbers), f"{found.uncertain:.1%}", of_flagged]
            told += [f"{found.accuracy_certain:.3f}", f"{found.held:.0%}"]
            lines.append(f"| {each.name}, {found.rows} rows | {way.name} | {' | '.join(told)} |")
    return "\n".join(lines)


def changes_table(sets: Sequence[ReadSet]) -> str:
    """Return a Markdown table of the changes since the first version, with 95 % intervals."""
    lines = [f"| | | {' | '.join(CHANGES)} |", f"|---|---|{'---:|' * len(CHANGES)}"]
    for each in sets:
        for way in each.ways[1:]:
            told = [
                "{:+.3f} [{:+.3f}, {:+.3f}]".format(*change(statistic, each.ways[0].found, way.found, each))
                for statistic in CHANGES.values()
            ]
            lines.append(f"| {each.name} | {way.name} | {' | '.join(told)} |")
    return "\n".join(lines)


def change(
    statistic: Statistic,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    rows: ReadSet,
) -> tuple[float, float, float]:
    """Return `after` minus `before` in `statistic`, and its 95 % interval from paired draws of questions."""
    _, clusters = np.unique(np.array(rows.keys, dtype=np.str_), return_inverse=True)
    order = np.argsort(clusters, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    draw = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        drawn = np.concatenate([members[cluster] for cluster in draw.integers(len(members), size=len(members))])
        right = rows.right[drawn]
        found.append(statistic(after[drawn], right) - statistic(before[drawn], right))
    low, high = np.nanpercentile(found, (2.5, 97.5))
    return statistic(after, rows.right) - statistic(before, rows.right), float(low), float(high)


def main() -> None:
    """Score missing rows, fit, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="directory with the results of the release before")
    parser.add_argument("--drawn-evaluation", type=Path, required=True, help="drawn rows of the held-back vocabulary")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "travel.md")
    row_options(parser)
    options = parser.parse_args()
    require_files(*(options.data / name for name in FILES.values()))
    before = {
        file.stem: read_before(options.before / file.name)
        for file in (
            *(options.data / name for name in (*FILES.values(), PUPILS, *VOTES_AND_FLIPS)),
            *(options.drawn, options.drawn_evaluation),
        )
    }
    rows, name = Rows.scored(options), "version 3"
    read = [read_set(each, before[each.file], name) for each in _judged(rows, options)]
    cells = cells_table(before[EVOUNA], rows.evouna, [(name, cells_of(rows, _fit(rows.parts, options)))])
    write_block(options.document, "figures", f"{ways_table(read)}\n\n{changes_table(read)}")
    write_block(options.document, "cells", cells)


@dataclass(frozen=True)
class Rows:
    """All sources' rows.

    Attributes:
        drawn: Drawn rows for fits.
        evaluation: Drawn rows with the held-back vocabulary.
        more: Pupils' answers, votes and flips.
    """

    evouna: ScoredRows
    nq301: ScoredRows
    drawn: ScoredRows
    evaluation: ScoredRows
    more: tuple[ScoredRows, ...]

    @classmethod
    def scored(cls, options: Namespace) -> Rows:
        """Score missing rows."""
        evouna, nq301, drawn = scored_sets(options)
        evaluation = scored(options.drawn_evaluation, DRAWN, options)
        return cls(evouna, nq301, drawn, evaluation, other_sets(options))

    @property
    def parts(self) -> tuple[ScoredRows, ...]:
        """All sources' rows, without the held-out split and its questions."""
        return self.evouna.half("a"), without_questions(self.nq301, self.evouna.half("b")), self.drawn, *self.more


@dataclass(frozen=True)
class _Judged:
    title: str
    file: str
    rows: ScoredRows
    fit: Fitted


def _judged(rows: Rows, options: Namespace) -> Iterator[_Judged]:
    fit_split, others, drawn, *more = rows.parts
    everything, new = _fit(rows.parts, options), without_questions(rows.nq301, rows.evouna)
    yield _Judged("EVOUNA's held-out split", EVOUNA, rows.evouna.half("b"), everything)
    yield _Judged("the same, EVOUNA left out", EVOUNA, rows.evouna.half("b"), _fit((new, drawn, *more), options))
    yield _Judged("NQ301, left out", NQ301, new, _fit((fit_split, drawn, *more), options))
    yield _Judged("drawn rows, left out", options.drawn.stem, drawn, _fit((fit_split, others, *more), options))
    for place, (title, file) in enumerate(
        (("pupils' answers", Path(PUPILS).stem), ("votes of VQA v2", "votes"), ("flips for development", "flips"))
    ):
        left = [each for index, each in enumerate(more) if index != place]
        yield _Judged(f"{title}, left out", file, more[place], _fit((fit_split, others, drawn, *left), options))
    yield _Judged("drawn rows of held-back words", options.drawn_evaluation.stem, rows.evaluation, everything)


def _fit(parts: tuple[ScoredRows, ...], options: Namespace) -> Fitted:
    return fitted(parts, Recipe(options.model), "a")


def read_set(judged: _Judged, before: Mapping[str, tuple[float, bool]], name: str) -> ReadSet:
    """Return the rows with the results of the version before, and of the fit that is called `name`."""
    said = [before[row["id"]] for row in judged.rows.rows]
    first = Way(BEFORE, np.array([each[0] for each in said]), np.array([each[1] for each in said]))
    probabilities = judged.fit.probabilities(judged.rows)
    second = Way(name, probabilities, judged.fit.uncertain(judged.rows, CONFIDENCE))
    return ReadSet(judged.title, judged.rows.labels > 0, judged.rows.keys, [first, second])


def read_before(file: Path) -> dict[str, tuple[float, bool]]:
    """Return P(right) and the flag UNCERTAIN, by row ID, from a release's output.

    Raises:
        ValueError: A row has no probability.
    """
    require_files(file)
    found = {}
    for each in read_lines(file):
        result = each["scores"]["correctness"]
        if result["score"] is None:
            raise ValueError(f"{file}: row {each['id']} has no probability")
        found[each["id"]] = (float(result["score"]), "UNCERTAIN" in result.get("warnings", ()))
    return found


def cells_of(rows: Rows, fit: Fitted) -> dict[str, NDArray[np.float64]]:
    """Return P(right) on the held-out split by `fit`, and on the fit split by cross-validation."""
    crossed = held_out_probabilities(together(*rows.parts))
    return {
        "held-out split": fit.probabilities(rows.evouna.half("b")),
        "fit split, cross-validated": crossed[: len(rows.parts[0].rows)],
    }


def cells_table(
    before: Mapping[str, tuple[float, bool]],
    evouna: ScoredRows,
    told: Sequence[tuple[str, Mapping[str, NDArray[np.float64]]]],
) -> str:
    """Return a table of Pearson in the four GPT cells; omit version 1 on its own fit split."""
    splits = {"held-out split": evouna.half("b"), "fit split, cross-validated": evouna.half("a")}
    names = [(dataset, model) for dataset in ("nq", "tq") for model in HEADLINE_MODELS]
    lines = [f"| | | {' | '.join(map(' '.join, names))} | mean |", f"|---|---|{'---:|' * (len(names) + 1)}"]
    for split, rows in splits.items():
        ways = [(name, found[split]) for name, found in told]
        if split == "held-out split":
            ways = [(BEFORE, np.array([before[row["id"]][0] for row in rows.rows])), *ways]
        for name, found in ways:
            inside = [np.array([(row["dataset"], row["model"]) == cell for row in rows.rows]) for cell in names]
            values = [float(np.corrcoef(found[cell], rows.labels[cell])[0, 1]) for cell in inside]
            lines.append(f"| {split} | {name} | {' | '.join(f'{each:.3f}' for each in (*values, np.mean(values)))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
