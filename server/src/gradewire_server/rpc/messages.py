"""Receive, parse and send the messages of calls, with limits for size, memory and waiting time."""

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
"""Bytes of headers and frames around a message."""
_MAX_PEERS: Final = 16_384
_SMALL_BYTES: Final = 64 * 1024
"""Maximum size of messages that are accepted even while memory is short."""
IDLE_STREAM_S: Final = 600.0
"""Seconds after which the server ends an idle stream: the caller sends nothing, and no item is in progress."""
_RETRY_AFTER_S: Final = 1.0
_CLOCK_S: Final = 0.001
"""Seconds by which the event loop may fire a timer early."""

_STREAM_SHARE: Final = 8
"""One stream may use this fraction (1/8) of the memory for all streams."""

_RESULTS_AT_ONCE: Final = 4096
"""Number of results serialised at a time, in a few milliseconds."""

_SMALL_MESSAGE_BYTES: Final = 2048
"""Maximum size of a small message. It has at most 1 024 fields, and needs at most 0.1 MB when parsed."""

GrpcContext: TypeAlias = aio.ServicerContext[bytes, bytes]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class _Expected:
    """A message that a task waits for.

    Attributes:
        due_s: The time when `within_s` is over, by the loop's clock.
        in_work: A function that is called at `due_s`. If it returns True, the wait is extended.
        ended: True after the wait was ended.
        shed: True if the wait was ended because memory is short.
    """

    task: "asyncio.Task[object]"
    peer: str
    within_s: float
    due_s: float
    in_work: Callable[[], bool]
    ended: bool = False
    shed: bool = False

    def end(self) -> None:
        """End the task's wait."""
        self.ended = True
        self.task.cancel()


class Receiver:
    """A receiver for all calls' messages, on one event loop.

    Attributes:
        memory_is_short: True to refuse large messages.
        delivered: The number of delivered bytes per connection, by the peer's address.
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
        """Return a call's next message, or None at the end.

        After each `within_s`, the wait is extended if `in_work` returns True. `read` is gRPC's `context.read`. gRPC's
        iterator is not used because it keeps the last message until the next one arrives, and closing it needs a task.

        Raises:
            TimeoutError: The message did not arrive in time.
            OverloadedError: Memory is short.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("receive messages only in a task")
        loop = task.get_loop()
        expected = _Expected(task, peer, within_s, loop.time() + within_s, in_work)
        cancelling = task.cancelling()
        self._expected.add(expected)
        if expected.due_s < self._look_at_s:
            self._look_then(loop, expected.due_s)
        try:
            data = await read()
        except asyncio.CancelledError:
            # This works like `asyncio.timeout` without a timer per message, since nearly all messages arrive at once.
            if not expected.ended or task.uncancel() > cancelling:
                raise
            if expected.shed:
                raise _memory_is_short() from None
            raise TimeoutError from None
        finally:
            self._expected.discard(expected)
            del expected, task  # breaks the reference cycle between an error, its traceback's frame, and the task
        if not isinstance(data, bytes):  # gRPC returns a special object at the end
            return None
        self._take(peer, len(data))
        return data

    def _take(self, peer: str, size_bytes: int) -> None:
        if len(self.delivered) >= _MAX_PEERS and peer not in self.delivered:
            # The oldest connection is most likely closed. If it is not, its earlier bytes will count as undelivered.
            self.delivered.pop(next(iter(self.delivered)))
        self.delivered[peer] = self.delivered.pop(peer, 0) + size_bytes + _CALL_OVERHEAD_BYTES
        if self.memory_is_short and size_bytes > _SMALL_BYTES:
            raise _memory_is_short()

    def waiting(self) -> set[str]:
        """Return the connections with a call that waits for a message. Any thread may call it."""
        return {each.peer for each in list(self._expected)}

    def shed(self, peer: str) -> int:
        """End the calls on a connection that wait for a message; return their number."""
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
        """End overdue waits, and schedule the next check for the wait that ends first."""
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
        "messages in transit use up the server's memory; retry later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )


class StreamMemory:
    """The memory that one stream uses, within its own limit and the limit for all streams, on one event loop."""

    def __init__(self, shared: Permits, limit_bytes: int) -> None:
        self._shared = shared
        self._own = Permits(max(1, limit_bytes // _STREAM_SHARE), "bytes in a stream")
        self._held: deque[tuple[int, int]] = deque()
        self._items = 0
        self._done = 0

    def in_work(self) -> bool:
        """Return True if a message has missing or unread results."""
        return bool(self._held)

    async def take(self, size_bytes: int, items: int) -> None:
        """Wait until the limits allow a message with this size in memory, then count it.

        The message counts until its `items` are done. Without items it does not count.
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
        """Record items whose last result the caller has read."""
        self._done += items
        while self._held and self._held[0][0] <= self._done:
            self._release(self._held.popleft()[1])

    def close(self) -> None:
        """Release the stream's memory."""
        while self._held:
            self._release(self._held.popleft()[1])

    def _release(self, size_bytes: int) -> None:
        self._own.release(size_bytes)
        self._shared.release(size_bytes)


async def serialize_score(reply: scoring_pb2.ScoreResponse, max_bytes: int) -> bytes:
    """Serialise a reply. If it exceeds `max_bytes`, return only the first part, which is longer than `max_bytes`."""
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
    """One call's messages, with the server's limits, deadlines and permits."""

    method: Method[RequestT]
    call: RpcCall
    receiver: Receiver
    served: RequestContext
    context: GrpcContext

    async def answer(self, respond: Callable[[RequestT], Awaitable[ResultT]]) -> ResultT:
        """Receive the call's only request, and respond to it while its memory is reserved.

        Raises:
            DeadlineExceededError: The request did not arrive in time.
            InvalidRequestError: The request is missing, is too large, or cannot be parsed.
            OverloadedError: Memory is short.
            QuotaExceededError: The tenant's quota is used up.
        """
        served, stall_s, bytes_of_all = self.served, self.served.deadlines.stall_s, self.served.admission.bytes
        try:
            data = await self.receiver.receive(self.context.read, self.call.record.peer, within_s=stall_s)
        except TimeoutError:
            raise DeadlineExceededError(f"the request did not arrive within {stall_s:g} s") from None
        if data is None:
            raise InvalidRequestError("message", "is missing: the call ended without a request")
        charge(self.call.caller, len(data))
        request, size_bytes = await self._measured(data)
        # Leave a quarter of the memory for other requests, however large this request is.
        with bytes_of_all.hold(min(size_bytes, bytes_of_all.limit * 3 // 4)):
            if request is None:
                request = await self._parse(data)
            del data
            self.call.see(self.method, request, served)
            return await respond(request)

    async def requests(self, held: StreamMemory) -> AsyncGenerator[RequestT]:
        """Yield a stream's requests. Each request reserves memory until the caller has read the request's last result.

        Raises:
            DeadlineExceededError: For `IDLE_STREAM_S`, no request arrived and no item was in progress.
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
        """Return the bytes of a reply; raise InvalidRequestError if it exceeds `max_message_bytes`."""
        max_bytes = self.served.limits.max_message_bytes
        if isinstance(reply, scoring_pb2.ScoreResponse):
            data = await serialize_score(reply, max_bytes)
        else:
            data = reply.SerializeToString()
        if len(data) > max_bytes:
            raise InvalidRequestError(
                "items",
                f"the reply would have {len(data)} bytes or more, at most {max_bytes} are allowed; send fewer items",
            )
        self.call.saw_reply(len(data))
        return data

    async def send(self, replies: AsyncGenerator[Message], held: StreamMemory | None = None) -> None:
        """Send replies as they arrive; raise DeadlineExceededError if the caller does not read for `stall_s`."""
        # Send the headers first. gRPC cannot send a status to a call that stalls while it sends headers and a reply.
        try:
            await self.context.send_initial_metadata(((ACCEPTED_KEY, "1"),))
        except aio.InternalError as error:  # the caller has gone, and gRPC has not reported it yet
            raise asyncio.CancelledError from error
        stall_s = self.served.deadlines.stall_s
        async with aclosing(replies):
            async for reply in replies:
                data = await self.write(reply)
                try:
                    async with asyncio.timeout(stall_s):
                        await self.context.write(data)
                except TimeoutError:
                    raise DeadlineExceededError(f"the caller read no reply for {stall_s:g} s") from None
                if held is not None:
                    held.done(_done_rows(reply))

    @property
    def descriptor(self) -> Any:
        """The protobuf descriptor of the call's requests."""
        return self.method.request_type.DESCRIPTOR

    async def _next(self, held: StreamMemory) -> bytes | None:
        """Return a stream's next message, or None at the end."""
        try:
            return await self.receiver.receive(
                self.context.read, self.call.record.peer, within_s=IDLE_STREAM_S, in_work=held.in_work
            )
        except TimeoutError:
            raise DeadlineExceededError(
                f"the stream was idle for {IDLE_STREAM_S:g} s; open a new one for more items"
            ) from None

    async def _measured(self, data: bytes) -> tuple[RequestT | None, int]:
        """Return the parsed request (None unless its message is small) and the request's estimated memory."""
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
        return InvalidRequestError("message", f"is not a {self.descriptor.full_name}, or a string is not UTF-8")


def _done_rows(reply: Message) -> int:
    """Return the number of items or pairs that a stream's reply completes."""
    if isinstance(reply, judging_pb2.CompareStreamResponse):
        return len(reply.pairs)
    return sum(item.complete for item in reply.items) if isinstance(reply, scoring_pb2.ScoreStreamResponse) else 0
