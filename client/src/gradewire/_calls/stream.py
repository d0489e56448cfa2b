"""One stream of rows: reads ahead a little, and goes on with the unfinished rows when a stream breaks."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from google.protobuf.message import Message

from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._calls.requests import ASSUMED_BYTES, ASSUMED_ITEMS, ChunkLimits, chunk_limits, cut
from gradewire._tracing import UNTRACED, stream_trace
from gradewire._transport.retries import Retries
from gradewire.errors import DeadlineExceeded, ServerFault, TransportError
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metrics.choice import MetricChoice
from gradewire.results import ItemScores, Limits, MetricScore, Provenance, Status
from gradewire.transport import SCORE_STREAM, Transport
from gradewire_proto.spans import CLIENT_STREAM
from gradewire_proto.v1 import scoring_pb2, types_pb2

if TYPE_CHECKING:
    from gradewire.transport import CallTrace


# Items between the caller's source and the caller's hands. What a slow server has in work at a time must fit into the
# deadline that it gives each item.
READ_AHEAD_ITEMS = 256
_MESSAGE_LIMITS = ChunkLimits(max_items=ASSUMED_ITEMS, max_bytes=ASSUMED_BYTES)


M = TypeVar("M", bound=Message)
R = TypeVar("R")
P = TypeVar("P")


@dataclass(slots=True)
class OpenRow(Generic[M, P]):
    """A row that was read and is not answered; kept so that it can be sent again when the stream breaks.

    Attributes:
        message: As it is sent.
        parts: What of its result has come, by label.
    """

    message: M
    parts: dict[str, P] = field(default_factory=dict)


class RowStream(ABC, Generic[M, R, P]):
    """A running stream.

    Args:
        source: The caller's rows.
        limits: Asks the server what a message may hold; called only for a row that not every server takes.
        stall_s: Longest wait for a result while rows are in work, seconds.
        noun: What rows are called in messages.
        ahead: Rows between the caller's source and the caller's hands.
    """

    def __init__(
        self,
        source: AsyncIterable[Any],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
        noun: str,
        ahead: int = READ_AHEAD_ITEMS,
    ) -> None:
        self._trace: CallTrace = UNTRACED
        self._stall_s = stall_s
        self._source = source
        self._limits = limits
        self._noun = noun
        self._open: dict[int, OpenRow[M, P]] = {}
        self._unsent: deque[int] = deque()
        self._done: list[R] = []
        self._error: BaseException | None = None
        self._room = asyncio.Semaphore(ahead)
        self._exhausted = False
        self._finished = False
        self._to_send = asyncio.Event()
        self._to_take = asyncio.Event()
        self._active_at = 0.0
        # A server that ends a stream by its own clock has not lost what was sent on it.
        self._retries = Retries(self._left_s, resumed_after=(DeadlineExceeded,))

    async def _begin(self) -> None:
        """What is to be known before the first row is read; by itself nothing."""

    def _traced(self, done: Sequence[R]) -> Sequence[Any]:
        """Results as events tell them; by itself those that the caller gets."""
        return done

    @property
    @abstractmethod
    def _span_name(self) -> str:
        """Of the call, in traces."""

    @property
    @abstractmethod
    def _accepted(self) -> bool:
        """Whether a server has said what it computes."""

    @abstractmethod
    def _encode(self, index: int, row: Any, max_bytes: int) -> M | ItemProblem:
        """The message of a row, or why there is none."""

    @abstractmethod
    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> R:
        """The result of a row that has none."""

    @abstractmethod
    def _config(self) -> Message:
        """The first request of a stream."""

    @abstractmethod
    def _rows(self, messages: Sequence[M]) -> Message:
        """A request with rows."""

    @abstractmethod
    def _start(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any]:
        """The transport's stream of replies."""

    @abstractmethod
    def _read(self, reply: Any, connection: "StreamAttempt") -> bool:
        """Takes a reply's results, by `waiting_for` and `answered`; whether it had any."""

    def waiting_for(self, connection: "StreamAttempt", number: int) -> tuple[int, OpenRow[M, P]]:
        """The row that a stream's running number means, with its index in the call; raises ServerFault for none."""
        index = connection.sent[number] if number < len(connection.sent) else -1
        if (waiting := self._open.get(index)) is None:
            raise ServerFault(f"the server answered {self._noun} {number} of the stream out of turn: report it")
        return index, waiting

    def answered(self, index: int, result: R) -> None:
        """A row has its result."""
        del self._open[index]
        self._done.append(result)
        self._retries.progressed()

    async def run(self, on_close: Callable[[], AbstractContextManager[None]]) -> AsyncGenerator[list[R]]:
        """Yields what is done, some at a time and not in order.

        Args:
            on_close: A context that says so where what goes wrong comes of the client's end.
        """
        with stream_trace(self._span_name) as self._trace:
            with on_close():
                await self._begin()
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
                        if self._trace is not UNTRACED:
                            self._trace.answered(self._traced(done))
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
        """Waits until there is something to yield; raises when no result came for too long while items are in work."""
        while not (self._done or self._finished or self._error):
            self._to_take.clear()
            left_s = self._left_s()
            if self._open and left_s <= 0:
                late = DeadlineExceeded(
                    f"no result came for deadline_s={self._stall_s:g} while {len(self._open)} {self._noun}s were in "
                    "work: look at the server, or give a larger deadline_s"
                )
                raise self._retries.with_attempts(late)
            try:
                async with asyncio.timeout(left_s if self._open else None):
                    await self._to_take.wait()
            except TimeoutError:
                continue

    def _left_s(self) -> float:
        """Seconds in which a result has to come; while the caller's source gives no item, none is owed."""
        if not self._open and self._accepted:
            return self._stall_s
        return self._active_at + self._stall_s - time.monotonic()

    async def _read_source(self) -> None:
        try:
            await self._read_rows()
        except Exception as error:  # noqa: BLE001 - the caller's source failed; it is raised where the caller waits
            self._fail(error)
        self._exhausted = True
        self._to_send.set()

    async def _read_rows(self) -> None:
        """Adds each row of the source while there is room."""
        index = 0
        async for row in self._source:
            await self._room.acquire()
            await self._add(index, row)
            index += 1

    async def _add(self, index: int, row: Any) -> None:
        self._trace.noted(index, row)
        message = self._encode(index, row, ASSUMED_BYTES)
        if isinstance(message, ItemProblem) and message.too_large:
            limits = chunk_limits(await self._limits(), overhead_bytes=0)
            message = self._encode(index, row, limits.max_item_bytes)
        if isinstance(message, ItemProblem):
            failure = (Status.INVALID_INPUT, message.message)
            self._done.append(self._failed(index, message.id, failure))
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
        except Exception as error:  # noqa: BLE001 - it is raised where the caller waits
            self._fail(error)

    async def _exchange(self, connection: "StreamAttempt") -> None:
        async with aclosing(self._start(self._requests(connection))) as replies:
            async for reply in replies:
                self._take(connection, reply)
        if self._open:
            raise ServerFault(f"the stream ended with {len(self._open)} {self._noun}s unanswered: report it")
        self._finish()

    def _finish(self) -> None:
        self._finished = True
        self._to_take.set()

    def _is_answered(self) -> bool:
        """Whether all that there was to send has its results, so that a break takes nothing along."""
        return self._exhausted and not self._open and self._accepted

    async def _requests(self, connection: "StreamAttempt") -> AsyncIterator[Message]:
        yield self._config()
        # Refused calls are refused here: gRPC forgets a call's status when it ends while a message is being written.
        await connection.accepted.wait()
        # A broken stream's iterator may be driven on for a moment: what it takes then is lost to its successor.
        while connection.is_on():
            self._to_send.clear()
            unsent, self._unsent = self._unsent, deque()
            for chunk in list(cut([(index, self._open[index].message) for index in unsent], _MESSAGE_LIMITS)):
                connection.sent += chunk.indices
                yield self._rows(chunk.messages)
                if not connection.is_on():
                    return
            if self._unsent:
                continue
            if self._exhausted:
                return
            await self._to_send.wait()

    def _take(self, connection: "StreamAttempt", reply: Any) -> None:
        connection.accepted.set()
        if self._read(reply, connection):
            self._active_at = time.monotonic()
        self._to_take.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._to_take.set()


@dataclass(slots=True)
class StreamAttempt:
    """One stream of the transport.

    Attributes:
        sent: Rows that were sent on it, in order.
        accepted: Set by the server's first message, which comes before any row is sent.
        over: It has ended; another one goes on.
    """

    sent: list[int] = field(default_factory=list)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def is_on(self) -> bool:
        """Whether it has not ended yet."""
        return not self.over


class Stream(RowStream[types_pb2.Item, ItemScores, MetricScore]):
    """A running call of `score_stream`.

    Args:
        transport: Carries it.
        choice: The metrics, or how to find out which they are.
        source: As `RowStream`.
        limits: As there.
        stall_s: As there.
    """

    def __init__(
        self,
        transport: Transport,
        choice: MetricChoice | Callable[[], Awaitable[MetricChoice]],
        source: AsyncIterable[ItemLike],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
    ) -> None:
        super().__init__(source, limits, stall_s, "item")
        self._transport = transport
        self._named = choice
        self._provenance: dict[str, Provenance] = {}

    async def _begin(self) -> None:
        self._choice = self._named if isinstance(self._named, MetricChoice) else await self._named()

    @property
    def _span_name(self) -> str:
        return CLIENT_STREAM

    @property
    def _accepted(self) -> bool:
        return bool(self._provenance)

    def _encode(self, index: int, row: Any, max_bytes: int) -> types_pb2.Item | ItemProblem:
        return encode_item(index, row, max_bytes=max_bytes, images=self._choice.shows_images)

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ItemScores:
        return failed_item(self._choice, index, identifier, failure)

    def _config(self) -> scoring_pb2.ScoreStreamRequest:
        choice = self._choice
        config = scoring_pb2.ScoreStreamConfig(metrics=choice.specs, reference_set=choice.reference_set)
        return scoring_pb2.ScoreStreamRequest(config=config)

    def _rows(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreStreamRequest:
        return scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=messages))

    def _start(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest]
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        return self._transport.stream(SCORE_STREAM, requests)

    def _read(self, reply: scoring_pb2.ScoreStreamResponse, connection: StreamAttempt) -> bool:
        if reply.provenance:
            self._provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        for item in reply.items:
            index, waiting = self.waiting_for(connection, item.index)
            waiting.parts |= decode_results(self._choice, self._provenance, index, item.results)
            if item.complete:
                self.answered(index, complete_item(self._choice, index, waiting.message.id, waiting.parts))
        return bool(reply.items)
