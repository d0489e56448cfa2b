"""Compare a decision model with the default judge: agreement with annotators, calls, latency, shared requests.

Without --url, the program starts a sparrow-decider with the small model from its package. The table goes into
benchmarks/results/judge.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.measurements import write_block
from benchmarks.common.ports import free_port
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_rows
from benchmarks.common.servers import run_gradewire
from benchmarks.judges.agreement import MODELS, ROOT, test_rows
from benchmarks.judges.decision_requests import timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SPARROW = "sparrow-nano-general-v1.1"
BLOCK = "judge-decisions"
EMBEDDING = "smile"
METRICS = ("lave", "judge_verdict")


@contextmanager
def sparrow() -> Iterator[str]:
    """Run a sparrow-decider on a free port; yield its base URL."""
    port = free_port()
    command = (sys.executable, "-m", "sparrow_decider.cli", "--model", SPARROW, "serve", "--port", str(port))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        if not process.stderr.readline():
            raise SystemExit("sparrow-decider did not start. Install it with pip install sparrow-decider, or use --url")
        time.sleep(0.2)  # sparrow-decider prints the message before it listens
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def scored(rows: Sequence[Row], results: Path, url: str, model: str, *, default_too: bool) -> str:
    """Return each judge's agreement on the metrics, from `gradewire agree`."""
    data = results / "rows.jsonl"
    data.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    ways: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [(EMBEDDING, ("smile:v1", "exact_match"), ())]
    server = ("--judge-backend", "decisions", "--judge-url", url, "--judge-remote-model", model)
    ways.append((model, METRICS, server))
    if default_too:
        ways.append(("the default judge", METRICS, ()))
    tables = []
    for name, metrics, options in ways:
        base = results / name.replace(" ", "-")
        out = base.with_suffix(".jsonl")
        run_gradewire(
            *("score", data, "--embedded", "--metrics", ",".join(metrics), "--out", out, "--overwrite", "--quiet"),
            *("--disk-directory", results / "store", "--deadline-s", "3600", "--fail-on", "never", *options),
        )
        run_gradewire(
            *("agree", data, "--scores", out, "--statistics", "auc,accuracy", "--quiet"),
            *("--markdown", base.with_suffix(".md"), "--json", base.with_suffix(".json")),
        )
        tables.append((name, base.with_suffix(".md").read_text("utf-8")))
    return _first_tables(tables)


def _first_tables(tables: Sequence[tuple[str, str]]) -> str:
    """Join the first sections of all tables, with the judge's name in each row."""
    lines: list[str] = []
    for name, text in tables:
        table = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("|")]
        if not lines:
            lines += [f"| judge {table[0]}", f"|---{table[1]}"]
        lines += [f"| {'none' if name == EMBEDDING else name} {line}" for line in table[2:]]
    return "\n".join(lines)


def main() -> None:
    """Score the rows, measure the requests, and write the block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "decisions")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "judge.md")
    parser.add_argument("--url", help="server of a decision model; default: start one")
    parser.add_argument("--model", default=SPARROW, help="the model's name on the server")
    parser.add_argument("--server-only", action="store_true", help="omit the default judge")
    options = parser.parse_args()
    rows = test_rows(read_rows(options.data / "evouna_dev.jsonl", MODELS))
    options.results.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    with server_at(options.url) as url:
        times = timed(url, options.model, rows)
        tables = scored(rows, options.results, url, options.model, default_too=not options.server_only)
    write_block(
        options.document,
        BLOCK,
        f"{len(rows)} rows, {options.model}; {os.cpu_count()} cores, load {load:.1f} before.\n\n{tables}\n\n{times}",
    )


@contextmanager
def server_at(url: str | None) -> Iterator[str]:
    """Yield the URL of the given server, or start a server and yield its URL."""
    if url is not None:
        yield url
        return
    with sparrow() as started_url:
        yield started_url


if __name__ == "__main__":
    main()
