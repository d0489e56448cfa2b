"""The process that carries the calls of a forked one; see `relay`, which starts it."""

import asyncio
import pickle
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TypeVar

from google.protobuf.message import Message

from gradewire._transport.grpc_transport import GrpcTransport
from gradewire._transport.relay_frames import Call, Ended, Said, encode_frame, read_frame
from gradewire.errors import GradewireError
from gradewire_proto.v1 import judging_pb2, references_pb2, scoring_pb2

Request = TypeVar("Request", bound=Message)


def main(control_fd: int) -> None:
    """Carries calls until the process that started this one ends, or closes its client; standard input says whereto."""
    endpoint = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - a pipe from the process that started this one
    asyncio.run(_carry(socket.socket(fileno=control_fd), GrpcTransport(endpoint)))


async def _carry(control: socket.socket, transport: GrpcTransport) -> None:
    calls: set[asyncio.Task[None]] = set()
    ended = asyncio.Event()

    def take() -> None:
        try:
            said, fds, *_ = socket.recv_fds(control, 1, 1)
        except OSError:
            said, fds = b"", []
        if not said:
            ended.set()
            return
        call = asyncio.create_task(_serve(transport, socket.socket(fileno=fds[0])))
        calls.add(call)
        call.add_done_callback(calls.discard)

    loop = asyncio.get_running_loop()
    loop.add_reader(control, take)
    await ended.wait()
    loop.remove_reader(control)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await transport.close()


async def _serve(transport: GrpcTransport, call_socket: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=call_socket)
    requests: asyncio.Queue[bytes | None] = asyncio.Queue()  # no longer than what a stream reads ahead
    try:
        call: Call = await read_frame(reader)
        answering = asyncio.create_task(_answer(_replies(transport, call, requests), writer))
        reading = asyncio.create_task(_read(reader, requests))
        try:
            # The reader ends when the caller has gone.
            await asyncio.wait((answering, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, reading):
                task.cancel()
            await asyncio.gather(answering, reading, return_exceptions=True)
        if not answering.cancelled():
            answering.result()
    except (EOFError, OSError):
        return  # the caller has gone
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, requests: asyncio.Queue[bytes | None]) -> None:
    with suppress(EOFError):
        while True:
            frame = await read_frame(reader)
            requests.put_nowait(frame.message if isinstance(frame, Said) else None)


async def _answer(replies: AsyncGenerator[Message], writer: asyncio.StreamWriter) -> None:
    error: GradewireError | None = None
    try:
        async with aclosing(replies):
            async for reply in replies:
                writer.write(encode_frame(Said(reply.SerializeToString())))
                await writer.drain()
    except GradewireError as failure:
        error = failure
    writer.write(encode_frame(Ended(error)))
    await writer.drain()


async def _replies(
    transport: GrpcTransport, call: Call, requests: asyncio.Queue[bytes | None]
) -> AsyncGenerator[Message]:
    timeout_s = call.timeout_s or 0.0
    if call.method == "score":
        yield await transport.score(scoring_pb2.ScoreRequest.FromString(call.message), timeout_s=timeout_s)
    elif call.method == "compare":
        yield await transport.compare(judging_pb2.CompareRequest.FromString(call.message), timeout_s=timeout_s)
    elif call.method == "list_models":
        yield await transport.list_models(timeout_s=timeout_s)
    else:
        streamed: AsyncGenerator[Message]
        if call.method == "prepare":
            request = references_pb2.PrepareRequest.FromString(call.message)
            streamed = transport.prepare(request, timeout_s=timeout_s)
        elif call.method == "compare_stream":
            pairs = _stream_requests(requests, judging_pb2.CompareStreamRequest)
            streamed = transport.compare_stream(pairs, timeout_s=call.timeout_s)
        else:
            items = _stream_requests(requests, scoring_pb2.ScoreStreamRequest)
            streamed = transport.score_stream(items, timeout_s=call.timeout_s)
        async with aclosing(streamed):
            async for reply in streamed:
                yield reply


async def _stream_requests(requests: asyncio.Queue[bytes | None], kind: type[Request]) -> AsyncIterator[Request]:
    while (message := await requests.get()) is not None:
        yield kind.FromString(message)
