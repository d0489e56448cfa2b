"""Compare single-question requests with shared requests to a decision model, in turns."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from typing_extensions import override

from gradewire_proto.choices import BinaryQuestions
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.judges.prometheus import JudgeTelemetry, Tokens
from gradewire_server.judges.remote.decision_forms import SYSTEM_ONE, decision_question
from gradewire_server.judges.remote.decisions import DecisionJudges, endpoint_of
from gradewire_server.judges.remote.errors import json_object
from gradewire_server.judges.remote.http_client import HttpClient, json_bytes
from gradewire_server.judges.remote.server import Question
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE, JudgeGradeParameters
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY, JudgeSimilarityParameters
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT, JudgeVerdictParameters
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters
from gradewire_server.settings.judge import RemoteJudgeConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.common.rows import Row

    from gradewire_server.domain.judge import Choose
    from gradewire_server.judges.backend import Judge


TOGETHER_ROWS = 50
BLOCK_ROWS = 50
# With three metrics, 21 rows have about 64 open questions, like a client's request.
ROWS_AT_A_TIME = 21
# sparrow-decider's socket accepts five connections; a sixth has to wait for a second.
IN_FLIGHT = 4
# Questions per request.
SHARED = 4
# These metrics show an item to the judge in the same words; judge_similarity has a different template.
_ASKERS = (
    (LAVE, LaveParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_VERDICT, JudgeVerdictParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_GRADE, JudgeGradeParameters(binary=BinaryQuestions.JUDGE)),
    (JUDGE_SIMILARITY, JudgeSimilarityParameters()),
)


class Requests(JudgeTelemetry):
    """The durations of requests to a judge's server."""

    def __init__(self) -> None:
        super().__init__(CollectorRegistry())
        self.seconds: list[float] = []

    @override
    def request_answered(self, tokens: Tokens, cost: float | None, duration_s: float) -> None:
        del tokens, cost
        self.seconds.append(duration_s)


def item_of(row: Row) -> Item:
    """Return a row as an item for metrics."""
    return Item(row["id"], row["question"], tuple(row["references"]), row["prediction"])


def needs_of(row: Row, metrics: Sequence[Any] = _ASKERS) -> list[Choose]:
    """Return each metric's first question about a row."""
    return [next(metric.score(item_of(row), parameters, NO_MODEL))[0] for metric, parameters in metrics]


@dataclass
class Way:
    """A way to send questions, with its counts, durations and scores."""

    judge: Judge
    requests: Requests
    calls: int = 0
    whole_s: float = 0.0
    scores: list[float] = field(default_factory=list)

    async def score(self, rows: Sequence[Row], rows_at_a_time: int) -> None:
        """Score rows without a cache, with the metrics that show the judge an item in the same words."""
        permits = asyncio.Semaphore(rows_at_a_time)
        begin_s = time.perf_counter()
        scores = await asyncio.gather(*(self._row(row, permits) for row in rows))
        self.whole_s += time.perf_counter() - begin_s
        self.scores += [score for each in scores for score in each]

    async def _row(self, row: Row, permits: asyncio.Semaphore) -> list[float]:
        async with permits:
            return await asyncio.gather(*(self._one(row, *asker) for asker in _ASKERS[:3]))

    async def _one(self, row: Row, metric: Any, parameters: Any) -> float:
        program = metric.score(item_of(row), parameters, NO_MODEL)
        answers: tuple[Any, ...] | None = None
        while True:
            try:
                needs = program.send(answers)
            except StopIteration as stop:
                if not isinstance(stop.value, MetricResult) or stop.value.score is None:
                    raise SystemExit(f"row {row['id']}: {stop.value}") from stop
                return stop.value.score
            self.calls += len(needs)
            answers = tuple(each.answer for each in await asyncio.gather(*map(self.judge.choose, needs)))


async def in_turns(config: RemoteJudgeConfig, rows: Sequence[Row], rows_at_a_time: int) -> tuple[Way, Way]:
    """Score the same rows with single-question and shared requests, in alternating blocks."""
    ways = []
    for most in (1, SHARED):
        seen = Requests()
        judge = await DecisionJudges(replace(config, questions_per_request=most), seen).open(config.model)
        seen.seconds.clear()
        ways.append(Way(judge, seen))
    for number, begin in enumerate(range(0, len(rows), BLOCK_ROWS)):
        for way in ways[:: 1 if number % 2 else -1]:
            await way.score(rows[begin : begin + BLOCK_ROWS], rows_at_a_time)
    for way in ways:
        await way.judge.close()
    return ways[0], ways[1]


async def put_together(config: RemoteJudgeConfig, rows: Sequence[Row]) -> tuple[float, float, float]:
    """Send a row's questions separately and then in a single request, row after row.

    Returns:
        Seconds per question for both methods, and the largest difference between their probabilities.
    """
    client = HttpClient(config)
    alone_s = together_s = largest = 0.0
    questions = 0
    for row in rows:
        shown = [decision_question(Question(need.prompt, need.options)) for need in needs_of(row)]
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
    answers: dict[str, Any] = json_object((await client.send(SYSTEM_ONE.path, json_bytes(body))).content)["answers"]
    return answers


def _milliseconds(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:.1f} | {ordered[int(len(ordered) * 0.95)] * 1e3:.1f}"


def timed(url: str, model: str, rows: Sequence[Row]) -> str:
    """Return tables with calls, requests and latencies, with and without shared requests."""
    base, forms = endpoint_of(url)
    config = RemoteJudgeConfig(base, model, max_in_flight=IN_FLIGHT)
    lines = [
        "| rows at a time | questions a request | calls | requests | median ms | 95 % ms | ms a row |",
        "|" + "---:|" * 7,
    ]
    largest = 0.0
    for at_a_time in (1, ROWS_AT_A_TIME):
        ways = asyncio.run(in_turns(config, rows, at_a_time))
        for name, way in zip(("1", "shared"), ways, strict=True):
            seconds = way.requests.seconds
            lines.append(
                f"| {at_a_time} | {name} | {way.calls} | {len(seconds)} | {_milliseconds(seconds)} | "
                f"{way.whole_s / len(rows) * 1e3:.1f} |"
            )
        largest = max(largest, *(abs(one - other) for one, other in zip(*(way.scores for way in ways), strict=True)))
    lines.append(
        "\nA call is a question from lave or judge_verdict, or one of judge_grade's two questions. At most "
        f"{IN_FLIGHT} requests are in flight. "
        f"The two methods' scores differ by at most {largest:.2g}."
    )
    if SYSTEM_ONE in forms:
        alone_s, together_s, largest = asyncio.run(put_together(config, rows[:TOGETHER_ROWS]))
        lines.append(
            f"\nThree questions about one state, sent directly: {alone_s * 1e3:.2f} ms each in separate requests, "
            f"{together_s * 1e3:.2f} ms each in one request; their probabilities differ by {largest:.2g} at most."
        )
    return "\n".join(lines)
