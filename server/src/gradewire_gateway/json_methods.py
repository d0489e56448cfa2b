"""Endpoints for all gRPC methods. Requests and replies are JSON, and streams contain one message per line (NDJSON)."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import grpc
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gradewire_gateway.body import Body, DisconnectedError
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_work import HUGE_BYTES
from gradewire_gateway.problems import Problem, ProblemError, problem_of
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.tracing import calling
from gradewire_gateway.upstream import CallClosedError, CallOptions, Sent, accepted, writing
from gradewire_gateway.wire import Buffer, RpcMethod, unparsed

JSON_TYPE = "application/json"
T = TypeVar("T")
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
"""A function that answers a request, or raises ProblemError or DisconnectedError."""


def unary_endpoint(gateway: Gateway, method: RpcMethod) -> Endpoint:
    """Return the endpoint of a method with one request and one reply."""
    passed_on = unparsed(method)

    async def answer(request: Request) -> Response:
        read = partial(gateway.json.read, kind=method.request_type)
        async with body_read_by(gateway, request, read) as (message, options, body):
            reply = await call_unary(gateway, passed_on, message, options, body)
        return Response(await gateway.json_of(request.scope, reply, method.reply_type), media_type=JSON_TYPE)

    return answer


def json_body(
    gateway: Gateway, request: Request, make: Callable[[Buffer], T]
) -> AbstractAsyncContextManager[tuple[T, CallOptions, Body]]:
    """Read a request's JSON body as `body_read_by` does. Parse a large body on the thread for JSON."""
    return body_read_by(gateway, request, lambda _caller, data: gateway.json.made_of(data, make))


@asynccontextmanager
async def body_read_by(
    gateway: Gateway, request: Request, read: Callable[[Hashable, Buffer], Awaitable[T]]
) -> AsyncGenerator[tuple[T, CallOptions, Body]]:
    """Receive a request's JSON body. Yield the result of `read`, the call's options, and the body itself.

    Raises:
        ProblemError: The body or a header is invalid.
        DisconnectedError: The caller has disconnected.
    """
    with gateway.body_of(request.scope, request.receive) as body:
        body.check_type(JSON_TYPE)
        options = call_options(request.scope, send_peer=gateway.upstream.private)
        data = await body.read()
        record_of(request.scope).request_bytes = body.size_bytes
        if len(data) < HUGE_BYTES:
            made = await read(body.caller, data)
        else:
            made, options = await _made_in_time(body, read(body.caller, data), options)
        del data
        yield made, options, body


async def _made_in_time(body: Body, work: Awaitable[T], options: CallOptions) -> tuple[T, CallOptions]:
    """Return the result of `work`, and options with the time left for the call."""
    if options.timeout_s is None:
        return await while_connected(body, work), options
    begun_s = time.monotonic()
    try:
        async with asyncio.timeout(options.timeout_s):
            made = await while_connected(body, work)
    except TimeoutError:
        detail = "the deadline passed before the body was parsed; send fewer items, or set a longer Connect-Timeout-Ms"
        raise ProblemError(Problem(504, "deadline_exceeded", detail)) from None
    left_s = max(0.001, options.timeout_s - (time.monotonic() - begun_s))
    return made, replace(options, timeout_s=left_s)


async def while_connected(body: Body, work: Awaitable[T]) -> T:
    """Return the result of `work`; cancel it and raise DisconnectedError if the caller disconnects."""
    gone = asyncio.ensure_future(body.disconnected())
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise DisconnectedError
        return working.result()
    finally:
        gone.cancel()
        working.cancel()


async def call_unary(gateway: Gateway, method: RpcMethod, request: Sent, options: CallOptions, body: Body) -> Any:
    """Call the server after reading the whole HTTP body. Cancel the call if the caller disconnects.

    Raises:
        ProblemError: The call has failed.
        DisconnectedError: The caller has disconnected.
    """
    with calling(options, method.path) as traced:
        call = gateway.upstream.unary(method, request, traced)
        try:
            return await while_connected(body, reply_of(call))
        finally:
            call.cancel()  # in case `reply_of` was cancelled before it waited for the call


async def reply_of(call: asyncio.Task[Any]) -> Any:
    """Return a call's reply; raise ProblemError if the call fails."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise ProblemError(problem_of(error)) from error
    except grpc.aio.UsageError as error:  # the channel was closed
        raise ProblemError(Problem(503, "unavailable", "the gateway is stopping; try again")) from error


LINES_TYPE: Final = "application/x-ndjson"
LINE_TYPES: Final = (LINES_TYPE, "application/jsonl", "application/ndjson")


class StreamMethod:
    """An ASGI app for one streaming method.

    If the call fails before the first reply, the app returns a problem. If the call fails later, the last line is
    ``{"error": {…}}``. The app sends replies while it still reads lines, so a caller that sends more items than fit
    into the server's window must read replies while writing.
    """

    def __init__(self, gateway: Gateway, method: RpcMethod) -> None:
        self._gateway = gateway
        self._method = method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or raise ProblemError or DisconnectedError."""
        gateway, kind = self._gateway, self._method.reply_type
        with gateway.body_of(scope, receive) as body:
            body.check_type(*(LINE_TYPES if self._method.client_streaming else (JSON_TYPE,)))
            options = call_options(scope, send_peer=gateway.upstream.private)
            async with aclosing(self._replies(body, options)) as replies:
                first = await anext(replies, None)
                await _begin(send)
                try:
                    if first is not None:
                        await _line(send, await gateway.json_of(scope, first, kind))
                        del first
                    async for reply in replies:
                        await _line(send, await gateway.json_of(scope, reply, kind))
                except ProblemError as error:
                    record = record_of(scope)
                    record.code = error.problem.code
                    await _line(send, json.dumps({"error": error.problem.body(record.request_id)}).encode())
                finally:
                    record_of(scope).request_bytes = body.size_bytes
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _replies(self, body: Body, options: CallOptions) -> AsyncGenerator[bytes]:
        with calling(options, self._method.path) as traced:
            upstream = self._gateway.upstream
            if self._method.client_streaming:
                sent = None
            else:
                sent = await self._gateway.json.read(body.caller, await body.read(), self._method.request_type)
            writer = _Writer(self._gateway, self._method, body, upstream.stream(unparsed(self._method), sent, traced))
            sending = asyncio.create_task(writer.run())
            try:
                async for reply in writer.call:
                    upstream.tokens.note(options.metadata, grpc.StatusCode.OK)
                    yield reply
                await writer.call.code()
            except grpc.aio.AioRpcError as error:
                upstream.tokens.note(options.metadata, error.code())
                raise writer.failure or ProblemError(problem_of(error)) from error
            except grpc.aio.UsageError as error:  # the channel was closed
                raise ProblemError(Problem(503, "unavailable", "the gateway is stopping; try again")) from error
            except asyncio.CancelledError:
                if writer.failure is None:
                    raise
                raise writer.failure from None  # the writer ended the call
            finally:
                writer.call.cancel()  # has no effect after the call has ended
                sending.cancel()


class _Writer:
    """A writer that sends a body's lines to a call. An error or the caller's disconnection cancels the call."""

    def __init__(self, gateway: Gateway, method: RpcMethod, body: Body, call: Any) -> None:
        self._gateway = gateway
        self._method = method
        self._body = body
        self.call = call
        self.failure: Exception | None = None

    async def run(self) -> None:
        try:
            if self._method.client_streaming:
                await self._write()
            await self._body.disconnected()
            self._end(DisconnectedError())
        except CallClosedError:
            pass  # the call's reader handles this error
        except Exception as error:  # noqa: BLE001 - the call would wait for more lines, and the reader raises the error
            self._end(error)

    def _end(self, why: Exception) -> None:
        self.failure = why
        self.call.cancel()

    async def _write(self) -> None:
        await accepted(self.call)
        number = 0
        async with aclosing(self._body.lines()) as lines:
            async for line in lines:
                number += 1
                message = await self._gateway.json.read(
                    self._body.caller, line, self._method.request_type, f"line {number}"
                )
                with writing():
                    await self.call.write(message)
        with writing():
            await self.call.done_writing()


async def _begin(send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", LINES_TYPE.encode()), (b"cache-control", b"no-store")],
        }
    )


async def _line(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data + b"\n", "more_body": True})
