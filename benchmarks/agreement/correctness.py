"""Fit `correctness` on the labelled and drawn rows, and report its quality on unseen rows.

Two results go into benchmarks/results/correctness.md: EVOUNA's held-out split, with a fit on EVOUNA's fit split and the
other sources; and NQ301 without EVOUNA's questions, with a fit without NQ301. The written fit uses all rows. Scores are
stored in --results, so an interrupted run resumes. `gradewire models train grader-texts` writes the drawn rows.

This is the fit without a grader; benchmarks.agreement.with_grader makes the other one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agreement.correctness_rows import (
    COLUMNS,
    DRAWN,
    FLIPS,
    WITH_GRADER,
    Fitted,
    Recipe,
    ScoredRows,
    fitted,
    without_questions,
)
from benchmarks.agreement.correctness_tables import Read, tables_block
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_lines, require_files, resume_or_overwrite
from benchmarks.common.servers import run_gradewire

from gradewire_proto.wire_rules import NO_GRADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MODEL = "all-MiniLM-L6-v2"
FILES = {"evouna": "evouna_dev.jsonl", "nq301": "nq301_human.jsonl"}
PUPILS = "pupils_dev.jsonl"
VOTES = "vqav2_smallval"
FLIP_PAIRS = tuple(ROOT / "examples" / "flips" / f"{name}.jsonl" for name in ("development", "development-2"))
RESULTS = ROOT / "benchmarks" / "results" / "correctness"
_MOST_ALONE, _LEAST_AGREED = 1, 4
"""An annotator's answer is wrong if nobody else gave it, and right if three others did. Answers between are left out.
VQA accuracy (Antol et al. 2015) is 0 and 1 for these.
"""


def main() -> None:
    """Score missing rows, fit, evaluate, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "correctness.md")
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
    more = other_sets(options)
    parts = (evouna.half("a"), without_questions(nq301, evouna.half("b")), drawn, *more)
    recipe = Recipe(options.model, options.date or "")
    held_out = Read("held-out split", evouna.half("b"), fitted(parts, recipe, "a", figures=True))
    others = Read(
        "NQ301 without shared questions",
        without_questions(nq301, evouna),
        fitted((evouna.half("a"), drawn, *more), recipe, "a"),
    )
    block = "figures" + (f" of {options.model}" if options.model != DEFAULT_MODEL else "")
    write_block(options.document, block, tables_block(held_out, others, parts, ablation=options.ablation))
    if options.write_fit:
        write_fit(options.write_fit, fitted((evouna, nq301, drawn, *more), recipe, "both", figures=True))


def write_fit(path: Path, fit: Fitted) -> None:
    """Write a fit to a file of the catalog, and its warnings to standard error."""
    path.write_text(json.dumps(fit.form, separators=(",", ":")) + "\n", "utf-8")
    sys.stderr.write(f"{path}: written; {'; '.join(fit.warnings) or 'no warnings'}\n")


def row_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the rows, the encoder and the scores' directory."""
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument(
        "--drawn", type=Path, default=DATA_DIRECTORY / "drawn_train.jsonl", help="drawn rows; default: %(default)s"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--store", type=Path, help="directory of the engine's store, for a faster second run")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="encoder; default: %(default)s")
    parser.add_argument("--grader", default="", help="grader whose logit becomes a feature")


def scored_sets(options: argparse.Namespace, model: str = "") -> tuple[ScoredRows, ScoredRows, ScoredRows]:
    """Return the EVOUNA, NQ301 and drawn rows, after scoring missing rows."""
    evouna, nq301 = (options.data / file for file in FILES.values())
    require_files(evouna, nq301, options.drawn)
    return (
        scored(evouna, "evouna", options, model),
        scored(nq301, "nq301", options, model),
        scored(options.drawn, DRAWN, options, model),
    )


def other_sets(options: argparse.Namespace) -> tuple[ScoredRows, ScoredRows, ScoredRows]:
    """Return pupils' answers, the votes of VQA v2 and the flips for development, after scoring missing rows."""
    pupils, votes = options.data / PUPILS, options.data / VOTES
    require_files(pupils, votes / "annotations.json", *FLIP_PAIRS)
    options.results.mkdir(parents=True, exist_ok=True)
    return (
        scored(pupils, "pupils", options),
        scored(written(options.results / "votes.jsonl", votes_of(votes)), "vqa votes", options),
        scored(written(options.results / "flips.jsonl", flips_of(*FLIP_PAIRS)), FLIPS, options),
    )


def votes_of(directory: Path) -> Iterator[Row]:
    """Yield one annotator's answer to each question of VQA v2 as a prediction, with the other answers as references."""
    files = (json.loads((directory / name).read_text("utf-8")) for name in ("questions.json", "annotations.json"))
    questions, annotations = files
    asked = {each["question_id"]: each["question"] for each in questions["questions"]}
    for each in annotations["annotations"]:
        votes = Counter(answer["answer"] for answer in each["answers"])
        for place, (said, count) in enumerate(votes.items()):
            others = [answer for answer, left in (votes - Counter([said])).most_common() if left]
            if others and not _MOST_ALONE < count < _LEAST_AGREED:
                yield {
                    "id": f"vqa-{each['question_id']}-{place}",
                    "question": asked[each["question_id"]],
                    "references": others,
                    "prediction": said,
                    "label": int(count >= _LEAST_AGREED),
                }


def flips_of(*files: Path) -> Iterator[Row]:
    """Yield both answers of each pair as rows; `kind` is the pair's kind."""
    for pair in chain.from_iterable(map(read_lines, files)):
        for name, said, label in (("answer", pair["answer"], 1), ("changed", pair["changed"], pair["label"])):
            row = {name: pair[name] for name in ("question", "references", "kind")}
            yield {"id": f"{pair['id']}-{name}", **row, "prediction": said, "label": label}


def written(file: Path, rows: Iterable[Row]) -> Path:
    """Write rows to a file of JSON lines, and return the file."""
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return file


def scored(data: Path, source: str, options: argparse.Namespace, model: str = "") -> ScoredRows:
    """Return a file's rows with features from `model`, by default the encoder in `options`."""
    options.results.mkdir(parents=True, exist_ok=True)
    model = model or options.model
    out = options.results / f"{data.stem}-{model}{'-' * bool(options.grader)}{options.grader}.jsonl"
    metric = f"correctness?features_only=true&grader={options.grader or NO_GRADER}"
    store = ("--disk-directory", options.store) if options.store else ()
    run_gradewire(
        *("score", data, "--embedded", "--metrics", metric, "--model", model, "--out", out, *store),
        *("--fail-on", "never", "--quiet", resume_or_overwrite(out)),
    )
    return ScoredRows.read(data, out, source, columns=WITH_GRADER if options.grader else COLUMNS)


if __name__ == "__main__":
    main()
