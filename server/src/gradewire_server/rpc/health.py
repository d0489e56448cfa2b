"""gRPC's health service: what callers are told, and watchers that do not hang on each other.

grpcio-health-checking has one too. There a watcher that leaves takes the news from all other watchers of the same
service, and one that does not read holds up whoever sets the status.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gradewire_server.rpc.errors import abort

if TYPE_CHECKING:
    from grpc import aio

_Response = health_pb2.HealthCheckResponse


class HealthService(health_pb2_grpc.HealthServicer):
    """Statuses by service, "" being the whole server."""

    def __init__(self) -> None:
        self._statuses: dict[str, Any] = {"": _Response.SERVING}
        self._changed = asyncio.Event()
        self._stopping = False

    async def Check(  # noqa: N802 - gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "aio.ServicerContext[Any, Any]"
    ) -> health_pb2.HealthCheckResponse:
        """The status now; NOT_FOUND for a service that nobody has named."""
        status = self._statuses.get(request.service)
        if status is None:
            await abort(context, grpc.StatusCode.NOT_FOUND)
        return _Response(status=status)

    async def Watch(  # noqa: N802 - gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "aio.ServicerContext[Any, Any]"
    ) -> None:
        """The status now and whenever it changes."""
        told = None
        while True:
            changed = self._changed
            status = self._statuses.get(request.service, _Response.SERVICE_UNKNOWN)
            if status != told:
                await context.write(_Response(status=status))
                told = status
            await changed.wait()

    async def set(self, service: str, status: Any) -> None:
        """Says how a service is; nothing changes after `enter_graceful_shutdown`."""
        if not self._stopping and self._statuses.get(service) != status:
            self._statuses[service] = status
            self._tell()

    async def enter_graceful_shutdown(self) -> None:
        """Says NOT_SERVING of all services, for good."""
        self._stopping = True
        self._statuses = dict.fromkeys(self._statuses, _Response.NOT_SERVING)
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
