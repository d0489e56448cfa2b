"""Measure `gradewire calibrate --metric correctness --level` on draws of few rows; write a block of travel.md.

Each source is the user in turn: a level is fitted on drawn rows, and measured on the source's remaining rows. The fit
below the level is the catalog's, and then one that has seen neither the source nor its questions.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.agreement.correctness import ROOT, other_sets, row_options, scored_sets
from benchmarks.agreement.correctness_rows import COLUMNS, ScoredRows, together, without_questions
from benchmarks.common.measurements import write_block

from gradewire_models.catalog.loading import find_model
from gradewire_server.metrics.correctness.features import INPUT_KIND
from gradewire_stats.calibration.fit_correctness import fitted_form
from gradewire_stats.calibration.level import LevelRows, fit_level
from gradewire_stats.calibration.quality import calibration_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DRAWN_ROWS: Final = 50
DRAWS: Final = 20
AIM: Final = 0.06


def main() -> None:
    """Score missing rows, fit levels on draws, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "travel.md")
    row_options(parser)
    options = parser.parse_args()
    evouna, nq301, drawn = scored_sets(options)
    pupils, votes, flips = other_sets(options)
    nq, tq = (_of_evouna(evouna, dataset) for dataset in ("nq", "tq"))
    sources = {"NQ301": nq301, "pupils": pupils, "EVOUNA tq": tq, "votes of VQA v2": votes, "flips": flips}
    shipped = catalog_form(options.model)
    lines = [line_of(f"{name}, the catalog's fit", shipped, rows) for name, rows in sources.items()]
    for name, rows in sources.items():
        others = [other for other in (nq, *sources.values(), drawn) if other is not rows]
        form = fitted_form(together(*(without_questions(other, rows) for other in others)))
        lines.append(line_of(f"{name}, left out of the fit", form, rows))
    write_block(options.document, "levels", table(lines))


def _of_evouna(rows: ScoredRows, dataset: str) -> ScoredRows:
    return rows.where(lambda row: row["dataset"] == dataset)


def catalog_form(model: str) -> Mapping[str, Any]:
    """Return the catalog's fit of `correctness` for an encoder, without a grader."""
    fits = (each for each in find_model(model).calibrations if each.metric == "correctness" and not each.parameters)
    form: dict[str, Any] = json.loads(next(fits).fit)
    return form


def level_rows(form: Mapping[str, Any], rows: ScoredRows) -> LevelRows:
    """Return the rows with the form's probabilities."""
    names = [column.name for column in COLUMNS]
    values = rows.values[:, [names.index(feature["name"]) for feature in form["features"]]]
    shapes = rows.shapes[:, [INPUT_KIND.index(name) for name in form["distance"]["shape"]]]
    return LevelRows.of_form(form, values, shapes, rows.labels > 0, rows.keys)


def line_of(name: str, form: Mapping[str, Any], rows: ScoredRows) -> list[str]:
    """Return the table's line for a source and a fit."""
    known = level_rows(form, rows)
    found = np.array(list(measured_draws(known)))
    before, after, accuracy_before, accuracy_after = found.mean(axis=0)
    return [
        name,
        str(len(known.right)),
        f"{before:.3f}",
        f"{after:.3f}",
        f"{found[:, 1].max():.3f}",
        f"{(found[:, 1] <= AIM).sum()} of {DRAWS}",
        f"{accuracy_before:.3f}",
        f"{accuracy_after:.3f}",
    ]


def measured_draws(rows: LevelRows) -> Iterator[tuple[float, float, float, float]]:
    """Yield, for each draw, ECE before and after the level, and accuracy before and after, on the remaining rows."""
    for seed in range(DRAWS):
        drawn = np.zeros(len(rows.right), np.bool_)
        drawn[np.random.default_rng(seed).permutation(len(drawn))[:DRAWN_ROWS]] = True
        rest = rows.where(~drawn)
        both = rest.probabilities(), rest.probabilities(fit_level(rows.where(drawn)))
        before, after = (calibration_error(found, rest.right) for found in both)
        accuracy_before, accuracy_after = (float(np.mean((found >= 0.5) == rest.right)) for found in both)
        yield before, after, accuracy_before, accuracy_after


def table(lines: list[list[str]]) -> str:
    """Return the lines as a Markdown table."""
    aim = f"draws up to {AIM:g}"
    head = ["", "rows", "ECE before", "ECE after", "highest", aim, "accuracy before", "accuracy after"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
