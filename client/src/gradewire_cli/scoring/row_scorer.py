"""Scores rows in order, a few batches in flight, and sends again those that the server could not take."""

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import click

from gradewire import AsyncClient, ScoreReport
from gradewire._calls.background import IterableReader
from gradewire._calls.score import counting_over_request
from gradewire.errors import DeadlineExceeded, InconsistentReplies, TransportError
from gradewire.results import MetricScore, Status
from gradewire_cli.options.connection import BATCH_DEADLINE_S
from gradewire_cli.results.progress import ShowProgress
from gradewire_cli.rows.row import Row, item_with_picture
from gradewire_cli.scoring.corpus import BATCH_ROWS
from gradewire_cli.scoring.plan import ScorePlan

BATCHES_IN_FLIGHT = 4
# A judge on a CPU takes a second or more for a row, one on a GPU a hundredth: the first requests find out.
FIRST_JUDGED_ROWS = 4
# Requests of a judge's rows are made larger below, and smaller above: results show as progress, and what is in flight
# is done long before a deadline.
_QUICK_S = 10.0
_SLOW_S = 60.0
# So many batches in a row without an answer in time say that the server hangs.
GIVE_UP_AFTER = 8
_ITEM = re.compile(r"^items\[\d+\]")


class AdaptiveBatchSize:
    """Number of rows in the next request: small for a judge of unknown speed, then by the time that answers take.

    Where no judge is asked, requests are as large as they get. `deadline_s` is that of one request, seconds.
    """

    def __init__(self, *, judged: bool, deadline_s: float) -> None:
        self.rows = FIRST_JUDGED_ROWS if judged else BATCH_ROWS
        self._judged = judged
        self._slow_s = min(_SLOW_S, deadline_s / BATCHES_IN_FLIGHT)
        self._quick_s = min(_QUICK_S, self._slow_s / 2)

    def took(self, seconds: float, *, rows: int, computed: int) -> None:
        """Learn how long a request took, unless fewer than half of its rows had to be computed.

        The others were answered from a cache alone, which says nothing of how long a judge takes.
        """
        if not self._judged or 2 * computed < rows:
            return
        if seconds > self._slow_s:
            self.rows = max(1, self.rows // 2)
        elif seconds < self._quick_s and rows >= self.rows:
            self.rows = min(BATCH_ROWS, 2 * self.rows)


Scores: TypeAlias = "Mapping[str, MetricScore]"


@dataclass(slots=True)
class RowRetries:
    """Sends rows again that came back UNAVAILABLE with a time after which trying again may help, and counts.

    Attributes:
        longest_pause_s: Longest wait before rows are sent again; what asks for more is not waited for.
        scored: Rows that were sent again and have no result UNAVAILABLE any more.
    """

    most: int
    longest_pause_s: float
    rows: int = 0
    scored: int = 0
    _reported: bool = field(default=False, init=False)

    async def finish(
        self,
        items: Sequence[Mapping[str, Any]],
        answers: list[Scores],
        score: Callable[[list[Mapping[str, Any]]], Awaitable[list[Scores]]],
    ) -> list[Scores]:
        """Return the answers, with UNAVAILABLE results replaced by those of a later try; others are kept."""
        waiting = self._waiting(answers) if self.most else []
        first = len(waiting)
        self.rows += first
        for _ in range(self.most):
            pending = [item for index in waiting for item in answers[index].items() if self._may_come(item[1])]
            if not pending:
                break
            pause_s = max(result.retry_after_s or 0.0 for _, result in pending)
            click.echo(f"{_example(*pending[0])}: {len(waiting)} rows are sent again in {pause_s:g} s", err=True)
            await asyncio.sleep(pause_s)
            try:
                again = await score([items[index] for index in waiting])
            except TransportError:
                break  # what is there stands; --resume goes on with the rest
            for index, scores in zip(waiting, again, strict=True):
                kept = {label: each for label, each in answers[index].items() if not self._may_come(each)}
                answers[index] = {label: kept.get(label, scores[label]) for label in answers[index]}
            waiting = self._waiting(answers)
        self.scored += first - len(waiting)
        return answers

    def _waiting(self, answers: Sequence[Scores]) -> list[int]:
        """Return rows that are to be sent again; tells of those that would have to wait too long."""
        far = [item for scores in answers for item in scores.items() if self._is_far(item[1])]
        if far and not self._reported:
            self._reported = True
            label, result = far[0]
            click.echo(
                f"{_example(label, result)}: such rows are not asked for once more, for the wait that is asked for, "
                f"{result.retry_after_s:g} s, is longer than --deadline-s {self.longest_pause_s:g}; --resume goes on "
                "with them later",
                err=True,
            )
        return [index for index, scores in enumerate(answers) if any(map(self._may_come, scores.values()))]

    def _may_come(self, result: MetricScore) -> bool:
        return _asks_to_wait(result) and not self._is_far(result)

    def _is_far(self, result: MetricScore) -> bool:
        return _asks_to_wait(result) and (result.retry_after_s or 0.0) > self.longest_pause_s


def _asks_to_wait(result: MetricScore) -> bool:
    return result.status is Status.UNAVAILABLE and result.retry_after_s is not None


def _example(label: str, result: MetricScore) -> str:
    return f"{label} is {result.status}" + (f" ({result.message})" if result.message else "")


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its results.

    Attributes:
        output: The row as it is written: id, index, scores by label, digest of the content.
        scores: The same scores with what they cost; empty for a row that was scored in an earlier run.
    """

    row: Row
    output: Mapping[str, Any]
    scores: Mapping[str, MetricScore]


@dataclass(slots=True)
class RowScorer:
    """Scores rows with one client; made by `open`.

    Attributes:
        lines: What the server says that it computes, by label.
        retries: Sends rows again that the server could not take.
        resumed: Gives the output of rows that an earlier run scored, None for the others.
    """

    client: AsyncClient
    plan: ScorePlan
    lines: dict[str, str]
    retries: RowRetries
    resumed: Callable[[Row], Mapping[str, Any] | None]
    _batch_size: AdaptiveBatchSize
    _timeouts: int = 0

    @classmethod
    async def open(
        cls,
        client: AsyncClient,
        plan: ScorePlan,
        *,
        deadline_s: float = BATCH_DEADLINE_S,
        known: Callable[[Row], Mapping[str, Any] | None] = lambda _: None,
    ) -> Self:
        """Ask the server about the metrics before any row is read; `deadline_s` is that of one request, seconds."""
        # A metric that counts over a request needs all rows in one.
        judged = plan.chosen.asks_judge and not counting_over_request(plan.chosen.specs)
        report = await client.score([], **plan.arguments())
        return cls(
            client,
            plan,
            {label: provenance.line for label, provenance in report.provenance.items()},
            RowRetries(plan.retries, deadline_s),
            known,
            AdaptiveBatchSize(judged=judged, deadline_s=deadline_s),
        )

    async def score(
        self,
        rows: Iterable[Row],
        take: Callable[[Sequence[ScoredRow]], None],
        progress: ShowProgress | None = None,
        *,
        already: int = 0,
    ) -> None:
        """Score rows, read as far as requests are in flight, and hand them to `take` in their order, batch by batch.

        `progress` gets the number of rows that are done, with those that were done `already`.

        Raises:
            GradewireError: The server went away, or refuses the call itself; what was handed out before stands.
        """
        async with contextlib.aclosing(self._batches(rows)) as batches:
            async for batch in batches:
                take(batch)
                already += len(batch)
                if progress is not None:
                    progress(already, "")

    async def _batches(self, rows: Iterable[Row]) -> AsyncGenerator[list[ScoredRow], None]:
        # Its thread may wait for standard input for hours, and Ctrl-C does not wait for it.
        reader = IterableReader(rows)
        remaining = aiter(reader)
        waiting: deque[asyncio.Task[list[ScoredRow]]] = deque()
        try:
            while batch := await _first_of(remaining, self._batch_size.rows):
                waiting.append(asyncio.create_task(self._score_batch(batch)))
                if len(waiting) >= BATCHES_IN_FLIGHT:
                    yield await waiting.popleft()
            while waiting:
                yield await waiting.popleft()
        finally:
            reader.close()
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _score_batch(self, rows: list[Row]) -> list[ScoredRow]:
        known = [self.resumed(row) for row in rows]
        fresh = [row for row, output in zip(rows, known, strict=True) if row.item is not None and output is None]
        folder = self.plan.pictures
        shown = await asyncio.to_thread(lambda: [item_with_picture(row, folder) for row in fresh])
        answers = await self._finished_answers([item for item, _ in shown]) if shown else []
        finished = zip(answers, [lack for _, lack in shown], strict=True)
        scored = []
        for row, output in zip(rows, known, strict=True):
            if output is not None:
                scored.append(ScoredRow(row, output, {}))
            elif row.item is None:
                failed = MetricScore(score=None, status=Status.INVALID_INPUT, message=row.problem)
                scored.append(self._scored(row, dict.fromkeys(self.lines, failed)))
            else:
                scored.append(self._scored(row, *next(finished)))
        return scored

    async def _finished_answers(self, items: list[Mapping[str, Any]]) -> list[Mapping[str, MetricScore]]:
        began = time.monotonic()
        answers = await self._answers(items)
        computed = sum(any(score.cache_hits.computed for score in scores.values()) for scores in answers)
        self._batch_size.took(time.monotonic() - began, rows=len(items), computed=computed)
        return await self.retries.finish(items, answers, self._answers)

    async def _answers(self, items: list[Mapping[str, Any]]) -> list[Mapping[str, MetricScore]]:
        try:
            report = self._same(await self.client.score(items, **self.plan.arguments()))
        except DeadlineExceeded as error:
            self._timeouts += 1
            if self._timeouts >= GIVE_UP_AFTER:
                raise
            failed = MetricScore(score=None, status=Status.TIMEOUT, message=str(error))
            return [dict.fromkeys(self.lines, failed) for _ in items]
        self._timeouts = 0
        return [answer.scores for answer in report]

    def _same(self, report: ScoreReport) -> ScoreReport:
        for label, provenance in report.provenance.items():
            if provenance.line != self.lines[label]:
                raise InconsistentReplies(
                    f"{label} was computed as {self.lines[label]} and later as {provenance.line}: "
                    "--resume goes on once all servers at the address are alike"
                )
        return report

    def _scored(self, row: Row, scores: Mapping[str, MetricScore], lack: str = "") -> ScoredRow:
        results = {}
        for label, score in scores.items():
            result = score.to_dict()
            if score.message:
                # The client counts within its batch; people look for the place in their file.
                result["message"] = _ITEM.sub(lambda _: row.position, score.message)
            if lack and score.status is Status.INVALID_INPUT and label in self.plan.chosen.image_labels:
                result["message"] = f"{result.get('message', row.position)} ({lack})"
            # A row that never reached the server carries the line as well, so that --resume can compare.
            results[label] = {**result, "line": self.lines[label]}
        said = {"file": row.file, "picture_digest": row.picture_digest, "input": dict(row.kept_columns)}
        place = {"id": row.id, "index": row.index} | {name: value for name, value in said.items() if value}
        return ScoredRow(row, {**place, "scores": results, "digest": row.digest}, scores)


async def _first_of(rows: AsyncIterator[Row], most: int) -> list[Row]:
    first: list[Row] = []
    async for row in rows:
        first.append(row)
        if len(first) >= most:
            break
    return first
