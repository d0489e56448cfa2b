"""Agreement of every metric that needs no LLM with human labels; writes its tables into docs/research/agreement.md.

Scores are kept, with the engine's store, under --results: a run that was broken off goes on, and one without changes
scores nothing, but says so where the code of the metrics has changed since. The rows are not part of the project.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from deploy.local.apt_package import PackageMissingError, unpacked

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "research" / "agreement.md"
GRADEWIRE = Path(sys.executable).with_name("gradewire")
EXIT_NO_DATA = 2
# What scores depend on; a metric's version need not change with every line of it.
SOURCES = tuple(ROOT / "server" / "src" / "gradewire_server" / part for part in ("metrics", "scoring"))

# One run each: a request holds 16 metrics at most. Aliases of one answer are no ten annotators, so that the VQA metrics
# count agreeing references instead of leaving each out.
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
    """Labelled rows, and the block of the document that is about them.

    Attributes:
        name: Of the block.
        file: In the data directory.
        title: What people call it.
    """

    name: str
    file: str
    title: str


ROW_SETS = (
    RowSet("evouna", "evouna_dev.jsonl", "EVOUNA, dev part"),
    RowSet("nq301", "nq301_human.jsonl", "NQ301"),
)


def main() -> int:
    """Scores what is not scored yet, computes the figures and replaces the blocks of the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "agreement")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    parser.add_argument("--wordnet", type=Path, help="directory of WordNet's files; default: Debian's, unpacked")
    parser.add_argument("--overwrite", action="store_true", help="score anew")
    options = parser.parse_args()
    missing = [str(options.data / rows.file) for rows in ROW_SETS if not (options.data / rows.file).is_file()]
    if missing:
        sys.stderr.write(f"{', '.join(missing)}: not there; these figures need the labelled rows (--data DIR)\n")
        return EXIT_NO_DATA
    try:
        wordnet = options.wordnet or unpacked("wordnet-base") / "usr/share/wordnet"
    except PackageMissingError as error:
        sys.stderr.write(f"meteor needs WordNet's files (--wordnet DIR): {error}\n")
        return EXIT_NO_DATA
    # Read by the engine in the commands that are started.
    os.environ["GRADEWIRE_WORDNET_DIRECTORY"] = str(wordnet)
    options.results.mkdir(parents=True, exist_ok=True)
    for rows in ROW_SETS:
        block = _figures(rows, options)
        options.document.write_text(with_block(options.document.read_text("utf-8"), rows.name, block), "utf-8")
        sys.stderr.write(f"{options.document}: block {rows.name} written\n")
    return 0


def _figures(rows: RowSet, options: argparse.Namespace) -> str:
    data = options.data / rows.file
    load, runs = os.getloadavg()[0], [_score(data, rows.name, group, options) for group in METRICS]
    base = options.results / rows.name
    _gradewire(
        *("agree", data, *(f"--scores={run.out}" for run in runs), "--compare-all", "--compare-statistics", "pearson"),
        *("--markdown", base.with_suffix(".md"), "--json", base.with_suffix(".json")),
        *("--report", base.with_suffix(".html")),
    )
    count = sum(1 for _ in runs[0].out.open("rb"))
    # A run that found its scores in the file says nothing about how long scoring takes.
    scored = "; ".join(f"{group} {run.said}" for group, run in zip(METRICS, runs, strict=True))
    said = f"{rows.title}: {count} rows. Scores: {scored} (load average before {load:.2f})."
    return f"{said}\n\n{base.with_suffix('.md').read_text('utf-8')}"


@dataclass(frozen=True)
class Scored:
    """Output of one group of metrics.

    Attributes:
        out: The file.
        seconds: What this run took.
        kept: Whether an earlier run had begun it.
        stale: Whether the code of the metrics was another one then, or nobody knows.
    """

    out: Path
    seconds: float
    kept: bool
    stale: bool

    @property
    def said(self) -> str:
        """How the scores came about, for the block."""
        if self.stale:
            return "kept from an earlier run, since which the metrics' code has changed (--overwrite scores anew)"
        return "kept from an earlier run of the same code" if self.kept else f"in {self.seconds:.0f} s"


def _score(data: Path, name: str, group: str, options: argparse.Namespace) -> Scored:
    metrics = ",".join(METRICS[group])
    # Another choice of metrics is another file; what changed behind the same choice, --resume refuses to mix.
    out = options.results / f"{name}-{group}-{hashlib.blake2b(metrics.encode(), digest_size=4).hexdigest()}.jsonl"
    kept = out.exists() and not options.overwrite
    stale = kept and not same_sources(out)
    if not kept:
        sources_beside(out).write_text(sources_digest(), "utf-8")
    began = time.monotonic()
    _gradewire(
        *("score", data, "--embedded", "--metrics", metrics, "--out", out, "--fail-on", "never"),
        *("--cache-dir", options.results / "store", *(["--resume"] if kept else ["--overwrite"])),
    )
    return Scored(out, time.monotonic() - began, kept, stale)


def sources_digest() -> str:
    """16 hex digits over the code that scores."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(file for folder in SOURCES for file in folder.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def sources_beside(out: Path) -> Path:
    """Where the digest of the code stands that began a file of scores."""
    return out.with_suffix(".sources")


def same_sources(out: Path) -> bool:
    """Whether a file of scores was begun with the code as it is now."""
    beside = sources_beside(out)
    return beside.exists() and beside.read_text("utf-8") == sources_digest()


def _gradewire(*arguments: str | Path) -> None:
    """Runs the command; ends the program as it ended where it failed."""
    if code := subprocess.run([GRADEWIRE, *map(str, arguments)], check=False).returncode:
        raise SystemExit(code)


def with_block(document: str, name: str, block: str) -> str:
    """Replaces what stands between the marks of a block.

    Args:
        document: Has the lines `<!-- begin NAME -->` and `<!-- end NAME -->`, once each.
        name: Of the block.
        block: Markdown.

    Raises:
        ValueError: The marks are not there.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(end) < document.index(begin):
        raise ValueError(f"the document needs {begin.strip()} and {end.strip()}, once each and in this order")
    before, _, rest = document.partition(begin)
    return f"{before}{begin}\n{block.strip()}\n\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    sys.exit(main())
