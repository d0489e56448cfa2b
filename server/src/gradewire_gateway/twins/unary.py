"""The twin of a method with one request and one reply: JSON in, JSON out."""

import asyncio

import grpc
from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.observing.tracing import calling
from gradewire_gateway.problems import Problem, ProblemError, problem_of
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.upstream import CallOptions
from gradewire_gateway.wire.body import Body, DisconnectedError
from gradewire_gateway.wire.methods import RpcMethod

JSON_TYPE = "application/json"


class UnaryTwin:
    """An ASGI app that answers one method.

    Args:
        gateway: What it calls.
        method: Which method.
    """

    def __init__(self, gateway: Gateway, method: RpcMethod) -> None:
        self._gateway = gateway
        self._method = method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; raises ProblemError and DisconnectedError where it is not answered."""
        gateway = self._gateway
        bounds = gateway.settings.bounds
        with Body(receive, Headers(scope=scope), bounds, gateway.budget) as body:
            body.check_type(JSON_TYPE)
            options = call_options(scope, tell_peer=gateway.upstream.private)
            data = await body.read()
            record_of(scope).request_bytes = body.size_bytes
            request = await gateway.json.read(data, self._method.request_type)
            del data
            reply = await call_unary(gateway, self._method, request, options, body)
        await Response(await gateway.json.write(reply), media_type=JSON_TYPE)(scope, receive, send)


async def call_unary(
    gateway: Gateway, method: RpcMethod, request: Message, options: CallOptions, body: Body
) -> Message:
    """Calls the server for as long as the caller is there.

    Args:
        gateway: Its channel.
        method: What to call.
        request: Its request.
        options: Its metadata and deadline.
        body: Of the HTTP request, read to its end.

    Raises:
        ProblemError: What the server answers in place of a reply.
        DisconnectedError: The caller went away; the call is cancelled.
    """
    with calling(options, method.path) as traced:
        return await _call(gateway, method, request, traced, body)


async def _call(gateway: Gateway, method: RpcMethod, request: Message, options: CallOptions, body: Body) -> Message:
    call = gateway.upstream.unary(method, request, options)
    gone = asyncio.ensure_future(body.disconnected())
    answer: asyncio.Future[Message] = asyncio.ensure_future(_reply(call))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise DisconnectedError
        return answer.result()
    finally:
        gone.cancel()
        answer.cancel()
        call.cancel()  # it may not have been waited for yet


async def _reply(call: asyncio.Task[Message]) -> Message:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise ProblemError(problem_of(error)) from error
    except grpc.aio.UsageError as error:  # the channel was closed
        raise ProblemError(Problem(503, "unavailable", "the gateway is stopping; try again")) from error
