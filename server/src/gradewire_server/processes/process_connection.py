"""The connection between the supervisor and its processes, a line of JSON a message; metrics that are added up."""

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
"""Families as JSON has them: name, documentation, type, unit, and samples as name, labels, value."""
_LARGEST: Final = frozenset(
    {
        "gradewire_serving",
        "gradewire_degraded",
        "gradewire_admission_wait_seconds",
        "gradewire_overload_seconds",
        "gradewire_engine_breaker_state",
        "gradewire_judge_up",
        "gradewire_triton_breaker_state",
        "process_start_time_seconds",
        "process_max_fds",
        "python_info",
    }
)
"""Gauges that are no amounts: of all processes the largest value is shown. Other gauges are added up."""
_MAX_LINE_BYTES: Final = 16 << 20
_BEAT: Final = "beat"
_METRICS: Final = "metrics"
_WANTED: Final = "wanted"

Collect: TypeAlias = Callable[[], Awaitable[MetricsJson]]


def to_json(metrics: Iterable[Metric]) -> MetricsJson:
    """Families as JSON can hold them; exemplars are left out."""
    return [
        [each.name, each.documentation, each.type, each.unit, [[s.name, s.labels, s.value] for s in each.samples]]
        for each in metrics
    ]


def add_up(processes: Iterable[MetricsJson]) -> list[Metric]:
    """Return the metrics of processes together."""
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
    """One end of it; both ends may ask the other for figures. Lives on one event loop."""

    def __init__(self, end: socket.socket, collect: Collect, beat: Callable[[dict[str, Any]], None]) -> None:
        self._end = end
        self._collect = collect
        self._on_beat = beat
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[MetricsJson]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Reads what the other side says until it is gone, or says what is no message: that is logged as a defect."""
        reader, self._writer = await asyncio.open_connection(sock=self._end, limit=_MAX_LINE_BYTES)
        # So `drain` waits until the system has taken all of it: what is left when a process ends is lost.
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
        """Tells the other side that this one lives, and how."""
        self._send([_BEAT, report])

    async def send_metrics(self, metrics_json: MetricsJson, timeout_s: float) -> None:
        """Sends figures that nobody has asked for, the last ones of a process that ends, and waits until they are sent.

        Raises:
            TimeoutError: The other side has not read them by then; it takes what has come of them for the end.
            ConnectionError: It is gone.
        """
        self._send([_METRICS, -1, metrics_json])
        if self._writer is not None:
            async with asyncio.timeout(timeout_s):
                await self._writer.drain()

    async def ask(self, timeout_s: float) -> MetricsJson:
        """The other side's figures; raises TimeoutError, and ConnectionError where it is gone."""
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
    """Return the next message; None where there are no more of them."""
    try:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            return None  # the other side ended, perhaps while it wrote
        kind, content, *more = json.loads(line)
    except ConnectionError:
        return None
    except (ValueError, TypeError):
        _log.exception(
            "a process of this server has said what is no message, so the link to it ends: report this defect"
        )
        return None
    return [kind, content, *more]
