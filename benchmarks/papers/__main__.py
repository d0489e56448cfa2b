"""Measure our values for the tables of five papers, and write docs/research/papers.md.

Without options, the program runs all steps, most of the time with the judge, and writes the page. Scores stay in
--work, so an interrupted run resumes. `--page` writes the page from the tables that are in benchmarks/results.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.measurements import machine, with_block, write_block
from benchmarks.common.rows import DATA_DIRECTORY, require_files
from benchmarks.judges.agreement import judge_environment
from benchmarks.papers.page import PAGE, RESULTS, ROOT, Papers
from benchmarks.papers.steps import STEPS, Step, Work
from deploy.local.apt_package import PackageMissingError, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_NO_WORDNET = 2


def main() -> int:
    """Run the steps, replace their blocks and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    papers = tuple(dict.fromkeys(paper for step in STEPS for paper in step.papers))
    parser.add_argument("--only", choices=papers, action="append", help="run only this paper's steps; may be repeated")
    parser.add_argument("--step", choices=[step.name for step in STEPS], action="append", help="run only this step")
    parser.add_argument("--page", action="store_true", help="run no step, only write the page")
    parser.add_argument("--list", action="store_true", help="list the steps, and stop")
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--work", type=Path, default=ROOT / ".papers", help="directory of scores and vectors")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument("--wordnet", type=Path, help="directory of WordNet's files; default: Debian's, unpacked")
    options = parser.parse_args()
    if options.list:
        for step in STEPS:
            print(f"{step.name} ({', '.join(step.papers)}): {step.about}")
        return 0
    chosen = () if options.page else _chosen(options)
    if not chosen and not options.page:
        parser.error(f"no step of --step is for {' or '.join(options.only)}. See --list")
    require_files(*(options.data / name for name in sorted({name for step in chosen for name in step.files})))
    if chosen:
        try:
            wordnet = options.wordnet or unpacked("wordnet-base") / "usr/share/wordnet"
        except PackageMissingError as error:
            sys.stderr.write(f"meteor needs WordNet's files (--wordnet DIR): {error}\n")
            return EXIT_NO_WORDNET
        if not (wordnet / "data.noun").is_file():
            sys.stderr.write(f"meteor needs WordNet's files, but {wordnet} has no data.noun (--wordnet DIR)\n")
            return EXIT_NO_WORDNET
        # The engine in the started commands reads these variables.
        os.environ["GRADEWIRE_WORDNET_DIRECTORY"] = str(wordnet)
        judge_environment(options.judges)
    options.work.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(chosen, 1):
        sys.stderr.write(f"step {number} of {len(chosen)}, {step.name}: {step.about}\n")
        _measure(step, Work(options.data, options.work))
    write_page()
    return 0


def _chosen(options: argparse.Namespace) -> Sequence[Step]:
    return [
        step
        for step in STEPS
        if (not options.only or set(options.only) & set(step.papers))
        and (not options.step or step.name in options.step)
    ]


def _measure(step: Step, work: Work) -> None:
    load = os.getloadavg()[0]
    for name, tables in step.run(work).items():
        said = f"{datetime.now(UTC).date()}, {machine()}, load {load:.1f} before."
        write_block(RESULTS / "papers.md", name, f"{said}\n\n{tables}")


def write_page() -> None:
    """Replace the comparisons in docs/research/papers.md."""
    PAGE.write_text(with_block(PAGE.read_text("utf-8"), "comparisons", Papers.read().page()), "utf-8")
    sys.stderr.write(f"{PAGE} written\n")


if __name__ == "__main__":
    sys.exit(main())
