"""Score parts in one worker process, and report counts, costs and times."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click

from gradewire._calls.background import BackgroundLoop
from gradewire.errors import GradewireError, InconsistentReplies, TransportError
from gradewire_cli.bulk.parts import PartId, PartRows, PartStore
from gradewire_cli.problems import InputError, UnreachableError
from gradewire_cli.results.journal import whole_lines
from gradewire_cli.results.resumable_output import encode_rows, may_pass, with_lines
from gradewire_cli.results.summary import Summary
from gradewire_cli.results.tallies import PaidTokens
from gradewire_cli.rows.files import file_system, is_url
from gradewire_cli.rows.row import result_key
from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from gradewire import Tls
    from gradewire.transport import Transport
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.scoring.plan import ScorePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """A worker's report on one part.

    Attributes:
        rows: Number of rows, or 0 if the run stopped before the part started.
        unanswered: Number of rows to score again with --resume.
        error: Reason why the part could not be scored, or "".
        unreachable: True if the part failed because the server was down.
        worker: The process that scored the part, as HOST:PID.
    """

    part: PartId
    rows: int = 0
    failed: int = 0
    unanswered: int = 0
    reused: int = 0
    error: str = ""
    unreachable: bool = False
    texts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    paid: Mapping[str, PaidTokens] = field(default_factory=dict)
    worker: str = ""
    worker_cpu_s: float = 0.0
    worker_rss_bytes: int = 0

    @classmethod
    def failure(cls, part: PartId, error: Exception) -> Self:
        """Return the record of a part that could not be scored."""
        message = str(error) or type(error).__name__
        return cls(part=part, error=message, unreachable=isinstance(error, TransportError))

    def problem(self) -> Exception:
        """Return the record's error as one of the command's exceptions."""
        return (UnreachableError if self.unreachable else InputError)(self.error)


def costs_of(summary: Summary) -> dict[str, Any]:
    """Return the cost fields of a `PartRecord`."""
    return {
        "texts": dict(summary.texts),
        "seconds": dict(summary.seconds),
        "paid": {
            label: tally.judge.paid
            for label, tally in summary.metrics.items()
            if tally.judge is not None and tally.judge.paid
        },
    }


@dataclass(slots=True)
class RunTally:
    """The sum of a run's records. `scored` does not count reused rows."""

    rows: int = 0
    scored: int = 0
    failed: int = 0
    unanswered: int = 0
    first_problem: PartRecord | None = None
    cpu_s: dict[str, float] = field(default_factory=dict)
    rss_bytes: dict[str, int] = field(default_factory=dict)
    _texts: Counter[str] = field(default_factory=Counter)
    _seconds: Counter[str] = field(default_factory=Counter)
    _paid: dict[str, PaidTokens] = field(default_factory=dict)

    def add(self, record: PartRecord) -> None:
        """Add a record."""
        if record.error:
            self.first_problem = self.first_problem or record
            return
        self.rows += record.rows
        self.scored += record.rows - record.reused
        self.failed += record.failed
        self.unanswered += record.unanswered
        self._texts.update(record.texts)
        self._seconds.update(record.seconds)
        for label, paid in record.paid.items():
            self._paid[label] = self._paid.get(label, PaidTokens()) + paid
        if record.worker:
            self.cpu_s[record.worker] = max(record.worker_cpu_s, self.cpu_s.get(record.worker, 0.0))
            self.rss_bytes[record.worker] = max(record.worker_rss_bytes, self.rss_bytes.get(record.worker, 0))

    def report(self, summary: Summary) -> None:
        """Add this run's costs to a summary of all rows."""
        summary.texts.update(self._texts)
        summary.seconds.update(self._seconds)
        for label, paid in self._paid.items():
            tally = summary.metrics.get(label)
            if tally is not None and tally.judge is not None:
                tally.judge.paid = paid


_CHAINED: Final = "::"
_LOCAL_URLS: Final = ("file://", "local://")


def absolute_name(path_or_url: str) -> str:
    """Make a path or a local URL absolute. Return other URLs unchanged."""
    if not is_url(path_or_url):
        return str(Path(path_or_url).absolute())
    return _CHAINED.join(map(_absolute_link, path_or_url.split(_CHAINED)))


def _absolute_link(url: str) -> str:
    if not url.startswith(_LOCAL_URLS):
        return url
    system, path = file_system(url)
    return str(system.unstrip_protocol(path))


def absolute_connection(connection: ConnectionOptions) -> ConnectionOptions:
    """Return a connection with absolute paths."""
    return replace(
        connection,
        cache_dir=connection.cache_dir and connection.cache_dir.expanduser().absolute(),
        models_dir=connection.models_dir and connection.models_dir.expanduser().absolute(),
        tls=connection.tls and _absolute_tls(connection.tls),
    )


def _absolute_tls(tls: Tls) -> Tls:
    return replace(
        tls,
        root_certificates=tls.root_certificates and tls.root_certificates.absolute(),
        certificate_chain=tls.certificate_chain and tls.certificate_chain.absolute(),
        private_key=tls.private_key and tls.private_key.absolute(),
    )


_RSS_UNIT_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """The settings that the command sends to every worker.

    Attributes:
        lines: Metric identifiers by label. A worker with different identifiers scores nothing.
        unanswered: Parts of earlier runs with rows to score again.
    """

    connection: ConnectionOptions
    plan: ScorePlan
    lines: Mapping[str, str]
    store: PartStore
    unanswered: frozenset[tuple[int, int]] = frozenset()

    def absolute(self) -> Self:
        """Return the setup with absolute paths, because workers run in another directory."""
        return replace(
            self,
            connection=absolute_connection(self.connection),
            plan=replace(self.plan, pictures=self.plan.pictures and self.plan.pictures.absolute()),
            store=PartStore(absolute_name(self.store.path_or_url)),
        )


@dataclass(slots=True)
class PartScorer:
    """A scorer of parts that is safe for concurrent calls. Call `close` at the end."""

    setup: WorkerSetup
    transport: Transport | None = None
    _loop: BackgroundLoop | None = field(default=None, init=False)
    _opened: Future[RowScorer] | None = field(default=None, init=False)
    _resources: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack, init=False)
    _known: dict[tuple[int, str], Mapping[str, Any]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def score(self, part: PartRows) -> PartRecord:
        """Score a part, write the results, and return the part's record.

        If the server or an option prevents scoring, this record and all later records contain an error.
        """
        if self.setup.store.is_stopping():
            return PartRecord(part=part.part)
        try:
            loop, scorer = self._opened_scorer()
            return loop.run(self._score(scorer, part))
        except (GradewireError, click.ClickException, OSError) as error:
            return PartRecord.failure(part.part, error)

    def close(self) -> None:
        """Close the engine or the connection."""
        if self._loop is not None:
            self._loop.run(self._resources.aclose())
            self._loop.stop()
            self._loop = self._opened = None

    def _opened_scorer(self) -> tuple[BackgroundLoop, RowScorer]:
        with self._lock:
            if self._loop is None or self._opened is None:
                self._loop = BackgroundLoop("gradewire-bulk")
                self._opened = self._loop.start(self._open())
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
                f"a worker on {socket.gethostname()} computes {differing} as {scorer.lines.get(differing)}, but the "
                f"run started with {setup.lines[differing]}. Install the same gradewire and models on all machines"
            )
        return scorer

    async def _score(self, scorer: RowScorer, part: PartRows) -> PartRecord:
        known = await asyncio.to_thread(self._final_results_of_earlier_run, part)
        self._known |= known
        rows: list[Mapping[str, Any]] = []
        summary = Summary()

        def take(batch: Sequence[ScoredRow]) -> None:
            for scored in batch:
                rows.append(scored.output)
                summary.add(scored.output, scored.scores, row=scored.row)

        try:
            await scorer.score(part.rows, take)
        finally:
            for key in known:
                self._known.pop(key, None)
        unanswered = sum(map(may_pass, rows))
        await asyncio.to_thread(self._write, part, rows, answered=not unanswered)
        return PartRecord(
            part=part.part,
            rows=len(rows),
            failed=summary.failed_rows,
            unanswered=unanswered,
            reused=len(known),
            **costs_of(summary),
            worker=f"{socket.gethostname()}:{os.getpid()}",
            worker_cpu_s=time.process_time(),
            worker_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT_BYTES,
        )

    def _final_results_of_earlier_run(self, part: PartRows) -> dict[tuple[int, str], Mapping[str, Any]]:
        if part.part not in self.setup.unanswered:
            return {}
        # A killed process may have left an incomplete last line.
        lines = whole_lines(self.setup.store.read_latest(part.part).splitlines(keepends=True))
        rows = [with_lines(json.loads(line), self.setup.lines) for _, _, line in lines]
        return {result_key(row): row for row in rows if not may_pass(row)}

    def _write(self, part: PartRows, rows: Sequence[Mapping[str, Any]], *, answered: bool) -> None:
        self.setup.store.write_part(part.part, encode_rows(rows, first=True), answered=answered)
