"""The connection between the supervisor and a process, for heartbeats and metrics as lines of JSON."""

import asyncio
import itertools
import json
import logging
import operator
import socket
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from typing import Any, Final, TypeAlias

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

_log = logging.getLogger(__name__)

MetricsJson: TypeAlias = list[Any]
"""Metric families in JSON: name, documentation, type, unit, and samples (name, labels, value)."""
_LARGEST: Final = frozenset(
    {
        "gradewire_serving",
        "gradewire_degraded",
        "gradewire_admission_wait_seconds",
        "gradewire_overload_seconds",
        "gradewire_engine_breaker_state",
        "gradewire_judge_up",
        "gradewire_engine_triton_breaker_state",
        "process_start_time_seconds",
        "process_max_fds",
        "python_info",
    }
)
"""Gauges that are not amounts. The value for all processes is the largest value instead of the sum."""
_MAX_LINE_BYTES: Final = 16 << 20
_BEAT: Final = "beat"
_METRICS: Final = "metrics"
_WANTED: Final = "wanted"

Collect: TypeAlias = Callable[[], Awaitable[MetricsJson]]


def to_json(metrics: Iterable[Metric]) -> MetricsJson:
    """Convert metric families to JSON, without exemplars."""
    return [
        [each.name, each.documentation, each.type, each.unit, [[s.name, s.labels, s.value] for s in each.samples]]
        for each in metrics
    ]


def add_up(processes: Iterable[MetricsJson]) -> list[Metric]:
    """Return the combined metrics of several processes."""
    totals: dict[str, tuple[Metric, dict[Any, Sample]]] = {}
    for name, documentation, kind, unit, samples in chain.from_iterable(processes):
        metric = Metric(name, documentation, kind, unit)
        _, found = totals.setdefault(name, (metric, {}))
        combine = max if name in _LARGEST or kind == "info" else operator.add
        for sample_name, labels, value in samples:
            key = sample_name, tuple(sorted(labels.items()))
            before = found.get(key)
            found[key] = Sample(sample_name, labels, value if before is None else combine(before.value, value))
    for metric, found in totals.values():
        metric.samples = list(found.values())
    return [metric for metric, _ in totals.values()]


class ProcessConnection:
    """One end of the connection between the supervisor and a process. Use it on one event loop only."""

    def __init__(self, end: socket.socket, collect: Collect, beat: Callable[[dict[str, Any]], None]) -> None:
        self._end = end
        self._collect = collect
        self._on_beat = beat
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[MetricsJson]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Read messages until the other side is gone or sends an invalid message."""
        reader, self._writer = await asyncio.open_connection(sock=self._end, limit=_MAX_LINE_BYTES)
        # Make `drain` wait until the system has taken all data. When the process ends, all other data is lost.
        self._writer.transport.set_write_buffer_limits(high=0)
        try:
            while (message := await _next_message(reader)) is not None:
                self._take(message)
        finally:
            self._writer.transport.abort()  # the peer is gone: drop unsent data
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionError("the other side is gone"))

    def beat(self, report: dict[str, Any]) -> None:
        """Send a heartbeat with this side's state."""
        self._send([_BEAT, report])

    async def send_metrics(self, metrics_json: MetricsJson, timeout_s: float) -> None:
        """Send an ending process's final metrics, and wait until the system has taken them.

        Raises:
            TimeoutError: The other side did not read the metrics in time.
            ConnectionError: The other side is gone.
        """
        self._send([_METRICS, -1, metrics_json])
        if self._writer is not None:
            async with asyncio.timeout(timeout_s):
                await self._writer.drain()

    async def ask(self, timeout_s: float) -> MetricsJson:
        """Return the other side's metrics; raise TimeoutError, or ConnectionError if the other side is gone."""
        number = next(self._numbers)
        answer: asyncio.Future[MetricsJson] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self._send([_WANTED, number])
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            del self._asked[number]

    def _take(self, message: list[Any]) -> None:
        kind, said = message[0], message[1]
        if kind == _BEAT:
            self._on_beat(said)
        elif kind == _WANTED:
            task = asyncio.create_task(self._answer(said))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif said == -1:
            self._on_beat({"metrics": message[2]})
        elif (asked := self._asked.get(said)) is not None and not asked.done():
            asked.set_result(message[2])

    async def _answer(self, number: int) -> None:
        self._send([_METRICS, number, await self._collect()])

    def _send(self, message: list[Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")


async def _next_message(reader: asyncio.StreamReader) -> list[Any] | None:
    try:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            return None  # the other side ended, perhaps in the middle of a line
        kind, content, *more = json.loads(line)
    except ConnectionError:
        return None
    except (ValueError, TypeError):
        _log.exception(
            "A server process sent an invalid message, so its connection is closed. Please report this defect"
        )
        return None
    return [kind, content, *more]
