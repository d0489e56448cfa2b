"""Stream rows: read a few rows ahead, and send unfinished rows again after a stream breaks."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from typing import Any, Generic

from google.protobuf.message import Message

from gradewire._calls.requests import ASSUMED_BYTES, ASSUMED_ITEMS, ChunkLimits, M, OpenRow, R, Rows, chunk_limits, cut
from gradewire._calls.retries import Retries
from gradewire._tracing import UNTRACED, CallTrace, stream_trace
from gradewire.errors import DeadlineExceeded, ServerFault, TransportError
from gradewire.items import ItemProblem
from gradewire.results import Limits, Status
from gradewire.transport import Transport

_MESSAGE_LIMITS = ChunkLimits(max_items=ASSUMED_ITEMS, max_bytes=ASSUMED_BYTES)


class RowStream(Generic[M, R]):
    """A running stream of rows.

    Args:
        transport: The transport to the server.
        rows: The call's rows, or a function that returns them when the stream starts.
        source: The caller's items or pairs.
        limits: A function that returns the server's limits; called only for a row that may exceed a limit.
        stall_s: Maximum number of seconds to wait for the next result while rows are in progress.
    """

    def __init__(
        self,
        transport: Transport,
        rows: Rows[M, R] | Callable[[], Awaitable[Rows[M, R]]],
        source: AsyncIterable[Any],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
    ) -> None:
        self._transport = transport
        self._given = rows
        self._trace: CallTrace = UNTRACED
        self._stall_s = stall_s
        self._source = source
        self._limits = limits
        self._open: dict[int, OpenRow[M]] = {}
        self._unsent: deque[int] = deque()
        self._done: list[R] = []
        self._error: BaseException | None = None
        self._exhausted = False
        self._finished = False
        self._to_send = asyncio.Event()
        self._to_take = asyncio.Event()
        self._active_at = 0.0
        # A server that ends a stream at its own deadline keeps finished work, so a new stream can resume.
        self._retries = Retries(self._left_s, resumed_after=(DeadlineExceeded,))

    async def run(self, on_close: Callable[[], AbstractContextManager[None]]) -> AsyncGenerator[list[R]]:
        """Yield batches of results, in any order. `on_close` translates errors caused by closing the client."""
        with on_close():
            self._rows = self._given if isinstance(self._given, Rows) else await self._given()
        self._room = asyncio.Semaphore(self._rows.ahead)
        with stream_trace(self._rows.span_name) as self._trace:
            self._active_at = time.monotonic()
            tasks = [
                asyncio.create_task(self._read_source()),
                asyncio.create_task(self._converse(), context=self._trace.context),
            ]
            try:
                while True:
                    with on_close():
                        await self._wait()
                        if self._error is not None and not self._done:
                            raise self._error
                    done, self._done = self._done, []
                    if done:
                        if self._rows.emits_events:
                            self._trace.answered(done)
                        yield done
                        for _ in done:
                            self._room.release()
                    elif self._finished:
                        return
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self) -> None:
        """Wait for a result; raise DeadlineExceeded if no result arrives in time while rows are in progress."""
        while not (self._done or self._finished or self._error):
            self._to_take.clear()
            left_s = self._left_s()
            if self._open and left_s <= 0:
                late = DeadlineExceeded(
                    f"no result arrived within deadline_s={self._stall_s:g} while {len(self._open)} {self._rows.noun}s "
                    "were in progress: check the server, or use a larger deadline_s"
                )
                raise self._retries.with_attempts(late)
            try:
                async with asyncio.timeout(left_s if self._open else None):
                    await self._to_take.wait()
            except TimeoutError:
                continue

    def _left_s(self) -> float:
        """Return the seconds left to wait for a result. Time counts only while rows are in progress."""
        if not self._open and self._rows.provenance:
            return self._stall_s
        return self._active_at + self._stall_s - time.monotonic()

    async def _read_source(self) -> None:
        try:
            await self._read_rows()
        except Exception as error:  # noqa: BLE001 - re-raised where the caller waits
            self._fail(error)
        self._exhausted = True
        self._to_send.set()

    async def _read_rows(self) -> None:
        index = 0
        async for row in self._source:
            await self._room.acquire()
            await self._add(index, row)
            index += 1

    async def _add(self, index: int, row: Any) -> None:
        self._trace.noted(index, row)
        message = self._rows.encode(index, row, ASSUMED_BYTES)
        if isinstance(message, ItemProblem) and message.too_large:
            limits = chunk_limits(await self._limits(), overhead_bytes=0)
            message = self._rows.encode(index, row, limits.max_item_bytes)
        if isinstance(message, ItemProblem):
            failure = (Status.INVALID_INPUT, message.message)
            self._done.append(self._rows.failed(index, message.id, failure))
        else:
            if not self._open:
                self._active_at = time.monotonic()
            self._open[index] = OpenRow(message)
            self._unsent.append(index)
            self._to_send.set()
        self._to_take.set()

    async def _converse(self) -> None:
        try:
            while True:
                connection = StreamAttempt()
                self._unsent = deque(sorted(self._open))
                try:
                    await self._exchange(connection)
                except TransportError as error:
                    if self._is_answered():
                        self._finish()
                        break
                    await self._retries.wait_after(error)
                else:
                    break
                finally:
                    connection.over = True
                    connection.accepted.set()
        except Exception as error:  # noqa: BLE001 - re-raised where the caller waits
            self._fail(error)

    async def _exchange(self, connection: "StreamAttempt") -> None:
        async with aclosing(self._transport.stream(self._rows.stream, self._requests(connection))) as replies:
            async for reply in replies:
                self._take(connection, reply)
        if self._open:
            raise ServerFault(
                f"the stream ended with {len(self._open)} unanswered {self._rows.noun}s: report this defect"
            )
        self._finish()

    def _finish(self) -> None:
        self._finished = True
        self._to_take.set()

    def _is_answered(self) -> bool:
        return self._exhausted and not self._open and bool(self._rows.provenance)

    async def _requests(self, connection: "StreamAttempt") -> AsyncIterator[Message]:
        yield self._rows.stream_config()
        # Wait until the server accepts the call, because gRPC loses a call's status if the call ends while the client
        # writes a message.
        await connection.accepted.wait()
        # A broken stream may still read from this iterator for a moment. The next stream would then miss those rows.
        while connection.is_on():
            self._to_send.clear()
            unsent, self._unsent = self._unsent, deque()
            for chunk in list(cut([(index, self._open[index].message) for index in unsent], _MESSAGE_LIMITS)):
                connection.sent += chunk.indices
                yield self._rows.stream_request(chunk.messages, self._stall_s)
                if not connection.is_on():
                    return
            if self._unsent:
                continue
            if self._exhausted:
                return
            await self._to_send.wait()

    def _take(self, connection: "StreamAttempt", reply: Any) -> None:
        connection.accepted.set()
        results = self._rows.received(reply)
        for result in results:
            index = connection.sent[result.index] if result.index < len(connection.sent) else -1
            if (row := self._open.get(index)) is None:
                raise ServerFault(
                    f"the server answered unknown {self._rows.noun} {result.index} of the stream: report this defect"
                )
            if (completed := self._rows.completed(index, row, result)) is not None:
                del self._open[index]
                self._done.append(completed)
                self._retries.progressed()
        if results:
            self._active_at = time.monotonic()
        self._to_take.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._to_take.set()


@dataclass(slots=True)
class StreamAttempt:
    """A stream on the transport. The client sends rows only after the server's first message sets `accepted`."""

    sent: list[int] = field(default_factory=list)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def is_on(self) -> bool:
        return not self.over
