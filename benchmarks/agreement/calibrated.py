"""Fits `calibrated` on the fit split of EVOUNA's development rows and writes what it is worth on other rows.

The features are what the served metric says (`calibrated?features_only=true`), and probabilities are evaluated by the
server's own code. Figures are taken on the held-out split, and on NQ301 without the questions that EVOUNA's development
rows have too; they go into docs/research/calibrated.md. Scores are kept under --results: an interrupted run goes on.
The rows are not part of the project.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.agreement.calibrated_fitting import fitted
from benchmarks.agreement.calibrated_rows import ScoredRows, without_questions
from benchmarks.agreement.calibrated_tables import figures_block
from benchmarks.common.command import run_gradewire
from benchmarks.common.document import write_block
from benchmarks.common.kept_scores import resume_or_overwrite
from benchmarks.common.rows import DATA_DIRECTORY, require_files

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MODEL = "all-MiniLM-L6-v2"
METRICS = "smile:v1,calibrated?features_only=true"
FILES = {"evouna": "evouna_dev.jsonl", "nq301": "nq301_human.jsonl"}


def main() -> None:
    """Scores what is not scored yet, fits, reads, and replaces the block of the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "calibrated")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "research" / "calibrated.md")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="encoder; default: %(default)s")
    parser.add_argument("--beside", metavar="MODEL", help="compare with `smile:v1` by this encoder too")
    parser.add_argument("--write-fit", type=Path, help="write the fit here: the catalog's file")
    parser.add_argument("--date", help="ISO date that the fit carries; needed with --write-fit")
    parser.add_argument(
        "--ablation", action="store_true", help="also what groups of features are worth, on the fit split"
    )
    options = parser.parse_args()
    if options.write_fit and not options.date:
        parser.error("--write-fit needs --date")
    require_files(*(options.data / file for file in FILES.values()))
    options.results.mkdir(parents=True, exist_ok=True)
    evouna, nq301 = (_scored(options.data / file, name, options) for name, file in FILES.items())
    block_name = "figures" if options.model == DEFAULT_MODEL else f"figures of {options.model}"
    fit_split, held_out_split = evouna.half("a"), evouna.half("b")
    fit = fitted(fit_split, options.model, options.date or "")
    if options.write_fit:
        options.write_fit.write_text(json.dumps(fit.form, separators=(",", ":")) + "\n", "utf-8")
        sys.stderr.write(f"{options.write_fit}: written; SHA-256 of its rows {fit_split.sha256}\n")
    others = without_questions(nq301, evouna)
    write_block(
        options.document, block_name, figures_block(fit, fit_split, held_out_split, others, ablation=options.ablation)
    )


def _scored(data: Path, name: str, options: argparse.Namespace) -> ScoredRows:
    rows = _scored_with(options.model, data, name, options.results)
    if not options.beside:
        return rows
    return rows.beside(options.beside, _scored_with(options.beside, data, name, options.results))


def _scored_with(model: str, data: Path, name: str, results: Path) -> ScoredRows:
    """Scores the rows with the served metric, unless a run with the same code and model did."""
    out = results / f"{name}-{model}.jsonl"
    run_gradewire(
        *("score", data, "--embedded", "--metrics", METRICS, "--model", model, "--out", out),
        *("--fail-on", "never", "--quiet", resume_or_overwrite(out)),
    )
    return ScoredRows.read(data, out)


if __name__ == "__main__":
    main()
