"""Scores parts in one process: an engine of its own, or a client of a server, on an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from gradewire.cli.bulk.absolute import absolute_connection, absolute_place
from gradewire.cli.bulk.parts import PartStore
from gradewire.cli.bulk.records import PartRecord, costs_of
from gradewire.cli.input.rows import result_key
from gradewire.cli.output.journal import whole_lines
from gradewire.cli.output.metric_lines import with_lines
from gradewire.cli.output.progress import progress
from gradewire.cli.output.result_rows import encode_rows, may_pass
from gradewire.cli.output.summary import Summary
from gradewire.cli.run.row_scorer import RowScorer
from gradewire.errors import GradewireError, InconsistentReplies

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from concurrent.futures import Future

    from gradewire.cli.bulk.reading import PartRows
    from gradewire.cli.options.connection import Connection
    from gradewire.cli.run.plan import ScorePlan
    from gradewire.cli.run.row_scorer import ScoredRow
    from gradewire.transport import Transport

_T = TypeVar("_T")
_RSS_UNIT_BYTES = 1024
"""Of `ru_maxrss` on Linux."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What every worker is made with; it travels to them.

    Attributes:
        connection: Where a worker scores.
        plan: What is asked of every row.
        lines: What the server said that it computes, by label; a worker that finds another scores nothing.
        store: Where parts are written.
        unanswered: Parts of earlier runs with rows to be scored again.
    """

    connection: Connection
    plan: ScorePlan
    lines: Mapping[str, str]
    store: PartStore
    unanswered: frozenset[tuple[int, int]] = frozenset()

    def absolute(self) -> Self:
        """The same with all paths from the root on: workers run in another directory than the command."""
        return replace(
            self,
            connection=absolute_connection(self.connection),
            plan=replace(self.plan, pictures=self.plan.pictures and self.plan.pictures.absolute()),
            store=PartStore(absolute_place(self.store.place)),
        )


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gradewire-bulk", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self.run(self._loop.shutdown_default_executor()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass(slots=True)
class PartScorer:
    """Scores parts, several at a time if it is called so; close it at the end.

    Attributes:
        setup: What it is made with.
        transport: From tests: takes the place of the connection.
    """

    setup: WorkerSetup
    transport: Transport | None = None
    _loop: _LoopThread | None = field(default=None, init=False)
    _opened: Future[RowScorer] | None = field(default=None, init=False)
    _resources: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack, init=False)
    _known: dict[tuple[int, str], Mapping[str, Any]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def score(self, part: PartRows) -> PartRecord:
        """Scores a part, writes it, and says what came of it.

        A part that cannot be scored because of the server or an option is a record with an error, and so are all that
        come after it until somebody starts again.
        """
        if self.setup.store.is_stopping():
            return PartRecord(file=part.part.file, number=part.part.number)
        try:
            loop, scorer = self._opened_scorer()
            return loop.run(self._score(scorer, part)).result()
        except (GradewireError, click.ClickException, OSError) as error:
            return PartRecord.failure(part.part, error)

    def close(self) -> None:
        """Closes the engine or the connection; a worker that is killed needs none of it."""
        if self._loop is not None:
            self._loop.run(self._resources.aclose()).result()
            self._loop.close()
            self._loop = self._opened = None

    def _opened_scorer(self) -> tuple[_LoopThread, RowScorer]:
        with self._lock:
            if self._loop is None or self._opened is None:
                self._loop = _LoopThread()
                self._opened = self._loop.run(self._open())
        return self._loop, self._opened.result()

    async def _open(self) -> RowScorer:
        setup = self.setup
        client = await self._resources.enter_async_context(setup.connection.open(self.transport))
        scorer = await RowScorer.open(
            client, setup.plan, deadline_s=setup.connection.deadline_s, known=lambda row: self._known.get(row.key)
        )
        if scorer.lines != setup.lines:
            differing = next(label for label in setup.lines if scorer.lines.get(label) != setup.lines[label])
            raise InconsistentReplies(
                f"a worker on {socket.gethostname()} computes {differing} as {scorer.lines.get(differing)}, and the "
                f"run began with {setup.lines[differing]}: install the same gradewire and models on all machines"
            )
        return scorer

    async def _score(self, scorer: RowScorer, part: PartRows) -> PartRecord:
        known = await asyncio.to_thread(self._earlier, part)
        self._known |= known
        rows: list[Mapping[str, Any]] = []
        summary = Summary()

        def take(batch: Sequence[ScoredRow]) -> None:
            for scored in batch:
                rows.append(scored.output)
                summary.add(scored.output, scored.scores, row=scored.row)

        try:
            with progress("", None, quiet=True) as silent:
                await scorer.score(part.rows, take, silent)
        finally:
            for key in known:
                self._known.pop(key, None)
        unanswered = sum(map(may_pass, rows))
        await asyncio.to_thread(self._write, part, rows, answered=not unanswered)
        return PartRecord(
            file=part.part.file,
            number=part.part.number,
            rows=len(rows),
            failed=summary.failed_rows,
            unanswered=unanswered,
            kept=len(known),
            **costs_of(summary),
            worker=f"{socket.gethostname()}:{os.getpid()}",
            worker_cpu_s=time.process_time(),
            worker_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT_BYTES,
        )

    def _earlier(self, part: PartRows) -> dict[tuple[int, str], Mapping[str, Any]]:
        """Results of an earlier run that stand, by `Row.key`, where it left rows of this part without an answer."""
        if part.part not in self.setup.unanswered:
            return {}
        # The last line may be torn where a kill left the beginning of a part (`write_whole`).
        lines = whole_lines(self.setup.store.read_latest(part.part).splitlines(keepends=True))
        rows = [with_lines(json.loads(line), self.setup.lines) for _, _, line in lines]
        return {result_key(row): row for row in rows if not may_pass(row)}

    def _write(self, part: PartRows, rows: Sequence[Mapping[str, Any]], *, answered: bool) -> None:
        self.setup.store.write_part(part.part, encode_rows(rows, first=True), answered=answered)
