"""One call of `score_stream`: reads ahead a little, and goes on with the unfinished items when a stream breaks."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field

from gradewire._calls.chunks import UNASKED_BYTES, UNASKED_ITEMS, ChunkLimits, chunk_limits, cut
from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._transport.retries import Retries
from gradewire.errors import DeadlineExceeded, ServerFault, TransportError
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.results import ItemScores, MetricScore, Provenance, Status
from gradewire.transport import Transport
from gradewire_proto.v1 import scoring_pb2, types_pb2

# Items between the caller's source and the caller's hands. What a slow server has in work at a time must fit into the
# deadline that it gives each item.
READ_AHEAD_ITEMS = 256
_MESSAGE_LIMITS = ChunkLimits(max_items=UNASKED_ITEMS, max_bytes=UNASKED_BYTES)


@dataclass(slots=True)
class _Open:
    """An item that was read and is not answered; kept so that it can be sent again when the stream breaks."""

    message: types_pb2.Item
    scores: dict[str, MetricScore] = field(default_factory=dict)


class Stream:
    """A running call of `score_stream`.

    Args:
        transport: Carries it.
        choice: The metrics.
        source: The caller's items.
        limits: Asks the server what a message may hold; called only for an item that not every server takes.
        stall_s: Longest wait for a result while items are in work, seconds.
    """

    def __init__(
        self,
        transport: Transport,
        choice: MetricChoice,
        source: AsyncIterable[ItemLike],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
    ) -> None:
        self._transport = transport
        self._choice = choice
        self._stall_s = stall_s
        self._source = source
        self._limits = limits
        self._open: dict[int, _Open] = {}
        self._unsent: deque[int] = deque()
        self._done: list[ItemScores] = []
        self._error: BaseException | None = None
        self._provenance: dict[str, Provenance] = {}
        self._room = asyncio.Semaphore(READ_AHEAD_ITEMS)
        self._exhausted = False
        self._finished = False
        self._to_send = asyncio.Event()
        self._to_take = asyncio.Event()
        self._active_at = 0.0
        # A server that ends a stream by its own clock has not lost what was sent on it.
        self._retries = Retries(self._left_s, resumed_after=(DeadlineExceeded,))

    async def run(
        self, told_when_closed: Callable[[], AbstractContextManager[None]]
    ) -> AsyncGenerator[list[ItemScores]]:
        """Yields what is done, some at a time and not in order.

        Args:
            told_when_closed: A context that says so where what goes wrong comes of the client's end.
        """
        self._active_at = time.monotonic()
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._converse())]
        try:
            while True:
                with told_when_closed():
                    await self._wait()
                    if self._error is not None and not self._done:
                        raise self._error
                done, self._done = self._done, []
                if done:
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
                    f"no result came for deadline_s={self._stall_s:g} while {len(self._open)} items were in work: "
                    "look at the server, or give a larger deadline_s"
                )
                raise self._retries.with_attempts(late)
            try:
                async with asyncio.timeout(left_s if self._open else None):
                    await self._to_take.wait()
            except TimeoutError:
                continue

    def _left_s(self) -> float:
        """Seconds in which a result has to come; while the caller's source gives no item, none is owed."""
        if not self._open and self._provenance:
            return self._stall_s
        return self._active_at + self._stall_s - time.monotonic()

    async def _read(self) -> None:
        index = 0
        images = self._choice.shows_images
        try:
            async for item in self._source:
                await self._room.acquire()
                message = encode_item(index, item, max_bytes=UNASKED_BYTES, images=images)
                if isinstance(message, ItemProblem) and message.too_large:
                    limits = chunk_limits(await self._limits(), overhead_bytes=0)
                    message = encode_item(index, item, max_bytes=limits.max_item_bytes, images=images)
                if isinstance(message, ItemProblem):
                    failure = (Status.INVALID_INPUT, message.message)
                    self._done.append(failed_item(self._choice, index, message.id, failure))
                else:
                    if not self._open:
                        self._active_at = time.monotonic()
                    self._open[index] = _Open(message)
                    self._unsent.append(index)
                    self._to_send.set()
                self._to_take.set()
                index += 1
        except Exception as error:  # noqa: BLE001 - the caller's source failed; it is raised where the caller waits
            self._fail(error)
        self._exhausted = True
        self._to_send.set()

    async def _converse(self) -> None:
        try:
            while True:
                connection = _Connection()
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

    async def _exchange(self, connection: "_Connection") -> None:
        async with aclosing(self._transport.score_stream(self._requests(connection))) as replies:
            async for reply in replies:
                self._take(connection, reply)
        if self._open:
            raise ServerFault(f"the stream ended with {len(self._open)} items unanswered: report it")
        self._finish()

    def _finish(self) -> None:
        self._finished = True
        self._to_take.set()

    def _is_answered(self) -> bool:
        """Whether all that there was to send has its results, so that a break takes nothing along."""
        return self._exhausted and not self._open and bool(self._provenance)

    async def _requests(self, connection: "_Connection") -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
        choice = self._choice
        yield scoring_pb2.ScoreStreamRequest(
            config=scoring_pb2.ScoreStreamConfig(metrics=choice.specs, reference_set=choice.reference_set)
        )
        # Refused calls are refused here: gRPC forgets a call's status when it ends while a message is being written.
        await connection.accepted.wait()
        # A broken stream's iterator may be driven on for a moment: what it takes then is lost to its successor.
        while connection.is_on():
            self._to_send.clear()
            unsent, self._unsent = self._unsent, deque()
            for chunk in list(cut([(index, self._open[index].message) for index in unsent], _MESSAGE_LIMITS)):
                connection.sent += chunk.indices
                yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=chunk.messages))
                if not connection.is_on():
                    return
            if self._unsent:
                continue
            if self._exhausted:
                return
            await self._to_send.wait()

    def _take(self, connection: "_Connection", reply: scoring_pb2.ScoreStreamResponse) -> None:
        connection.accepted.set()
        if reply.provenance:
            self._provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        for item in reply.items:
            index = connection.sent[item.index] if item.index < len(connection.sent) else -1
            if (waiting := self._open.get(index)) is None:
                raise ServerFault(f"the server answered item {item.index} of the stream out of turn: report it")
            waiting.scores |= decode_results(self._choice, self._provenance, index, item.results)
            if item.complete:
                del self._open[index]
                self._done.append(complete_item(self._choice, index, waiting.message.id, waiting.scores))
                self._retries.progressed()
        if reply.items:
            self._active_at = time.monotonic()
        self._to_take.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._to_take.set()


@dataclass(slots=True)
class _Connection:
    """One stream of the transport.

    Attributes:
        sent: Items that were sent on it, in order.
        accepted: Set by the server's first message, which comes before any item is sent.
        over: It has ended; another one goes on.
    """

    sent: list[int] = field(default_factory=list)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def is_on(self) -> bool:
        """Whether it has not ended yet."""
        return not self.over
