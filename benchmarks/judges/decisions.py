"""A decision model as judge, beside the default one: agreement with people, latency, and questions put together.

The 600 rows of benchmarks.judges.agreement. Without --url a sparrow-decider is started here, with
the small model that its package carries. Its table is written into docs/research/judge.md; --server-only leaves the
default judge out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.command import run_gradewire
from benchmarks.common.document import write_block
from benchmarks.common.processes import free_port
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_rows
from benchmarks.judges.agreement import MODELS, ROOT, test_rows

from gradewire_server.domain.item import Item
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.judges.decisions.asked import asked_of
from gradewire_server.judges.decisions.backend import DecisionJudges, endpoint_of
from gradewire_server.judges.decisions.forms import SYSTEM_ONE
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.judges.remote.replies import json_object
from gradewire_server.judges.remote.server import Question
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE, JudgeGradeParameters
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY, JudgeSimilarityParameters
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT, JudgeVerdictParameters
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters
from gradewire_server.metrics.judged.parameters import BinaryQuestions
from gradewire_server.settings.judge import RemoteJudgeConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire_server.judges.observers import RequestUsage

SPARROW = "sparrow-nano-general-v1.1"
BLOCK = "judge-decisions"
EMBEDDING = "smile"
METRICS = ("lave", "judge_verdict")
TOGETHER_ROWS = 50
# First needs of four metrics about one item, which show it in two forms (judge_similarity has a template of its own).
_ASKERS = (
    (LAVE, LaveParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_VERDICT, JudgeVerdictParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_GRADE, JudgeGradeParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_SIMILARITY, JudgeSimilarityParameters()),
)


@dataclass
class Requests:
    """Durations of the requests, as a judge's server is observed."""

    seconds: list[float] = field(default_factory=list)

    def request_answered(self, usage: RequestUsage) -> None:
        """One request more."""
        self.seconds.append(usage.duration_s)

    def request_retried(self, reason: str) -> None:
        """Nothing is counted of it."""

    def requests_in_flight(self, change: int) -> None:
        """Nothing is counted of it."""


@contextmanager
def sparrow() -> Iterator[str]:
    """A sparrow-decider on a free port; gives its base address."""
    port = free_port()
    command = (sys.executable, "-m", "sparrow_decider.cli", "--model", SPARROW, "serve", "--port", str(port))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        if not process.stderr.readline():
            raise SystemExit("sparrow-decider did not start: pip install sparrow-decider, or give --url")
        time.sleep(0.2)  # it says so before it listens
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def needs_of(row: Row, metrics: Sequence[Any] = _ASKERS) -> list[Choose]:
    """The first question of each metric about a row."""
    item = Item(row["id"], row["question"], tuple(row["references"]), row["prediction"])
    return [next(metric.score(item, parameters, NO_MODEL))[0] for metric, parameters in metrics]


async def latencies(config: RemoteJudgeConfig, rows: Sequence[Row], at_a_time: int) -> tuple[list[float], float]:
    """Seconds of each request, and of all together, at so many at a time; nothing is cached."""
    seen = Requests()
    judge = await DecisionJudges(config, seen).open(config.model)
    permits = asyncio.Semaphore(at_a_time)

    async def one(need: Choose) -> None:
        async with permits:
            answer = (await judge.choose(need)).answer
            assert isinstance(answer, Choice), answer

    begin_s = time.perf_counter()
    await asyncio.gather(*(one(need) for row in rows for need in needs_of(row, _ASKERS[:2])))
    whole_s = time.perf_counter() - begin_s
    await judge.close()
    return seen.seconds, whole_s


async def put_together(config: RemoteJudgeConfig, rows: Sequence[Row]) -> tuple[float, float, float]:
    """Questions about one state in a request each, and all in one request, row by row in turns.

    Returns:
        Seconds a question of both ways, and the largest difference between their probabilities.
    """
    client = HttpClient(config)
    alone_s = together_s = largest = 0.0
    questions = 0
    for row in rows:
        shown = [asked_of(Question(need.prompt, need.options)) for need in needs_of(row)]
        asked = [each for each in shown if each.state == shown[0].state]
        bodies = [SYSTEM_ONE.body(config.model, [each]) for each in asked]
        begin_s = time.perf_counter()
        alone = [await _answers(client, body) for body in bodies]
        middle_s = time.perf_counter()
        all_of_them = {str(n): body["questions"]["verdict"] for n, body in enumerate(bodies)}
        together = await _answers(client, {**bodies[0], "questions": all_of_them})
        end_s = time.perf_counter()
        alone_s += middle_s - begin_s
        together_s += end_s - middle_s
        questions += len(asked)
        for n, answer in enumerate(alone):
            other = together[str(n)]["probabilities"]
            largest = max(largest, *(abs(other[k] - p) for k, p in answer["verdict"]["probabilities"].items()))
    await client.close()
    return alone_s / questions, together_s / questions, largest


async def _answers(client: HttpClient, body: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = json_object((await client.post(SYSTEM_ONE.path, body)).content)["answers"]
    return answers


def scored(rows: Sequence[Row], results: Path, url: str, model: str, *, default_too: bool) -> str:
    """Figures of the metrics by each judge, as `gradewire agree` writes them."""
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
            *("--cache-dir", results / "store", "--deadline-s", "3600", "--fail-on", "never", *options),
        )
        run_gradewire(
            *("agree", data, "--scores", out, "--statistics", "auc,accuracy", "--quiet"),
            *("--markdown", base.with_suffix(".md"), "--json", base.with_suffix(".json")),
        )
        tables.append((name, base.with_suffix(".md").read_text("utf-8")))
    return _first_tables(tables)


def _first_tables(tables: Sequence[tuple[str, str]]) -> str:
    """The rows of all tables' first part, each with the judge's name."""
    lines: list[str] = []
    for name, text in tables:
        table = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("|")]
        if not lines:
            lines += [f"| judge {table[0]}", f"|---{table[1]}"]
        lines += [f"| {'none' if name == EMBEDDING else name} {line}" for line in table[2:]]
    return "\n".join(lines)


def _milliseconds(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:.1f} | {ordered[int(len(ordered) * 0.95)] * 1e3:.1f}"


def timed(url: str, model: str, rows: Sequence[Row]) -> str:
    """Tables of latencies and of questions that are put together."""
    base, forms = endpoint_of(url)
    config = RemoteJudgeConfig(base, model)
    lines = ["| requests at a time | requests | median ms | 95 % ms | requests a second |", "|" + "---:|" * 5]
    for at_a_time in (1, 16):
        seconds, whole_s = asyncio.run(latencies(config, rows, at_a_time))
        lines.append(f"| {at_a_time} | {len(seconds)} | {_milliseconds(seconds)} | {len(seconds) / whole_s:.0f} |")
    if SYSTEM_ONE in forms:
        alone_s, together_s, largest = asyncio.run(put_together(config, rows[:TOGETHER_ROWS]))
        lines.append(
            f"\nThree questions about one state: {alone_s * 1e3:.2f} ms each in requests of their own, "
            f"{together_s * 1e3:.2f} ms each in one request; their probabilities differ by {largest:.2g} at most."
        )
    return "\n".join(lines)


def main() -> None:
    """Scores, measures, writes the block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "decisions")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "research" / "judge.md")
    parser.add_argument("--url", help="server of a decision model; default: one that is started here")
    parser.add_argument("--model", default=SPARROW, help="its name there")
    parser.add_argument("--server-only", action="store_true", help="leave the default judge out")
    options = parser.parse_args()
    rows = test_rows(read_rows(options.data / "evouna_dev.jsonl", MODELS))
    options.results.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    with server_at(options.url) as url:
        times = timed(url, options.model, rows)
        figures = scored(rows, options.results, url, options.model, default_too=not options.server_only)
    write_block(
        options.document,
        BLOCK,
        f"{len(rows)} rows, {options.model}; {os.cpu_count()} cores, load {load:.1f} before.\n\n{figures}\n\n{times}",
    )


@contextmanager
def server_at(url: str | None) -> Iterator[str]:
    """The given server, or one that is started."""
    if url is not None:
        yield url
        return
    with sparrow() as started_url:
        yield started_url


if __name__ == "__main__":
    main()
