"""Send calls with one cold item each, and record the results."""

import asyncio
import ctypes
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from benchmarks.load.frames import Ended, FramedConnection
from benchmarks.load.memory import WORDS

from gradewire_cli.bench.load.calls import open_loop
from gradewire_proto.v1 import scoring_pb2, types_pb2

_SET_ATTRIBUTES: Final = {"x86_64": 314, "aarch64": 274}
"""System call number of `sched_setattr` by machine; glibc has no function for it before 2.41."""
_SLICE_NS: Final = 100_000
"""The shortest slice that Linux allows."""
SCORE: Final = "/gradewire.v1.Scoring/Score"
_OK: Final = types_pb2.STATUS_OK


def even_times(calls_per_s: float, duration_s: float) -> Iterator[float]:
    """Yield equally spaced times on the running event loop's clock, starting now."""
    began_s = asyncio.get_running_loop().time()
    calls = max(1, round(calls_per_s * duration_s))
    return (began_s + call / calls_per_s for call in range(calls))


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    )


def ask_for_short_slices() -> bool:
    """Request short time slices for this thread and its new threads; return True if the system accepts.

    An older Linux accepts the request but changes nothing.
    """
    number = _SET_ATTRIBUTES.get(platform.machine())
    if platform.system() != "Linux" or number is None or sys.maxsize < 2**32:
        return False  # system call numbers differ on other systems and in 32 bits
    try:
        policy = os.sched_getscheduler(0)
    except OSError:  # the C library or the container lacks the call
        return False
    if policy != os.SCHED_OTHER:
        return False  # the user chose another policy
    wanted = _Attributes(size=ctypes.sizeof(_Attributes), nice=os.nice(0), runtime_ns=_SLICE_NS)
    taken: int = ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.byref(wanted), 0)
    return taken == 0


class Texts:
    """A source of serialized requests with one new answer each."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - no secret
        self._made = 0

    def next(self) -> bytes:
        """Return the next request."""
        self._made += 1
        words = self._source.choices(WORDS, k=4)
        item = types_pb2.Item(
            question="what is on the table?",
            references=["a bowl of fruit"],
            prediction=f"{' '.join(words)} {self._made}",
        )
        metric = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
        return scoring_pb2.ScoreRequest(items=[item], metrics=[metric], omit_diagnostics=True).SerializeToString()


@dataclass
class Tally:
    """The results of a phase's calls.

    Attributes:
        scored_s: Latencies of scored calls, from the scheduled time.
        refused_s: Latencies of refused calls, from the time of sending.
    """

    scored_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    hinted: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    sent: int = 0

    def count(self, ended: Ended, due_s: float, left_s: float) -> None:
        """Count a call that was due at `due_s` and sent at `left_s`."""
        if ended.code != "OK":
            self.ends[ended.code] += 1
            if ended.code == "RESOURCE_EXHAUSTED":
                self.refused_s.append(time.monotonic() - left_s)
                self.hinted += ended.hinted
            return
        status = scoring_pb2.ScoreResponse.FromString(ended.data).items[0].results[0].status
        self.ends[types_pb2.Status.Name(status)] += 1
        if status == _OK:
            self.scored_s.append(time.monotonic() - due_s)


class Generator:
    """A sender of calls over a few connections, without retries."""

    def __init__(self, connections: Sequence[FramedConnection]) -> None:
        self._connections = connections
        self._texts = Texts(seed=os.getpid())

    @classmethod
    async def open(cls, address: str, connections: int, deadline_s: float) -> Self:
        """Open the connections."""
        return cls([await FramedConnection.open(SCORE, address, deadline_s) for _ in range(connections)])

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    def send(self, tally: Tally, due_s: float) -> asyncio.Future[Ended]:
        """Send a call; the future is done when the call is counted."""
        tally.sent += 1
        left_s = time.monotonic()
        answer = self._connections[tally.sent % len(self._connections)].call(self._texts.next())
        answer.add_done_callback(lambda done: tally.count(done.result(), due_s, left_s))
        return answer

    async def closed_loop(self, duration_s: float, in_flight: int) -> Tally:
        """Keep `in_flight` calls open for `duration_s`."""
        tally, end_s = Tally(), time.monotonic() + duration_s

        async def one_after_another() -> None:
            while time.monotonic() < end_s:
                await self.send(tally, time.monotonic())

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
        return tally

    async def open_loop(self, duration_s: float, calls_per_s: float) -> Tally:
        """Send calls on a schedule, without a limit on open calls."""
        tally = Tally()

        async def send(due_s: float) -> None:
            self.ended_s = time.monotonic()
            await self.send(tally, due_s)

        await open_loop(even_times(calls_per_s, duration_s), send)
        return tally

    async def recovery_s(self, usual_s: float) -> float:
        """Return the seconds after a flood until a single call takes at most three times `usual_s`."""
        while True:
            tally, began_s = Tally(), time.monotonic()
            await self.send(tally, began_s)
            if tally.scored_s and tally.scored_s[0] <= 3 * usual_s:
                return began_s - self.ended_s
            if began_s - self.ended_s > 60:
                return float("inf")


def percentiles_ms(seconds: Sequence[float]) -> str:
    """Return p50 / p99 in ms."""
    return " / ".join(f"{np.percentile(seconds, q) * 1e3:.0f}" for q in (50, 99)) if seconds else "-"
