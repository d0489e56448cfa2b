"""Compare `correctness` with and without a grader on unseen rows; write benchmarks/results/travel.md.

The grader learnt from half a of EVOUNA, of the pupils' answers and of the flips for development, so only half b of
these is used, also by the fits. Of NQ301, questions that half a has are left out. The grader has never read the votes
of VQA v2, nor the words of the drawn rows from `grader-texts --part eval`. Each row is read by a fit on the other
folds' questions. The fit that --write-fit writes uses all of these rows. Scores are stored in --results, so an
interrupted run resumes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.agreement.correctness import (
    FILES,
    FLIP_PAIRS,
    PUPILS,
    ROOT,
    VOTES,
    flips_of,
    row_options,
    scored,
    votes_of,
    write_fit,
    written,
)
from benchmarks.agreement.correctness_rows import DRAWN, FLIPS, Recipe, ScoredRows, fitted
from benchmarks.agreement.grader import unread
from benchmarks.agreement.travel import CONFIDENCE, ReadSet, Way, changes_table, ways_table
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import Row, read_lines, require_files

from gradewire_stats.calibration.labelled_rows import folds_of_keys, half_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

FOLDS = 5
TITLES = (
    "EVOUNA, half b",
    "NQ301, other questions",
    "drawn rows of held-back words",
    "pupils' answers, half b",
    "votes of VQA v2",
    "flips for development, half b",
)


def main() -> None:
    """Score missing rows, compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "travel.md")
    parser.add_argument("--write-fit", type=Path, help="write the fit on all rows to this file of the catalog")
    parser.add_argument("--date", help="ISO date of the fit; needed with --write-fit")
    row_options(parser)
    parser.set_defaults(grader="grader-mini")
    options = parser.parse_args()
    if options.write_fit and not options.date:
        parser.error("--write-fit needs --date")
    parts = tuple(scored(file, source, options) for source, file in unread_files(options).items())
    recipe = Recipe(options.model, options.date or "", options.grader)
    if options.write_fit:
        write_fit(options.write_fit, fitted(parts, recipe, "b", figures=True))
    plain = tuple(part.without_grader() for part in parts)
    ways = [crossed("without", plain, Recipe(options.model)), crossed(f"with {options.grader}", parts, recipe)]
    sets = [
        ReadSet(title, part.labels > 0, part.keys, [way[index] for way in ways])
        for index, (title, part) in enumerate(zip(TITLES, parts, strict=True))
    ]
    tables = (ways_table(sets), changes_table(sets), silent_table(sets))
    write_block(options.document, f"with {options.grader}", "\n\n".join(tables))


def unread_files(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files of the rows that the grader has not read, by source, in the order of `TITLES`."""
    results, data = options.results, options.data
    require_files(data / PUPILS, data / VOTES / "annotations.json")
    public = public_unread_files(options)
    return {
        **{source: public[source] for source in ("evouna", "nq301", DRAWN)},
        "pupils": written(results / "pupils-b.jsonl", _half_b(read_lines(data / PUPILS))),
        "vqa votes": written(results / "votes.jsonl", votes_of(data / VOTES)),
        FLIPS: public[FLIPS],
    }


def public_unread_files(options: argparse.Namespace) -> dict[str, Path]:
    """Return those of `unread_files` that `make bench-data`, this checkout and a drawing program provide."""
    results = options.results
    evouna, nq301 = (options.data / name for name in FILES.values())
    require_files(evouna, nq301, options.drawn, *FLIP_PAIRS)
    results.mkdir(parents=True, exist_ok=True)
    return {
        "evouna": written(results / "evouna-b.jsonl", _half_b(read_lines(evouna))),
        "nq301": written(results / "nq301-unread.jsonl", unread(read_lines(nq301), read_lines(evouna))),
        DRAWN: options.drawn,
        FLIPS: written(results / "flips-b.jsonl", _half_b(flips_of(*FLIP_PAIRS))),
    }


def _half_b(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if half_of(row["question"]) == "b"]


def crossed(name: str, parts: tuple[ScoredRows, ...], recipe: Recipe) -> list[Way]:
    """Return each part's probabilities, and flags at the default confidence, from fits on the other folds."""
    folds = np.split(
        folds_of_keys([key for part in parts for key in part.keys], FOLDS),
        np.cumsum([len(part.rows) for part in parts])[:-1],
    )
    found: list[tuple[NDArray[np.float64], NDArray[np.bool_]]] = [
        (np.empty(len(part.rows)), np.empty(len(part.rows), np.bool_)) for part in parts
    ]
    for fold in range(FOLDS):
        fit = fitted(tuple(_of(part, of != fold) for part, of in zip(parts, folds, strict=True)), recipe, "b")
        for part, of, (probabilities, flags) in zip(parts, folds, found, strict=True):
            inside = _of(part, of == fold)
            probabilities[of == fold] = fit.probabilities(inside)
            flags[of == fold] = fit.uncertain(inside, CONFIDENCE)
    return [Way(name, *each) for each in found]


def _of(part: ScoredRows, kept: NDArray[np.bool_]) -> ScoredRows:
    wanted = {id(row) for row, keep in zip(part.rows, kept, strict=True) if keep}
    return part.where(lambda row: id(row) in wanted)


def silent_table(sets: Sequence[ReadSet]) -> str:
    """Return a Markdown table of the errors without UNCERTAIN, as shares of the wrong and of the right answers."""
    lines = ["| | | wrong, called right | right, called wrong |", "|---|---|---:|---:|"]
    for each in sets:
        for way in each.ways:
            called, sure = way.found >= 0.5, ~way.flagged
            shares = ((called & sure)[~each.right].mean(), (~called & sure)[each.right].mean())
            lines.append(f"| {each.name} | {way.name} | {shares[0]:.3f} | {shares[1]:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
