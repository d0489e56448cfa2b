"""Receive, parse and send messages, with limits on size, memory and waiting time."""

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
_MAX_PEERS: Final = 16_384
_SMALL_BYTES: Final = 64 * 1024
"""The maximum size of a message that is accepted even if memory is short."""
IDLE_STREAM_S: Final = 600.0
"""The server ends a stream after this many seconds without messages or work in progress."""
_RETRY_AFTER_S: Final = 1.0
_CLOCK_S: Final = 0.001
"""The event loop may run a timer this many seconds early."""

_STREAM_SHARE: Final = 8
"""A stream's memory limit is the limit for all streams divided by this number."""

_RESULTS_AT_ONCE: Final = 4096
"""The number of results to serialise before other tasks get a turn."""

_SMALL_MESSAGE_BYTES: Final = 2048
"""The maximum size of a message that is parsed before its memory is reserved."""

GrpcContext: TypeAlias = aio.ServicerContext[bytes, bytes]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class _Expected:
    """A message that a task waits for.

    Attributes:
        due_s: The time at which the wait ends, on the event loop's clock.
        in_work: A function that is called at `due_s`. If it returns True, the wait is extended by `within_s`.
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
        self.ended = True
        self.task.cancel()


class Receiver:
    """A receiver for the messages of all calls on one event loop.

    Attributes:
        memory_is_short: True to refuse large messages.
        delivered: The number of bytes delivered from each peer address.
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

        `read` is gRPC's `context.read`. After `within_s`, `in_work` is called. If `in_work` returns True, the
        wait is extended.

        Raises:
            TimeoutError: The message did not arrive in time.
            OverloadedError: Memory is short.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("receive must be called in a task")
        loop = task.get_loop()
        expected = _Expected(task, peer, within_s, loop.time() + within_s, in_work)
        cancelling = task.cancelling()
        self._expected.add(expected)
        if expected.due_s < self._look_at_s:
            self._look_then(loop, expected.due_s)
        try:
            data = await read()
        except asyncio.CancelledError:
            if not expected.ended or task.uncancel() > cancelling:
                raise
            if expected.shed:
                raise _memory_is_short() from None
            raise TimeoutError from None
        finally:
            self._expected.discard(expected)
            del expected, task  # break a reference cycle with the error's traceback
        if not isinstance(data, bytes):  # gRPC returns another object at the end
            return None
        self._take(peer, len(data))
        return data

    def _take(self, peer: str, size_bytes: int) -> None:
        if len(self.delivered) >= _MAX_PEERS and peer not in self.delivered:
            # Drop the oldest connection, which is probably closed.
            self.delivered.pop(next(iter(self.delivered)))
        self.delivered[peer] = self.delivered.pop(peer, 0) + size_bytes + _CALL_OVERHEAD_BYTES
        if self.memory_is_short and size_bytes > _SMALL_BYTES:
            raise _memory_is_short()

    def waiting(self) -> set[str]:
        """Return the peer addresses of all calls that wait for a message. Thread-safe."""
        return {each.peer for each in list(self._expected)}

    def shed(self, peer: str) -> int:
        """End all calls from `peer` that wait for a message, and return their number."""
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
        "messages in transit use up the server's memory; try again later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )


class StreamMemory:
    """The memory that a stream uses, with limits for this stream and for all streams together."""

    def __init__(self, shared: Permits, limit_bytes: int) -> None:
        self._shared = shared
        self._own = Permits(max(1, limit_bytes // _STREAM_SHARE), "bytes in a stream")
        self._held: deque[tuple[int, int]] = deque()
        self._items = 0
        self._done = 0

    def in_work(self) -> bool:
        """Return True if a message has results that are missing or unread."""
        return bool(self._held)

    async def take(self, size_bytes: int, items: int) -> None:
        """Wait until a message fits within the limits, then count the message until its `items` are done."""
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
        """Record that the caller has read all results for this many more items."""
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
    """Serialise a reply. If the reply exceeds `max_bytes`, return only a part, which also exceeds `max_bytes`."""
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
        """Receive the call's only request, and return the response.

        Raises:
            DeadlineExceededError: The request did not arrive in time.
            InvalidRequestError: The request is missing, too large or impossible to parse.
            OverloadedError: Memory is short.
            QuotaExceededError: The tenant's quota is used up.
        """
        served, stall_s, bytes_of_all = self.served, self.served.deadlines.stall_s, self.served.admission.bytes
        try:
            data = await self.receiver.receive(self.context.read, self.call.record.peer, within_s=stall_s)
        except TimeoutError:
            raise DeadlineExceededError(f"the request did not arrive within {stall_s:g} s") from None
        if data is None:
            raise InvalidRequestError("message", "is missing; the call ended without a request")
        charge(self.call.caller, len(data))
        request, size_bytes = await self._measured(data)
        # Leave a quarter of the memory for other requests.
        with bytes_of_all.hold(min(size_bytes, bytes_of_all.limit * 3 // 4)):
            if request is None:
                request = await self._parse(data)
            del data
            self.call.see(self.method, request, served)
            return await respond(request)

    async def requests(self, held: StreamMemory) -> AsyncGenerator[RequestT]:
        """Yield a stream's requests, whose memory counts in `held` until the caller has read all results.

        Raises:
            DeadlineExceededError: The stream was idle for `IDLE_STREAM_S`.
            InvalidRequestError: A message is too large or cannot be parsed.
            OverloadedError: Memory is short, or too many messages are waiting.
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
            del request  # free the memory before the next request arrives
            index += 1

    async def write(self, reply: Message) -> bytes:
        """Serialise a reply, or raise InvalidRequestError if the reply has more than `max_message_bytes`."""
        max_bytes = self.served.limits.max_message_bytes
        if isinstance(reply, scoring_pb2.ScoreResponse):
            data = await serialize_score(reply, max_bytes)
        else:
            data = reply.SerializeToString()
        if len(data) > max_bytes:
            raise InvalidRequestError(
                "items",
                f"the reply would have at least {len(data)} bytes, but at most {max_bytes} are allowed; "
                "send fewer items",
            )
        self.call.saw_reply(len(data))
        return data

    async def send(self, replies: AsyncGenerator[Message], held: StreamMemory | None = None) -> None:
        """Send each reply immediately, or raise DeadlineExceededError if the caller does not read for `stall_s`."""
        # Send the headers separately. If gRPC stalls while it sends headers and a reply, it cannot send a status later.
        try:
            await self.context.send_initial_metadata(((ACCEPTED_KEY, "1"),))
        except aio.InternalError as error:  # the caller is gone
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
        """The request type's protobuf descriptor."""
        return self.method.request_type.DESCRIPTOR

    async def _next(self, held: StreamMemory) -> bytes | None:
        try:
            return await self.receiver.receive(
                self.context.read, self.call.record.peer, within_s=IDLE_STREAM_S, in_work=held.in_work
            )
        except TimeoutError:
            raise DeadlineExceededError(
                f"the stream was idle for {IDLE_STREAM_S:g} s; open a new stream to send more items"
            ) from None

    async def _measured(self, data: bytes) -> tuple[RequestT | None, int]:
        """Return the request (None if it is large and not parsed yet) and its estimated memory."""
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
        return InvalidRequestError("message", f"must be a {self.descriptor.full_name} with UTF-8 strings")


def _done_rows(reply: Message) -> int:
    if isinstance(reply, judging_pb2.CompareStreamResponse):
        return len(reply.pairs)
    return sum(item.complete for item in reply.items) if isinstance(reply, scoring_pb2.ScoreStreamResponse) else 0
