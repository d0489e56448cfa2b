"""The messages of calls between bytes and protobuf, with limits for size, memory and waiting time."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message
from grpc import aio

from gradewire_proto.v1 import judging_pb2, scoring_pb2
from gradewire_proto.wire_rules import ACCEPTED_KEY
from gradewire_server.loop_turns import give_way
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError, OverloadedError
from gradewire_server.requests.turns import Permits
from gradewire_server.rpc.message_size import Counts, MalformedError, count_fields, memory_bytes, parse
from gradewire_server.rpc.method import Method, RequestT, RpcCall
from gradewire_server.tenants.quota import charge, charge_stream

_CALL_OVERHEAD_BYTES: Final = 128
"""Headers and frames around a message."""
_MAX_PEERS: Final = 16_384
_SMALL_BYTES: Final = 64 * 1024
"""The size up to which messages are accepted even while memory is short."""
IDLE_STREAM_S: Final = 600.0
"""Seconds after which an idle stream ends: one that sends nothing and has nothing in progress."""
_RETRY_AFTER_S: Final = 1.0
_CLOCK_S: Final = 0.001
"""Seconds by which the loop may call a timer early."""

_STREAM_SHARE: Final = 8
"""The divisor for one stream's share of the memory of all streams."""

_RESULTS_AT_ONCE: Final = 4096
"""Results that are serialised at a time, in a few milliseconds."""

_SMALL_MESSAGE_BYTES: Final = 2048
"""The size of a small message: with at most 1 024 fields, it takes at most 0.1 MB parsed."""

GrpcContext: TypeAlias = aio.ServicerContext[bytes, bytes]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class _Expected:
    """A message for which a task waits.

    Attributes:
        due_s: The end of `within_s`, by the loop's clock.
        in_work: Called at that time; True extends the wait.
        ended: True after the wait was ended.
        shed: True if it was ended because memory is short.
    """

    task: "asyncio.Task[object]"
    peer: str
    within_s: float
    due_s: float
    in_work: Callable[[], bool]
    ended: bool = False
    shed: bool = False

    def end(self) -> None:
        """End the wait of the task."""
        self.ended = True
        self.task.cancel()


class Receiver:
    """The receiver of all calls' messages, on one event loop.

    Attributes:
        memory_is_short: True to refuse large messages.
        delivered: The delivered bytes of each connection, by the peer's address.
    """

    def __init__(self) -> None:
        self.memory_is_short = False
        self.delivered: dict[str, int] = {}
        self._expected: set[_Expected] = set()
        self._look_at_s = math.inf
        self._looking: asyncio.TimerHandle | None = None

    async def receive(
        self,
        read: Callable[[], Awaitable[object]],
        peer: str,
        *,
        within_s: float,
        in_work: Callable[[], bool] = lambda: False,
    ) -> bytes | None:
        """Return the next message of a call; None at the end.

        When `within_s` is over, the wait is repeated as long as `in_work` returns True. `read` is the method of gRPC's
        context: its iterator would keep the last message until the next one, and closing it early would cost a task.

        Raises:
            TimeoutError: The message did not arrive in time.
            OverloadedError: Memory is short.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("messages are received in tasks")
        loop = task.get_loop()
        expected = _Expected(task, peer, within_s, loop.time() + within_s, in_work)
        cancelling = task.cancelling()
        self._expected.add(expected)
        if expected.due_s < self._look_at_s:
            self._look_then(loop, expected.due_s)
        try:
            data = await read()
        except asyncio.CancelledError:
            # This works like `asyncio.timeout`, but without a timer for each message, since nearly all arrive at once.
            if not expected.ended or task.uncancel() > cancelling:
                raise
            if expected.shed:
                raise _memory_is_short() from None
            raise TimeoutError from None
        finally:
            self._expected.discard(expected)
            del expected, task  # breaks the cycle of an error's traceback, its frame, and the task with the error
        if not isinstance(data, bytes):  # the end, for which gRPC returns a special object
            return None
        self._take(peer, len(data))
        return data

    def _take(self, peer: str, size_bytes: int) -> None:
        if len(self.delivered) >= _MAX_PEERS and peer not in self.delivered:
            # Most likely, this connection is gone; if not, it will count as having sent more than it did.
            self.delivered.pop(next(iter(self.delivered)))
        self.delivered[peer] = self.delivered.pop(peer, 0) + size_bytes + _CALL_OVERHEAD_BYTES
        if self.memory_is_short and size_bytes > _SMALL_BYTES:
            raise _memory_is_short()

    def waiting(self) -> set[str]:
        """Return the connections with a call that waits for a message; for any thread."""
        return {each.peer for each in list(self._expected)}

    def shed(self, peer: str) -> int:
        """End the calls of a connection that wait for a message; return their number."""
        found = [each for each in self._expected if each.peer == peer and not each.ended]
        for each in found:
            each.shed = True
            each.end()
        return len(found)

    def _look_then(self, loop: asyncio.AbstractEventLoop, at_s: float) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._look_at_s = at_s
        self._looking = loop.call_at(at_s, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the waits that are overdue; one check serves all waits that start before the next one."""
        self._looking, self._look_at_s = None, math.inf
        now_s = loop.time() + _CLOCK_S
        for each in self._expected:
            if each.ended or each.due_s > now_s:
                continue
            if each.in_work():
                each.due_s = now_s + each.within_s
            else:
                each.end()
        waiting = [each.due_s for each in self._expected if not each.ended]
        if waiting:
            self._look_then(loop, min(waiting))


def _memory_is_short() -> OverloadedError:
    return OverloadedError(
        "the server's memory is taken by messages that are on their way; come back later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )


class StreamMemory:
    """The memory of one stream within that of all streams, on one event loop."""

    def __init__(self, shared: Permits, limit_bytes: int) -> None:
        self._shared = shared
        self._own = Permits(max(1, limit_bytes // _STREAM_SHARE), "bytes of a stream")
        self._held: deque[tuple[int, int]] = deque()
        self._items = 0
        self._done = 0

    def in_work(self) -> bool:
        """Return True while results of a message are missing or unread."""
        return bool(self._held)

    async def take(self, size_bytes: int, items: int) -> None:
        """Wait until there is room for a message with this size in memory.

        The room is released when `items` more items are done; at once if there are none.
        """
        if not items:
            return
        await self._own.acquire(size_bytes)
        try:
            await self._shared.acquire(size_bytes)
        except BaseException:
            self._own.release(size_bytes)
            raise
        self._items += items
        self._held.append((self._items, size_bytes))

    def done(self, items: int) -> None:
        """Record items whose last result was read by the caller."""
        self._done += items
        while self._held and self._held[0][0] <= self._done:
            self._release(self._held.popleft()[1])

    def close(self) -> None:
        """Release all memory of the stream."""
        while self._held:
            self._release(self._held.popleft()[1])

    def _release(self, size_bytes: int) -> None:
        self._own.release(size_bytes)
        self._shared.release(size_bytes)


async def serialize_score(reply: scoring_pb2.ScoreResponse, max_bytes: int) -> bytes:
    """Return the bytes of a reply; of a reply above `max_bytes`, only the first ones, but more than `max_bytes`."""
    metrics = max(1, len(reply.provenance))
    if len(reply.items) * metrics <= _RESULTS_AT_ONCE:
        return reply.SerializeToString()
    written = bytearray()
    results = 0
    for item in reply.items:
        written += scoring_pb2.ScoreResponse(items=[item]).SerializeToString()
        results += metrics
        if len(written) > max_bytes:
            return bytes(written)
        if results > _RESULTS_AT_ONCE:
            results = 0
            await give_way()
    rest = scoring_pb2.ScoreResponse(provenance=reply.provenance, server_s=reply.server_s)
    return bytes(written) + rest.SerializeToString()


@dataclass(slots=True, eq=False)
class Messages(Generic[RequestT]):
    """The messages of one call, with the server's limits, deadlines and permits."""

    method: Method[RequestT]
    call: RpcCall
    receiver: Receiver
    served: RequestContext
    context: GrpcContext

    async def answer(self, respond: Callable[[RequestT], Awaitable[ResultT]]) -> ResultT:
        """Receive the call's only request, and respond to it while holding its memory.

        Raises:
            DeadlineExceededError: The request did not arrive in time.
            InvalidRequestError: The request is missing, too large, or cannot be parsed.
            OverloadedError: Memory is short.
            QuotaExceededError: The tenant's quota is used up.
        """
        served, stall_s, bytes_of_all = self.served, self.served.deadlines.stall_s, self.served.admission.bytes
        try:
            data = await self.receiver.receive(self.context.read, self.call.record.peer, within_s=stall_s)
        except TimeoutError:
            raise DeadlineExceededError(f"the request did not arrive within {stall_s:g} s") from None
        if data is None:
            raise InvalidRequestError("message", "is missing; the call ended without one")
        charge(self.call.caller, len(data))
        request, size_bytes = await self._measured(data)
        # Leave a quarter of the memory of requests to others, however large this one is.
        with bytes_of_all.hold(min(size_bytes, bytes_of_all.limit * 3 // 4)):
            if request is None:
                request = await self._parse(data)
            del data
            self.call.see(self.method, request, served)
            return await respond(request)

    async def requests(self, held: StreamMemory) -> AsyncGenerator[RequestT]:
        """Yield the requests of a stream; each holds its memory until its last result was read.

        Raises:
            DeadlineExceededError: The stream is idle: nothing arrived and nothing was in progress for
                `IDLE_STREAM_S`.
            InvalidRequestError: A message is too large or cannot be parsed.
            OverloadedError: Memory is short, or too many messages wait for other streams.
        """
        served = self.served
        metrics = index = 0
        while (data := await self._next(held)) is not None:
            await charge_stream(self.call.caller, len(data), served.admission.slowed)
            with served.admission.waiting_bytes.hold(len(data)):
                counts = self._count(data, f"requests[{index}]." if index else "")
                metrics = counts.metrics = counts.metrics or metrics
                await held.take(await self._memory_bytes(data, counts), counts.items)
            request = await self._parse(data)
            del data
            self.call.see(self.method, request, served)
            yield request
            del request  # a large one must not stay until the next one arrives
            index += 1

    async def write(self, reply: Message) -> bytes:
        """Return the bytes of a reply; raise InvalidRequestError above `max_message_bytes`."""
        max_bytes = self.served.limits.max_message_bytes
        if isinstance(reply, scoring_pb2.ScoreResponse):
            data = await serialize_score(reply, max_bytes)
        else:
            data = reply.SerializeToString()
        if len(data) > max_bytes:
            raise InvalidRequestError(
                "items",
                f"the reply would have {len(data)} bytes or more, at most {max_bytes} are allowed; send fewer",
            )
        self.call.saw_reply(len(data))
        return data

    async def send(self, replies: AsyncGenerator[Message], held: StreamMemory | None = None) -> None:
        """Send replies as they arrive; raise DeadlineExceededError if the caller does not read for `stall_s`."""
        # Send the headers first: gRPC cannot send a status to a call that stalls while headers and a reply leave.
        await self.context.send_initial_metadata(((ACCEPTED_KEY, "1"),))
        stall_s = self.served.deadlines.stall_s
        async with aclosing(replies):
            async for reply in replies:
                data = await self.write(reply)
                try:
                    async with asyncio.timeout(stall_s):
                        await self.context.write(data)
                except TimeoutError:
                    raise DeadlineExceededError(f"none of the replies was read for {stall_s:g} s") from None
                if held is not None:
                    held.done(_done_rows(reply))

    @property
    def descriptor(self) -> Any:
        """The protobuf descriptor of its requests."""
        return self.method.request_type.DESCRIPTOR

    async def _next(self, held: StreamMemory) -> bytes | None:
        """Return the next message of a stream; None at the end."""
        try:
            return await self.receiver.receive(
                self.context.read, self.call.record.peer, within_s=IDLE_STREAM_S, in_work=held.in_work
            )
        except TimeoutError:
            raise DeadlineExceededError(
                f"the stream was idle for {IDLE_STREAM_S:g} s; open a new one for more items"
            ) from None

    async def _measured(self, data: bytes) -> tuple[RequestT | None, int]:
        """Return the request if it is already parsed, and the memory that it counts for.

        A small message is parsed at once.
        """
        if len(data) > _SMALL_MESSAGE_BYTES:
            return None, await self._memory_bytes(data, self._count(data))
        self.call.saw_request(len(data))
        request = await self._parse(data)
        counts = Counts(self.method.row_count(request), len(self.method.specs(request)))
        return request, counts.memory_bytes(len(data), len(data) // 2)

    def _count(self, data: bytes, path: str = "") -> Counts:
        self.call.saw_request(len(data))
        try:
            return count_fields(data, self.descriptor, self.served.limits, path)
        except MalformedError:
            raise self._unreadable() from None

    async def _memory_bytes(self, data: bytes, counts: Counts) -> int:
        return await self._readable(memory_bytes(data, counts, self.descriptor))

    async def _parse(self, data: bytes) -> RequestT:
        return await self._readable(parse(self.method.request_type, data))

    async def _readable(self, reading: Awaitable[ResultT]) -> ResultT:
        try:
            return await reading
        except DecodeError:
            raise self._unreadable() from None

    def _unreadable(self) -> InvalidRequestError:
        return InvalidRequestError("message", f"is no {self.descriptor.full_name}, or a text in it is not UTF-8")


def _done_rows(reply: Message) -> int:
    """Return the number of items or pairs whose last result is in a stream's reply."""
    if isinstance(reply, judging_pb2.CompareStreamResponse):
        return len(reply.pairs)
    return sum(item.complete for item in reply.items) if isinstance(reply, scoring_pb2.ScoreStreamResponse) else 0
