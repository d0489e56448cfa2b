"""``GET /healthz``: whether the server behind the gateway takes calls; and ``GET /metrics``."""

from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.problems import ProblemError, problem_of
from gradewire_gateway.requests import call_options

_WAIT_S: Final = 2.0
_ANSWERED: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


class Health:
    """Endpoints that tell of the gateway.

    Args:
        gateway: Which one.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def healthz(self, request: Request) -> Response:
        """200 while the server says SERVING, else 503; 401 where its health needs a token."""
        stub: Any = health_pb2_grpc.HealthStub(self._gateway.upstream.channel)
        options = call_options(request.scope, tell_peer=self._gateway.upstream.private)
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

    async def metrics(self, request: Request) -> Response:
        """The gateway's figures, for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._gateway.telemetry.registry), media_type=content_type)
