"""Compare gradewire with the usual metrics on the same rows: agreement with annotators, answers per second, and cost.

The rows are drawn from questions that the grader of `correctness` has not read: half b of EVOUNA, and NQ301 without
the questions of half a. `correctness` is the probability from a fit on the other folds' questions, as in
`benchmarks.agreement.with_grader` but without the rows that `make bench-data` does not bring. Its time is that of the
fit that ships. Every way runs in its own process with two threads. All but the judge get blocks of rows in turn.
BERTScore is the package `bert_score` with gradewire's default encoder. Writes benchmarks/results/same-rows.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.agreement.correctness import ROOT, row_options, scored
from benchmarks.agreement.correctness_rows import Recipe
from benchmarks.agreement.with_grader import crossed, public_unread_files
from benchmarks.common.measurements import machine, write_block
from benchmarks.common.rows import WARM_UP, Row, items_of, sample_rows
from benchmarks.common.servers import start_engine

from gradewire import Client
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Block = Callable[[list[Row]], tuple[float, list[float]]]

FIRST, JUDGE = "correctness", "lave"
BERTSCORE = "bert_score"
NAMES = {
    FIRST: "gradewire, `correctness`",
    "smile": "gradewire, `smile`",
    "rouge_l?measure=recall": "`rouge_l`, recall",
    "exact_match": "`exact_match`",
    BERTSCORE: "BERTScore by its authors' script",
    JUDGE: "LLM judge of 1.5 B parameters (`lave`)",
}
SOURCES = ("evouna", "nq301")
SEED = 16


def main() -> None:
    """Draw the rows, run every way over them, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "same-rows.md")
    parser.add_argument("--checkpoint", type=Path, required=True, help="the encoder as a Hugging Face folder")
    parser.add_argument("--peer-python", default=".venv-bench/bin/python", help="interpreter that has bert_score")
    parser.add_argument("--rows", type=int, default=300, help="rows of each source; default: %(default)s")
    parser.add_argument("--blocks", type=int, default=6, help="blocks in which each way gets the rows")
    parser.add_argument("--hourly-price", type=float, default=0.10, help="US dollars an hour for this machine")
    row_options(parser)
    parser.set_defaults(grader="grader-mini")
    options = parser.parse_args()
    rows, probabilities = drawn_rows(options)
    before = os.getloadavg()[0]
    seconds, scores = run(rows, options)
    load = f"{machine()}, load average {before:.2f} before and {os.getloadavg()[0]:.2f} after"
    judged = judged_rows(rows, {**scores, FIRST: probabilities})
    caption = f"{options.rows} rows of each source, {options.blocks} blocks in turn; {load}."
    tables = (caption, results_table(judged, seconds, options.hourly_price), differences_table(judged))
    write_block(options.document, "same rows", "\n\n".join(tables))


def drawn_rows(options: argparse.Namespace) -> tuple[list[Row], list[float]]:
    """Return the drawn rows, each with its `source`, and their cross-fitted probabilities."""
    parts = tuple(scored(file, source, options) for source, file in public_unread_files(options).items())
    found = crossed("with the grader", parts, Recipe(options.model, "", options.grader))
    rows: list[Row] = []
    probabilities: list[float] = []
    for part, way in zip(parts, found, strict=True):
        if part.source in SOURCES:
            of_id = dict(zip((row["id"] for row in part.rows), way.found.tolist(), strict=True))
            drawn = sample_rows(part.rows, options.rows, SEED)
            rows += [{**row, "source": part.source} for row in drawn]
            probabilities += [of_id[row["id"]] for row in drawn]
    return rows, probabilities


def run(rows: list[Row], options: argparse.Namespace) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the seconds that each way took for all rows, and its scores."""
    order = np.random.default_rng(SEED).permutation(len(rows))
    seconds = dict.fromkeys(NAMES, 0.0)
    scores = {name: [float("nan")] * len(rows) for name in NAMES}
    # The judge's process slows its neighbours for a while after a block, so it runs after all others have ended.
    for group in (tuple(name for name in NAMES if name != JUDGE), (JUDGE,)):
        with ExitStack() as stack:
            ways = {name: stack.enter_context(opened(name, options)) for name in group}
            for number, block in enumerate(np.array_split(order, options.blocks)):
                for name in group if number % 2 == 0 else reversed(group):
                    taken, found = ways[name]([rows[index] for index in block])
                    seconds[name] += taken
                    for index, score in zip(block, found, strict=True):
                        scores[name][index] = score
                sys.stderr.write(f"{', '.join(group)}: block {number + 1} of {options.blocks}\n")
    return seconds, scores


def opened(name: str, options: argparse.Namespace) -> AbstractContextManager[Block]:
    """Return a context that starts the process of a way and yields its function."""
    return of_bert_score(options) if name == BERTSCORE else of_gradewire(name)


@contextmanager
def of_gradewire(metric: str) -> Iterator[Block]:
    """Start a server with an empty cache, and yield a function that scores a block of rows by one metric."""
    with (
        start_engine("embedded", {"log-level": "warning"}) as server,
        Client(server.address, deadline_s=3600) as client,
    ):

        def score(rows: list[Row]) -> tuple[float, list[float]]:
            started = time.perf_counter()
            report = client.score(items_of(rows), metric)
            seconds = time.perf_counter() - started
            results = [next(iter(item.scores.values())).score for item in report]
            return seconds, [float("nan") if result is None else result for result in results]

        score([WARM_UP])
        yield score


@contextmanager
def of_bert_score(options: argparse.Namespace) -> Iterator[Block]:
    """Start `bertscore_worker`, and yield a function that scores a block of rows."""
    command = [options.peer_python, "-m", "benchmarks.peers.bertscore_worker", str(options.checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        requests, replies = process.stdin, process.stdout
        assert requests is not None
        assert replies is not None

        def score(rows: list[Row]) -> tuple[float, list[float]]:
            requests.write(json.dumps(rows) + "\n")
            requests.flush()
            line = replies.readline()
            if not line:
                raise RuntimeError(f"the BERTScore worker ended with exit status {process.wait()}")
            answer: dict[str, Any] = json.loads(line)
            return answer["seconds"], answer["scores"]

        score([WARM_UP])
        yield score


def judged_rows(rows: list[Row], scores: Mapping[str, Sequence[float]]) -> JudgedRows:
    """Return the scores of every way, with the labels, the sources as data sets and the questions."""
    columns = {name: np.array(scores[name], np.float64) for name in NAMES}
    without_verdicts = dict.fromkeys(NAMES, np.full(len(rows), np.nan))
    sources, questions = [row["source"] for row in rows], [row["question"] for row in rows]
    labels = np.array([row["label"] for row in rows], np.float64)
    return JudgedRows(columns, without_verdicts, labels, sources, [""] * len(rows), questions)


def results_table(judged: JudgedRows, seconds: Mapping[str, float], hourly_price: float) -> str:
    """Return a Markdown table with a line for each way: agreement with 95 % intervals, speed, and cost."""
    head = [f"{source}: {statistic}" for source in SOURCES for statistic in ("Pearson", "AUC")]
    lines = [f"| | {' | '.join(head)} | failed | answers/s | cost of a million |", f"|---|{'---:|' * (len(head) + 3)}"]
    for table in agreement(judged, statistics=("pearson", "auc")).metrics:
        cells = {cell.dataset: cell for cell in table.cells if cell.level == "cell"}
        estimates = [cells[source].estimates[statistic] for source in SOURCES for statistic in ("pearson", "auc")]
        values = " | ".join(f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]" for each in estimates)
        failed = int(np.isnan(judged.scores[table.metric]).sum())
        rate = len(judged.labels) / seconds[table.metric]
        price = 1e6 / rate / 3600 * hourly_price
        cost = f"${price:,.2f}" if price >= 0.01 else "< $0.01"
        lines.append(f"| {NAMES[table.metric]} | {values} | {failed} | {rate:,.1f} | {cost} |")
    return "\n".join(lines)


def differences_table(judged: JudgedRows) -> str:
    """Return a Markdown table of `correctness` minus every other way, paired, as the mean of both sources."""
    pairs = [(FIRST, name) for name in NAMES if name != FIRST]
    found = agreement(judged, compare=pairs, compare_statistics=("pearson", "auc")).comparisons
    of_name = {(each.baseline, each.statistic): each.mean_of_cells for each in found}
    lines = ["| `correctness` minus … | Pearson | AUC |", "|---|---:|---:|"]
    for _, name in pairs:
        both = (of_name[name, statistic] for statistic in ("pearson", "auc"))
        values = " | ".join(f"{each.value:+.3f} [{each.low:+.3f}, {each.high:+.3f}]" for each in both)
        lines.append(f"| {NAMES[name]} | {values} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
