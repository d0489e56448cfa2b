"""Messages of a call between bytes and protobuf, each bounded in size and in the time that it may wait."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final, NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from grpc import aio
from typing_extensions import override

from gradewire_proto.v1 import judging_pb2, scoring_pb2
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.rpc.access.scopes import charge_stream
from gradewire_server.rpc.call import Method, RequestT, RpcCall
from gradewire_server.rpc.receiving.message_memory import memory_bytes, small_memory_bytes
from gradewire_server.rpc.receiving.parsing import parse
from gradewire_server.rpc.receiving.receiver import Receiver
from gradewire_server.rpc.receiving.stream_memory import StreamMemory
from gradewire_server.rpc.receiving.wire_counts import Counts, MalformedError, count_fields, counts_in
from gradewire_server.rpc.serializing import serialize_score
from gradewire_server.settings.limits import Limits

_SMALL_BYTES: Final = 2048
"""At most 1 024 fields, each of two bytes or more: about 0.1 MB parsed, whatever they are."""

GrpcContext: TypeAlias = aio.ServicerContext[bytes, bytes]


class Incoming(NamedTuple):
    """What comes in on a stream.

    Attributes:
        messages: As gRPC hands them over.
        receiver: Receives them.
        held: What they hold of memory.
    """

    messages: AsyncIterator[bytes]
    receiver: Receiver
    held: StreamMemory


class Read(AsyncIterator[bytes]):
    """Messages of a call, read by hand.

    gRPC's own iterator is a generator: it keeps the last message until the next one comes, and where it was not read to
    its end, to close it costs a task and a wake-up of the event loop.
    """

    __slots__ = ("_context",)

    def __init__(self, context: GrpcContext) -> None:
        self._context = context

    @override
    async def __anext__(self) -> bytes:
        data: object = await self._context.read()
        if not isinstance(data, bytes):  # the end, which gRPC gives as an object of its own
            raise StopAsyncIteration
        return data


async def receive_only(receiver: Receiver, context: GrpcContext, call: RpcCall, within_s: float) -> bytes:
    """The one message of a call.

    Raises:
        DeadlineExceededError: It was not there in time.
        InvalidRequestError: There is none.
        OverloadedError: Memory is short.
    """
    try:
        data = await receiver.receive(Read(context), call.record.peer, within_s=within_s)
    except TimeoutError:
        raise DeadlineExceededError(f"the request did not come within {within_s:g} s (stall_s)") from None
    if data is None:
        raise InvalidRequestError("message", "is missing: the call ended without one")
    return data


async def look_at(method: Method[RequestT], data: bytes, limits: Limits, call: RpcCall) -> tuple[RequestT | None, int]:
    """What a message counts for in memory, before it is parsed; a small one cannot hold much, and is parsed at once.

    Returns:
        The request if it is parsed already, and bytes of memory.

    Raises:
        InvalidRequestError: It holds too much, or cannot be parsed.
    """
    if len(data) > _SMALL_BYTES:
        return None, await measure(method, data, count_message(method, data, limits, call))
    call.saw_request(len(data))
    request = await read_message(method, data)
    return request, small_memory_bytes(len(data), counts_in(request))


def count_message(method: Method[RequestT], data: bytes, limits: Limits, call: RpcCall, path: str = "") -> Counts:
    """What a message holds; raises InvalidRequestError where that is too much, or it cannot be parsed."""
    call.saw_request(len(data))
    try:
        return count_fields(data, _descriptor(method), limits, path)
    except MalformedError:
        raise _unreadable(method) from None


async def measure(method: Method[RequestT], data: bytes, counts: Counts) -> int:
    """Bytes of memory that a message counts for; raises InvalidRequestError where it has too many texts."""
    try:
        return await memory_bytes(data, counts, _descriptor(method))
    except MalformedError:
        raise _unreadable(method) from None


async def read_message(method: Method[RequestT], data: bytes) -> RequestT:
    """A request; raises InvalidRequestError where it cannot be parsed."""
    try:
        return await parse(method.request_type, data)
    except DecodeError:
        raise _unreadable(method) from None


async def read_messages(
    context: RequestContext, method: Method[RequestT], incoming: Incoming, call: RpcCall
) -> AsyncGenerator[RequestT]:
    """Messages of a stream; each holds memory from before it is parsed until its last result is taken.

    Raises:
        DeadlineExceededError: The stream is idle: nothing came of it and nothing of it was in work for `idle_stream_s`.
        InvalidRequestError: A message holds too much, or cannot be parsed.
        OverloadedError: Memory is short, or too much waits for other streams to be done.
    """
    metrics = index = 0
    while (data := await _receive_next(incoming, call, context.deadlines.idle_stream_s)) is not None:
        await charge_stream(call.caller, len(data), context.admission.slowed)
        with context.admission.waiting_bytes.hold(len(data)):
            counts = count_message(method, data, context.limits, call, f"requests[{index}]." if index else "")
            metrics = counts.metrics = counts.metrics or metrics
            await incoming.held.take(await measure(method, data, counts), counts.items)
        request = await read_message(method, data)
        del data
        yield request
        del request  # which may be large, and the next one may be long in coming
        index += 1


async def write_message(reply: Message, max_bytes: int, call: RpcCall) -> bytes:
    """A reply; raises InvalidRequestError where it is larger than `max_bytes`."""
    if isinstance(reply, scoring_pb2.ScoreResponse):
        data = await serialize_score(reply, max_bytes)
    else:
        data = reply.SerializeToString()
    if len(data) > max_bytes:
        raise InvalidRequestError(
            "items",
            f"the reply would be {len(data)} bytes or more, at most {max_bytes} are allowed; send fewer at a time",
        )
    call.saw_reply(len(data))
    return data


async def send_replies(
    context: RequestContext,
    replies: AsyncGenerator[Message],
    call: RpcCall,
    grpc_context: GrpcContext,
    held: StreamMemory | None = None,
) -> None:
    """Sends replies as they come; raises DeadlineExceededError where one is not read within `stall_s`."""
    # On their own: gRPC can send no status to a call that stalls while its headers leave with its first reply.
    await grpc_context.send_initial_metadata(())
    stall_s = context.deadlines.stall_s
    async with aclosing(replies):
        async for reply in replies:
            data = await write_message(reply, context.limits.max_message_bytes, call)
            try:
                async with asyncio.timeout(stall_s):
                    await grpc_context.write(data)
            except TimeoutError:
                raise DeadlineExceededError(f"none of the replies was read for {stall_s:g} s (stall_s)") from None
            if held is not None:
                held.done(_done_rows(reply))


def _done_rows(reply: Message) -> int:
    """Items or pairs whose last result a reply of a stream has."""
    if isinstance(reply, judging_pb2.CompareStreamResponse):
        return len(reply.pairs)
    return sum(item.complete for item in reply.items) if isinstance(reply, scoring_pb2.ScoreStreamResponse) else 0


async def _receive_next(incoming: Incoming, call: RpcCall, idle_s: float) -> bytes | None:
    """The next message of a stream; None at its end."""
    try:
        return await incoming.receiver.receive(
            incoming.messages, call.record.peer, within_s=idle_s, in_work=incoming.held.in_work
        )
    except TimeoutError:
        raise DeadlineExceededError(
            f"nothing came on the stream for {idle_s:g} s (idle_stream_s); open another when there is more to score"
        ) from None


def _descriptor(method: Method[RequestT]) -> Descriptor:
    descriptor: Descriptor = method.request_type.DESCRIPTOR  # type: ignore[assignment] # the same class, by two names
    return descriptor


def _unreadable(method: Method[RequestT]) -> InvalidRequestError:
    name = method.request_type.DESCRIPTOR.full_name
    return InvalidRequestError("message", f"is no {name}, or a text in it is not UTF-8")
