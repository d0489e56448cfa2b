"""Measure how all metrics without an LLM agree with human labels; write benchmarks/results/agreement.md.

Scores and the engine's store are kept in --results. An interrupted run resumes, and a complete run computes no scores
again; the block states if the metrics' code has changed in the meantime.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, note_sources, require_files, same_sources
from benchmarks.common.servers import run_gradewire
from deploy.local.apt_package import PackageMissingError, unpacked

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "benchmarks" / "results" / "agreement.md"
EXIT_NO_WORDNET = 2

# Each group is one run because a request can have at most 16 metrics. The references are aliases of one answer instead
# of ten annotators' answers, so the VQA metrics count agreeing references and do not leave each out in turn.
METRICS = {
    "encoders": (
        *("smile:v1", "smile:fast", "smile:paper", "smile:reference_code", "sbert", "sfve"),
        *("bertscore", "bertscore?idf=prepared", "bertscore?with_question=true"),
    ),
    "words": (
        *("exact_match", "easy_match", "lexical_match"),
        *("vqa_accuracy?consensus=direct", "soft_vqa_accuracy?consensus=direct"),
        *("rouge_l", "rouge_l?measure=recall", "bleu?max_ngram=2", "bleu", "meteor", "cider?corpus=prepared"),
    ),
}


@dataclass(frozen=True)
class RowSet:
    """Labelled rows, and their block in the document."""

    name: str
    file: str
    title: str


ROW_SETS = (
    RowSet("evouna", "evouna_dev.jsonl", "EVOUNA, dev part"),
    RowSet("nq301", "nq301_human.jsonl", "NQ301"),
)


def main() -> int:
    """Score missing rows, compute the tables and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "agreement")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    parser.add_argument("--wordnet", type=Path, help="directory of WordNet's files; default: Debian's, unpacked")
    parser.add_argument("--overwrite", action="store_true", help="score again")
    options = parser.parse_args()
    require_files(*(options.data / rows.file for rows in ROW_SETS))
    try:
        wordnet = options.wordnet or unpacked("wordnet-base") / "usr/share/wordnet"
    except PackageMissingError as error:
        sys.stderr.write(f"meteor needs WordNet's files (--wordnet DIR): {error}\n")
        return EXIT_NO_WORDNET
    # The engine in the started commands reads this variable.
    os.environ["GRADEWIRE_WORDNET_DIRECTORY"] = str(wordnet)
    options.results.mkdir(parents=True, exist_ok=True)
    for rows in ROW_SETS:
        write_block(options.document, rows.name, _tables(rows, options))
    return 0


def _tables(rows: RowSet, options: argparse.Namespace) -> str:
    data = options.data / rows.file
    load, runs = os.getloadavg()[0], [_score(data, rows.name, group, options) for group in METRICS]
    base = options.results / rows.name
    run_gradewire(
        *("agree", data, *(f"--scores={run.out}" for run in runs), "--compare-all", "--compare-statistics", "pearson"),
        *("--markdown", base.with_suffix(".md"), "--json", base.with_suffix(".json")),
        *("--html", base.with_suffix(".html")),
    )
    count = sum(1 for _ in runs[0].out.open("rb"))
    # If the scores were already in the file, this run did not measure the time.
    scored = "; ".join(f"{group} {run.said}" for group, run in zip(METRICS, runs, strict=True))
    said = f"{rows.title}: {count} rows. Scores: {scored} (load average before {load:.2f})."
    return f"{said}\n\n{base.with_suffix('.md').read_text('utf-8')}"


@dataclass(frozen=True)
class Scored:
    """The scores of a group of metrics.

    Attributes:
        kept: True if an earlier run started the file.
        stale: True if the metrics' code has changed since the earlier run, or the earlier code is unknown.
    """

    out: Path
    seconds: float
    kept: bool
    stale: bool

    @property
    def said(self) -> str:
        """The origin of the scores, for the block."""
        if self.stale:
            return "kept from an earlier run; the metrics' code has changed since (use --overwrite to score again)"
        return "kept from an earlier run of the same code" if self.kept else f"in {self.seconds:.0f} s"


def _score(data: Path, name: str, group: str, options: argparse.Namespace) -> Scored:
    metrics = ",".join(METRICS[group])
    # Different metrics get a different file; otherwise, --resume refuses to mix scores.
    out = options.results / f"{name}-{group}-{hashlib.blake2b(metrics.encode(), digest_size=4).hexdigest()}.jsonl"
    kept = out.exists() and not options.overwrite
    stale = kept and not same_sources(out)
    if not kept:
        note_sources(out)
    began = time.monotonic()
    run_gradewire(
        *("score", data, "--embedded", "--metrics", metrics, "--out", out, "--fail-on", "never"),
        *("--disk-directory", options.results / "store", *(["--resume"] if kept else ["--overwrite"])),
    )
    return Scored(out, time.monotonic() - began, kept, stale)


if __name__ == "__main__":
    sys.exit(main())
