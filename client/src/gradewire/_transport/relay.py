"""The transport of a process that was forked after gRPC was loaded: another process carries its calls.

gRPC's core does not survive a fork (ADR 20). So the forked process starts a fresh interpreter, which holds gRPC; each
call is a socket of its own between the two, handed over by the one socket that they have from the start. Closing a
call's socket cancels the call, and the carrying process ends with the process that started it, however that ends.
"""

import asyncio
import contextlib
import pickle
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

from gradewire._fork_safety import forget_in_children
from gradewire._transport.endpoint import Endpoint
from gradewire._transport.relay_frames import Call, Ended, Said, encode_frame, read_frame
from gradewire.errors import ForkedClient, ServerUnreachable
from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2

_END_S = 5.0
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from gradewire._transport.relay_process import main; main(int(sys.argv[1]))"
)
_WAYS_OUT = (
    "gRPC was loaded before this process was forked and cannot be used in it, and the process that would carry its "
    "calls cannot be started ({reason}): start workers with the spawn or forkserver method, or make the first call "
    "after the fork"
)

Reply = TypeVar("Reply", bound=Message)


@dataclass(frozen=True, slots=True)
class _Carrier:
    """The process that carries calls, and the socket by which it is handed their sockets."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket


class RelayTransport:
    """Calls a gradewire server through a process of its own, which is started at the first call.

    Args:
        endpoint: The server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._carrier: _Carrier | None = None
        forget_in_children(self)

    async def score(self, request: scoring_pb2.ScoreRequest, *, timeout_s: float) -> scoring_pb2.ScoreResponse:
        """Calls Scoring.Score."""
        call = Call("score", timeout_s, request.SerializeToString())
        return await _only(self._replies(call, scoring_pb2.ScoreResponse))

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Calls Scoring.ScoreStream."""
        return self._replies(Call("score_stream", timeout_s), scoring_pb2.ScoreStreamResponse, requests)

    async def compare(self, request: judging_pb2.CompareRequest, *, timeout_s: float) -> judging_pb2.CompareResponse:
        """Calls Judging.Compare."""
        call = Call("compare", timeout_s, request.SerializeToString())
        return await _only(self._replies(call, judging_pb2.CompareResponse))

    def compare_stream(
        self, requests: AsyncIterator[judging_pb2.CompareStreamRequest], *, timeout_s: float | None = None
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        """Calls Judging.CompareStream."""
        return self._replies(Call("compare_stream", timeout_s), judging_pb2.CompareStreamResponse, requests)

    def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Calls References.Prepare."""
        return self._replies(Call("prepare", timeout_s, request.SerializeToString()), references_pb2.PrepareProgress)

    async def list_models(self, *, timeout_s: float) -> models_pb2.ListModelsResponse:
        """Calls Models.List."""
        return await _only(self._replies(Call("list_models", timeout_s), models_pb2.ListModelsResponse))

    async def close(self) -> None:
        """Ends the carrying process; calls in flight are cancelled."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.control.close()
            await asyncio.to_thread(_reap, carrier.process)

    def forget(self) -> None:
        """Lets go of the parent's carrier in a process that was forked in its turn."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.control.close()

    async def _replies(
        self, call: Call, kind: type[Reply], requests: AsyncIterator[Message] | None = None
    ) -> AsyncGenerator[Reply]:
        reader, writer = await asyncio.open_connection(sock=self._call_socket())
        sending = asyncio.create_task(_send(writer, call, requests))
        try:
            while isinstance(frame := await read_frame(reader), Said):
                yield kind.FromString(frame.message)
        except EOFError:
            if sending.done() and (broken := sending.exception()) is not None:
                raise broken from None
            raise ServerUnreachable(
                "the process that carries the calls of this forked process ended: standard error may say why"
            ) from None
        else:
            if isinstance(frame, Ended) and frame.error is not None:
                raise frame.error
        finally:
            sending.cancel()
            writer.close()

    def _call_socket(self) -> socket.socket:
        """A socket whose other end the carrying process has."""
        if self._carrier is not None and self._carrier.process.poll() is not None:
            self._carrier.control.close()
            self._carrier = None
        if self._carrier is None:
            self._carrier = _start(self._endpoint)
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._carrier.control, [b"\0"], [theirs.fileno()])
            except OSError:
                # It has just ended: the call finds its socket closed, and the next one starts another process.
                self._carrier.process.kill()
        return ours


def _start(endpoint: Endpoint) -> _Carrier:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            # In a group of its own: Ctrl-C is for the program, whose end is seen on the socket.
            process = subprocess.Popen(  # noqa: S603 - this interpreter and a program of ours
                [sys.executable, "-c", _PROGRAM.format(path=sys.path), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                process_group=0,
            )
        except OSError as error:
            ours.close()
            raise ForkedClient(_WAYS_OUT.format(reason=error.strerror or error)) from error
    if process.stdin is not None:
        # Not on the command line, which every user of the machine can read: there may be a token.
        with contextlib.suppress(OSError), process.stdin:  # it has ended already, which the call will find
            process.stdin.write(pickle.dumps(endpoint))
    return _Carrier(process, ours)


def _reap(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _send(writer: asyncio.StreamWriter, call: Call, requests: AsyncIterator[Message] | None) -> None:
    try:
        writer.write(encode_frame(call))
        if requests is not None:
            async for request in requests:
                writer.write(encode_frame(Said(request.SerializeToString())))
                await writer.drain()
            writer.write(encode_frame(Ended()))
        await writer.drain()
    except OSError:
        return  # the carrying process has gone, which whoever reads will find
    except BaseException:
        writer.close()
        raise


async def _only(replies: AsyncGenerator[Reply]) -> Reply:
    async with aclosing(replies):
        return await anext(replies)
