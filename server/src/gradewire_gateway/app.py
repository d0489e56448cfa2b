"""The gateway's ASGI app, with an endpoint for each path and the middleware around the endpoints."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradewire_gateway.body import DisconnectedError, Share
from gradewire_gateway.chat import CHAT_PATH, MODELS_PATH, chat_endpoint, judges_endpoint
from gradewire_gateway.decisions import (
    DECISIONS_PATH,
    SYSTEM_ONE_PATH,
    decision_endpoint,
    read_openai,
    read_system_one,
    write_openai,
    write_system_one,
)
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_methods import StreamMethod, unary_endpoint
from gradewire_gateway.observing import RequestLog
from gradewire_gateway.openapi import document
from gradewire_gateway.page import page_routes
from gradewire_gateway.problems import CLIENT_CLOSED, Problem, ProblemError, problem_of, with_error
from gradewire_gateway.requests import RequestRecord, call_options, new_record, record_of
from gradewire_gateway.rewards import reward_endpoints
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.tracing import begin_request_span, end_request_span
from gradewire_gateway.wire import all_methods
from gradewire_proto.wire_rules import REQUEST_ID_KEY

_log = logging.getLogger(__name__)

_WAIT_S: Final = 2.0
_ANSWERED: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


async def _health(gateway: Gateway, request: Request) -> Response:
    """Return 200 if the server reports SERVING, 401 or 403 if it refuses the token, and otherwise 503."""
    stub: Any = health_pb2_grpc.HealthStub(gateway.upstream.channel)
    options = call_options(request.scope, send_peer=gateway.upstream.private)
    try:
        reply = await stub.Check(
            health_pb2.HealthCheckRequest(), timeout=options.timeout_s or _WAIT_S, metadata=options.metadata
        )
    except grpc.aio.AioRpcError as error:
        if error.code() in _ANSWERED:
            raise ProblemError(problem_of(error)) from error
        return JSONResponse({"status": "SERVER_UNREACHABLE"}, 503)
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)
    return JSONResponse({"status": status}, 200 if status == "SERVING" else 503)


async def _metrics(gateway: Gateway, request: Request) -> Response:
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(gateway.telemetry.registry), media_type=content_type)


_WITH_ERROR: Final = frozenset({CHAT_PATH, MODELS_PATH, SYSTEM_ONE_PATH, DECISIONS_PATH})
"""Paths that add the member `error` to their problems, for clients of OpenAI's API."""
_REFUSED: Final = {
    404: ("not_found", "this path does not exist; GET /openapi.json lists all paths"),
    405: ("unimplemented", "this path does not allow this method; use a method from the header Allow"),
}


def create_app(settings: GatewaySettings) -> Starlette:
    """Return a gateway's ASGI app. Its lifespan opens and closes the connection to the server."""
    gateway = Gateway(settings)
    log = RequestLog(settings.log_level)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        gateway.open()
        try:
            yield
        finally:
            await gateway.close()
            log.close()

    return Starlette(
        routes=routes_of(gateway),
        middleware=[Middleware(Observed, gateway=gateway, log=log)],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )


def routes_of(gateway: Gateway) -> list[Route]:
    """Return a route for each path."""
    page = document(with_page=gateway.settings.page)

    async def openapi(_request: Request) -> Response:
        return JSONResponse(page, headers={"cache-control": "no-cache"})

    endpoints: dict[str, Any] = {
        **{
            method.path: StreamMethod(gateway, method) if method.streams else unary_endpoint(gateway, method)
            for method in all_methods()
        },
        CHAT_PATH: chat_endpoint(gateway),
        SYSTEM_ONE_PATH: decision_endpoint(gateway, read_system_one, write_system_one),
        DECISIONS_PATH: decision_endpoint(gateway, read_openai, write_openai),
        **reward_endpoints(gateway),
    }
    return [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in endpoints.items()),
        Route(MODELS_PATH, judges_endpoint(gateway), methods=["GET"]),
        Route("/healthz", partial(_health, gateway)),
        Route("/openapi.json", openapi),
        *([Route("/metrics", partial(_metrics, gateway))] if gateway.settings.metrics else []),
        *page_routes(gateway),
    ]


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that has an unknown path, or a method that the path does not allow."""
    record = record_of(request.scope)
    status: int = getattr(error, "status_code", 500)
    headers: dict[str, Any] = dict(getattr(error, "headers", None) or {})
    record.code, detail = _REFUSED.get(status, ("internal", "refused"))
    return Problem(status, record.code, detail, headers=headers).response(record.request_id)


_DEFECT: Final = Problem(500, "internal", "internal error; look for the request id in the gateway's log")
_HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


class Observed:
    """The outermost ASGI middleware. It records, traces and logs each request, and returns errors as problems."""

    def __init__(self, app: ASGIApp, gateway: Gateway, log: RequestLog) -> None:
        self._app = app
        self._gateway = gateway
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, even if an unexpected error occurs."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        record = new_record(scope)
        record.caller = self._gateway.caller_of(scope)
        telemetry, tracing = self._gateway.telemetry, self._gateway.tracing
        span = record.span = None if tracing is None else begin_request_span(tracing, scope)
        telemetry.in_flight.inc()
        try:
            with self._gateway.share_of(scope) as share:
                await self._answer(scope, receive, _writer(record, share, send))
        finally:
            telemetry.in_flight.dec()
            duration_s = time.perf_counter() - started_s
            record.status = record.status or CLIENT_CLOSED
            # No path has parameters, so a known path is also its route.
            is_known = "endpoint" in scope and record.status != HTTPStatus.METHOD_NOT_ALLOWED
            record.route = scope["path"] if is_known else ""
            exemplar = span.exemplar() if span is not None and span.is_sampled else None
            telemetry.finished(record.route, record.status, duration_s, exemplar)
            if span is not None:
                end_request_span(span, scope)
            self._log.add(record, scope["method"], duration_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: RequestRecord = scope["gradewire"]
        try:
            self._check_name(scope)
            with Share(self._gateway.places, record.caller) as place:
                place.hold(1)
                await self._app(scope, receive, send)
        except DisconnectedError:
            record.code = "cancelled"
        except ProblemError as error:
            problem = with_error(error.problem) if scope["path"] in _WITH_ERROR else error.problem
            await _refuse(problem, record, scope, receive, send)
        except Exception:  # noqa: BLE001 - the error is logged, and the caller gets the request id
            _log.exception("request %s failed unexpectedly", record.request_id)
            await _refuse(_DEFECT, record, scope, receive, send)

    def _check_name(self, scope: Scope) -> None:
        """Raise ProblemError if the header Host does not contain one of the gateway's names."""
        names = self._gateway.settings.listen.allowed_names
        name = _host_of(Headers(scope=scope).get("host", ""))
        if names and name not in names:
            detail = "the header Host does not contain one of the gateway's names; http_api_names sets the names"
            raise ProblemError(Problem(421, "permission_denied", detail, "host"))


async def _refuse(problem: Problem, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
    record.code = problem.code
    if not record.status:  # once a reply has started, the gateway can only end it
        await problem.response(record.request_id)(scope, receive, send)


_PIECE_BYTES: Final = 256 << 10
"""Maximum size of a reply's pieces. A reply of only one piece does not count toward the caller's share."""


def _writer(record: RequestRecord, share: Share, send: Send) -> Send:
    """Return a `send` that records a reply, and counts the reply's bytes until the caller's machine has received them.

    With the last piece, `send` waits until all pieces are written. If the replies in flight need too much memory,
    `send` raises ProblemError before it sends a byte.
    """
    start: Message | None = None

    async def write(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers[REQUEST_ID_KEY] = record.request_id
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            start = message
            return
        body: bytes = message.get("body", b"")
        if len(body) > _PIECE_BYTES:
            share.hold(len(body))
        if start is not None:
            record.status = start["status"]
            await send(start)
            start = None
        record.reply_bytes += len(body)
        for at in range(0, len(body), _PIECE_BYTES):
            await send({"type": message["type"], "body": body[at : at + _PIECE_BYTES], "more_body": True})
        if not message.get("more_body", False):
            await send({"type": message["type"], "body": b"", "more_body": False})  # waits until everything is written
        share.hold(0)

    return write


def _host_of(header: str) -> str:
    """Return the host from ``NAME:PORT`` or ``[ADDRESS]:PORT``, in lower case."""
    name = header.rpartition("]")[0].lstrip("[") if header.startswith("[") else header.partition(":")[0]
    return name.lower()
