"""Score rows in order with a few batches in flight, and retry rows that the server could not accept."""

import asyncio
import contextlib
import itertools
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
from gradewire_cli.problems import UnreachableError
from gradewire_cli.results.progress import ShowProgress
from gradewire_cli.rows.row import Row, item_with_pictures
from gradewire_cli.scoring.corpus import BATCH_ROWS
from gradewire_cli.scoring.judge_watch import JudgeWatch
from gradewire_cli.scoring.plan import ScorePlan

BATCHES_IN_FLIGHT = 4
# The first request is small, because a judge on a CPU needs seconds per row, a hundred times as long as on a GPU.
FIRST_JUDGED_ROWS = 4
# Requests to a judge grow if they are quick and shrink if they are slow. So progress stays visible, and requests end
# long before a deadline.
_QUICK_S = 10.0
_SLOW_S = 60.0
# Number of consecutive timeouts after which the server counts as hung.
GIVE_UP_AFTER = 8
_ITEM = re.compile(r"^items\[\d+\]")


class AdaptiveBatchSize:
    """A batch size that starts small for a judge of unknown speed, and adapts to response times.

    `deadline_s` is one request's deadline in seconds.
    """

    def __init__(self, *, judged: bool, deadline_s: float) -> None:
        self.rows = FIRST_JUDGED_ROWS if judged else BATCH_ROWS
        self._judged = judged
        self._slow_s = min(_SLOW_S, deadline_s / BATCHES_IN_FLIGHT)
        self._quick_s = min(_QUICK_S, self._slow_s / 2)

    def took(self, seconds: float, *, rows: int, computed: int) -> None:
        """Adjust the batch size to a request's duration, unless most rows were cached and so hide the judge's speed."""
        if not self._judged or 2 * computed < rows:
            return
        if seconds > self._slow_s:
            self.rows = max(1, self.rows // 2)
        elif seconds < self._quick_s and rows >= self.rows:
            self.rows = min(BATCH_ROWS, 2 * self.rows)


Scores: TypeAlias = "Mapping[str, MetricScore]"


@dataclass(slots=True)
class RowRetries:
    """Retries of rows with an UNAVAILABLE result, if the server said how long to wait.

    Attributes:
        most: Maximum number of retries of a row.
        longest_pause_s: Maximum waiting time in seconds. A result with a longer waiting time is not retried.
        scored: Number of retried rows that no longer have an UNAVAILABLE result to retry.
        judges: The run's judges. Nothing is retried while a judge is down that has never answered.
    """

    most: int
    longest_pause_s: float
    judges: JudgeWatch
    rows: int = 0
    scored: int = 0
    _reported: bool = field(default=False, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    async def finish(
        self,
        items: Sequence[Mapping[str, Any]],
        answers: list[Scores],
        score: Callable[[list[Mapping[str, Any]]], Awaitable[list[Scores]]],
    ) -> list[Scores]:
        """Retry the UNAVAILABLE results, and return the answers with these results replaced."""
        waiting = self._rows_to_retry(answers) if self.most and not self.judges.is_hopeless else []
        first = len(waiting)
        self.rows += first
        for _ in range(self.most):
            pending = [item for index in waiting for item in answers[index].items() if self._may_come(item[1])]
            if not pending:
                break
            pause_s = max(result.retry_after_s or 0.0 for _, result in pending)
            label, failed = pending[0]
            # If a judge that has never answered stays away, `judges` reports the reason.
            never = label in self.judges.judged and not self.judges.has_answered(label, answers)
            example = f"{label} is {failed.status}" if never else _example(label, failed)
            if example not in self._told:  # a busy server would cause a line for each batch
                self._told.add(example)
                rows = "1 row" if len(waiting) == 1 else f"{len(waiting)} rows"
                click.echo(f"{example}: retrying {rows} in {pause_s:g} s", err=True)
            await asyncio.sleep(pause_s)
            try:
                again = await score([items[index] for index in waiting])
            except TransportError:
                break  # keep the answers so far, because --resume can retry these rows
            for index, scores in zip(waiting, again, strict=True):
                kept = {label: each for label, each in answers[index].items() if not self._may_come(each)}
                answers[index] = {label: kept.get(label, scores[label]) for label in answers[index]}
            waiting = self._rows_to_retry(answers)
        self.scored += first - len(waiting)
        return answers

    def _rows_to_retry(self, answers: Sequence[Scores]) -> list[int]:
        far = [item for scores in answers for item in scores.items() if self._is_far(item[1])]
        if far and not self._reported:
            self._reported = True
            label, result = far[0]
            click.echo(
                f"{_example(label, result)}: not retried, because the server asks to wait {result.retry_after_s:g} s, "
                f"longer than --deadline-s {self.longest_pause_s:g}. Use --resume later",
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
        scores: Scores and costs by label. Empty for a row from an earlier run.
    """

    row: Row
    output: Mapping[str, Any]
    scores: Mapping[str, MetricScore]


@dataclass(slots=True)
class RowScorer:
    """An object that scores rows with a client. Create it with `open`.

    Attributes:
        lines: The server's metric identifiers by label.
        judges: The state of the run's judges.
        resumed: A function that returns a row's output from an earlier run, or None.
    """

    client: AsyncClient
    plan: ScorePlan
    lines: dict[str, str]
    judges: JudgeWatch
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
        """Resolve the metrics on the server before any row is read. `deadline_s` limits each request, in seconds."""
        # A metric that counts words over the request needs all rows in a single request.
        judged = plan.chosen.asks_judge and not counting_over_request(plan.chosen.specs)
        report = await client.score([], **plan.arguments())
        judges = JudgeWatch.of(plan.chosen)
        return cls(
            client,
            plan,
            {label: provenance.line for label, provenance in report.provenance.items()},
            judges,
            RowRetries(plan.retries, deadline_s, judges),
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
        """Score rows lazily, and pass them to `take` in order, batch by batch.

        `progress` is called with the number of finished rows, which includes the `already` rows that were finished
        before this call.

        Raises:
            GradewireError: The server is down or refuses the call. Batches that were passed before stay valid.
            UnreachableError: The judge cannot be used, and every metric needs one.
        """
        async with contextlib.aclosing(self._judged_batches(rows)) as batches:
            async for batch in batches:
                take(batch)
                already += len(batch)
                if progress is not None:
                    progress(already, "")

    async def _judged_batches(self, rows: Iterable[Row]) -> AsyncGenerator[list[ScoredRow], None]:
        held: list[ScoredRow] = []
        async with contextlib.aclosing(self._batches(rows)) as batches:
            async for batch in batches:
                try:
                    self.judges.check(scored.scores for scored in batch)
                except UnreachableError:
                    if self.judges.answered:  # a later run takes the first row that the judge missed, and all others
                        yield held + list(itertools.takewhile(lambda row: self.judges.is_judged(row.scores), batch))
                    raise
                held += batch
                if not self.judges.holds_rows or len(held) >= BATCH_ROWS:
                    yield held
                    held = []
        if held:
            yield held

    async def _batches(self, rows: Iterable[Row]) -> AsyncGenerator[list[ScoredRow], None]:
        # The reader's thread may wait hours for standard input, but Ctrl-C must not wait for it.
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
        shown = await asyncio.to_thread(lambda: [item_with_pictures(row, folder) for row in fresh])
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
                    f"{label} was first computed as {self.lines[label]}, then as {provenance.line}. The servers at "
                    "this address differ. Give all servers the same versions and models, then use --resume"
                )
        return report

    def _scored(self, row: Row, scores: Mapping[str, MetricScore], lack: str = "") -> ScoredRow:
        results = {}
        for label, score in scores.items():
            result = score.to_dict()
            if score.message:
                # The client names the position in the batch, but users need the position in their file.
                result["message"] = _ITEM.sub(lambda _: row.position, score.message)
            if lack and score.status is Status.INVALID_INPUT and label in self.plan.chosen.image_labels:
                result["message"] = f"{result.get('message', row.position)} ({lack})"
            # A row that was never sent also gets the identifier, which --resume compares.
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
