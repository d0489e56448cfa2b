"""Fit `correctness` on the labelled and drawn rows, and report its quality on unseen rows.

Two results go into docs/research/correctness.md: EVOUNA's held-out split, with a fit on EVOUNA's fit split, NQ301 and
drawn rows; and NQ301 without EVOUNA's questions, with a fit without NQ301. The written fit uses all rows. Scores are
stored in --results, so an interrupted run resumes. `gradewire models train grader-texts` writes the drawn rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.agreement.correctness_rows import DRAWN, RESULT, Recipe, ScoredRows, fitted, without_questions
from benchmarks.agreement.correctness_tables import Read, tables_block
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, require_files, resume_or_overwrite
from benchmarks.common.servers import run_gradewire

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MODEL = "all-MiniLM-L6-v2"
FILES = {"evouna": "evouna_dev.jsonl", "nq301": "nq301_human.jsonl"}
RESULTS = ROOT / "benchmarks" / "results" / "correctness"


def main() -> None:
    """Score missing rows, fit, evaluate, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "research" / "correctness.md")
    parser.add_argument("--beside", metavar="MODEL", help="also compare with `smile:one_pass` with this encoder")
    parser.add_argument("--write-fit", type=Path, help="write the fit on all rows to this file of the catalog")
    parser.add_argument("--date", help="ISO date of the fit; needed with --write-fit")
    parser.add_argument("--ablation", action="store_true", help="also evaluate fits without each group of features")
    row_options(parser)
    options = parser.parse_args()
    if options.write_fit and not options.date:
        parser.error("--write-fit needs --date")
    evouna, nq301, drawn = scored_sets(options)
    if options.beside:
        beside = scored_sets(options, options.beside)
        evouna, nq301, drawn = (
            rows.beside(options.beside, other) for rows, other in zip((evouna, nq301, drawn), beside, strict=True)
        )
    parts = (evouna.half("a"), without_questions(nq301, evouna.half("b")), drawn)
    recipe = Recipe(options.model, options.date or "", options.grader)
    held_out = Read("held-out split", evouna.half("b"), fitted(parts, recipe, "a", figures=True))
    others = Read(
        "NQ301 without shared questions", without_questions(nq301, evouna), fitted((parts[0], drawn), recipe, "a")
    )
    block = "figures" + (f" of {options.model}" if options.model != DEFAULT_MODEL else "")
    block += f" with {options.grader}" if options.grader else ""
    write_block(options.document, block, tables_block(held_out, others, parts, ablation=options.ablation))
    if options.write_fit:
        fit = fitted((evouna, nq301, drawn), recipe, "both", figures=True)
        options.write_fit.write_text(json.dumps(fit.form, separators=(",", ":")) + "\n", "utf-8")
        sys.stderr.write(f"{options.write_fit}: written; {'; '.join(fit.warnings) or 'no warnings'}\n")


def row_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the rows, the encoder and the scores' directory."""
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument(
        "--drawn", type=Path, default=DATA_DIRECTORY / "drawn_train.jsonl", help="drawn rows; default: %(default)s"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--store", type=Path, help="directory of the engine's store, for a faster second run")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="encoder; default: %(default)s")
    parser.add_argument("--grader", default="", help="grader whose logit becomes a feature; needs --logits")
    parser.add_argument(
        "--logits",
        type=Path,
        action="append",
        default=[],
        help="JSON file of logits by row id, from models that were not trained on the row; may be repeated",
    )


def scored_sets(options: argparse.Namespace, model: str = "") -> tuple[ScoredRows, ScoredRows, ScoredRows]:
    """Return the EVOUNA, NQ301 and drawn rows, after scoring missing rows."""
    evouna, nq301 = (options.data / file for file in FILES.values())
    require_files(evouna, nq301, options.drawn, *options.logits)
    return (
        scored(evouna, "evouna", options, model),
        scored(nq301, "nq301", options, model),
        scored(options.drawn, DRAWN, options, model),
    )


def scored(data: Path, source: str, options: argparse.Namespace, model: str = "") -> ScoredRows:
    """Return a file's rows with features from `model`, by default the encoder in `options`."""
    options.results.mkdir(parents=True, exist_ok=True)
    model = model or options.model
    out = options.results / f"{data.stem}-{model}.jsonl"
    store = ("--disk-directory", options.store) if options.store else ()
    run_gradewire(
        *("score", data, "--embedded", "--metrics", RESULT, "--model", model, "--out", out, *store),
        *("--fail-on", "never", "--quiet", resume_or_overwrite(out)),
    )
    rows = ScoredRows.read(data, out, source)
    if not options.grader:
        return rows
    logits: dict[str, float] = {}
    for file in options.logits:
        logits |= json.loads(file.read_text("utf-8"))
    return rows.with_grader(logits)


if __name__ == "__main__":
    main()
