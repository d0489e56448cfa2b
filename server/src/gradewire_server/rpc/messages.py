"""Messages of a call between bytes and protobuf, each bounded in size and in the time that it may wait."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeAlias

from google.protobuf.message import DecodeError, Message
from grpc import aio

from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.rpc.call import Method, RequestT, RpcCall

GrpcContext: TypeAlias = aio.ServicerContext[bytes, bytes]


def read_message(method: Method[RequestT], data: bytes, call: RpcCall) -> RequestT:
    """A request; raises InvalidRequestError where it cannot be parsed."""
    call.saw_request(len(data))
    try:
        return method.request_type.FromString(data)
    except DecodeError:
        name = method.request_type.DESCRIPTOR.full_name
        raise InvalidRequestError("message", f"is no {name}, or a text in it is not UTF-8") from None


async def read_messages(
    context: RequestContext, method: Method[RequestT], messages: AsyncIterator[bytes], call: RpcCall
) -> AsyncGenerator[RequestT]:
    """Messages of a stream; each holds permits for its bytes until it is parsed.

    From then on the window of the stream bounds its memory: were the bytes held while a message waits for room in it, a
    few streams whose results nobody reads would keep everybody else out.
    """
    async for data in messages:
        await context.admission.bytes.acquire(len(data))
        try:
            request = read_message(method, data, call)
        finally:
            context.admission.bytes.release(len(data))
        yield request


def write_message(reply: Message, max_bytes: int, call: RpcCall) -> bytes:
    """A reply; raises InvalidRequestError where it is larger than `max_bytes`."""
    data = reply.SerializeToString()
    if len(data) > max_bytes:
        raise InvalidRequestError(
            "items",
            f"the reply would be {len(data)} bytes, at most {max_bytes} are allowed; send fewer at a time",
        )
    call.saw_reply(len(data))
    return data


async def send_replies(
    context: RequestContext, replies: AsyncGenerator[Message], call: RpcCall, grpc_context: GrpcContext
) -> None:
    """Sends replies as they come; raises DeadlineExceededError where one is not read within `stall_s`."""
    # On their own: gRPC can send no status to a call that stalls while its headers leave with its first reply.
    await grpc_context.send_initial_metadata(())
    stall_s = context.deadlines.stall_s
    async with aclosing(replies):
        async for reply in replies:
            data = write_message(reply, context.limits.max_message_bytes, call)
            try:
                async with asyncio.timeout(stall_s):
                    await grpc_context.write(data)
            except TimeoutError:
                raise DeadlineExceededError(f"none of the replies was read for {stall_s:g} s (stall_s)") from None
