"""A server over the hash engine on a real socket, and short ways to ask it."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry
from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import context_over

from gradewire_proto.v1 import (
    judging_pb2_grpc,
    models_pb2_grpc,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
    types_pb2,
)
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.dispatch import Calls
from gradewire_server.rpc.grpc_server import listen, make_server, service_handlers
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.log import RequestLog
from gradewire_server.rpc.telemetry import RpcTelemetry, Snapshots
from gradewire_server.settings.limits import Capacity, Deadlines, Limits
from gradewire_server.tenants.tokens import Authentication

if TYPE_CHECKING:
    import pytest


@dataclass
class Wire:
    """A running server and a channel to it."""

    engine: HashEngine
    handlers: Handlers
    lifecycle: Lifecycle
    registry: CollectorRegistry
    calls: Calls
    channel: aio.Channel
    port: int
    log_text: io.StringIO
    request_log: RequestLog

    def __post_init__(self) -> None:
        self.scoring: Any = scoring_pb2_grpc.ScoringStub(self.channel)
        self.references: Any = references_pb2_grpc.ReferencesStub(self.channel)
        self.models: Any = models_pb2_grpc.ModelsStub(self.channel)
        self.judging: Any = judging_pb2_grpc.JudgingStub(self.channel)

    async def score_bytes(self, data: bytes) -> bytes:
        """Sends raw bytes to Score."""
        reply: bytes = await self.channel.unary_unary("/gradewire.v1.Scoring/Score")(data)
        return reply

    async def health(self, service: str) -> str:
        """What Health.Check says of a service."""
        reply = await health_pb2_grpc.HealthStub(self.channel).Check(health_pb2.HealthCheckRequest(service=service))
        return health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)

    async def log_lines(self) -> list[dict[str, Any]]:
        """Everything logged so far; ends the log."""
        await self.calls.idle()  # a failed call is logged behind its status, which the caller has by then
        await self.request_log.close()
        return [json.loads(line) for line in self.log_text.getvalue().splitlines()]


@asynccontextmanager
async def wire_server(
    *,
    engine: HashEngine | None = None,
    limits: Limits | None = None,
    deadlines: Deadlines | None = None,
    capacity: Capacity | None = None,
    tokens: tuple[str, ...] = (),
    authentication: Authentication | None = None,
    guard_health: bool = False,
    serving: bool = True,
    make_handlers: Callable[..., Handlers] = Handlers,
) -> AsyncIterator[Wire]:
    """Starts one; `serving=False` leaves it as it is while models are being loaded."""
    engine = engine or HashEngine()
    limits = limits or Limits()
    registry = CollectorRegistry()
    telemetry = RpcTelemetry(registry)
    lifecycle = Lifecycle(telemetry)
    log_text = io.StringIO()
    request_log = RequestLog(stream=log_text)
    authentication = authentication or Authentication(tokens)
    calls = Calls(lifecycle, telemetry, request_log, authentication=authentication)
    admission = Admission(capacity or Capacity())
    telemetry.expose_admission(admission)
    context = context_over(
        engine,
        limits=limits,
        deadlines=deadlines or Deadlines(),
        admission=admission,
        count_result=telemetry.count_result,
        count_synthetic=telemetry.count_synthetic,
    )
    handlers = make_handlers(context)
    async with AsyncExitStack() as stack:
        server = make_server(
            service_handlers(calls, Snapshots(registry, lifecycle.report)),
            lifecycle,
            max_message_bytes=limits.max_message_bytes,
            authentication=authentication if guard_health else None,
        )
        port = await listen(server, "127.0.0.1:0")
        stack.push_async_callback(request_log.close)
        stack.push_async_callback(server.stop, None)
        if serving:
            lifecycle.serving(handlers)
        channel = await stack.enter_async_context(
            aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])
        )
        yield Wire(engine, handlers, lifecycle, registry, calls, channel, port, log_text, request_log)


SMILE = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
SBERT = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())
EXACT = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())


def item(prediction: str = "It was a big cat.", *references: str, item_id: str = "") -> types_pb2.Item:
    """An item with its prediction and references ("the cat" where none is given)."""
    return types_pb2.Item(id=item_id, question="what?", references=references or ("the cat",), prediction=prediction)


def request(*items: types_pb2.Item, metrics: tuple[types_pb2.MetricSpec, ...] = (SMILE,)) -> scoring_pb2.ScoreRequest:
    """A Score request."""
    return scoring_pb2.ScoreRequest(items=items, metrics=metrics)


def error_of(caught: "pytest.ExceptionInfo[aio.AioRpcError]") -> tuple[grpc.StatusCode, str, dict[str, Any]]:
    """Code, details and trailing metadata of a failed call."""
    error = caught.value
    return error.code(), error.details() or "", dict(error.trailing_metadata() or ())


async def until(condition: Callable[[], Any], timeout_s: float = 5) -> None:
    """Waits until `condition()` is true; for what has no event to wait for, on the other side of a socket."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
