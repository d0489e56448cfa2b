"""The state that a gateway's endpoints share, and its budgets for callers.

A caller is a token that the server has accepted before. Without such a token, the host is the caller. Each host's
requests with an unknown token and requests without a token are counted separately, so that neither kind can block the
other. Hosts share the connections. Callers share the requests in flight, and the bytes of bodies, lines and large
replies. No host or caller may use more of a budget than it leaves free for others (`Budget`). If a host has no
connections left, the gateway closes the host's longest idle connection. It closes connections with an accepted token
last.

A request is in flight until the caller's machine has received the reply. Every head, body, line and write has a time
limit (`Bounds`), after which the gateway answers 408 or closes the connection. The gateway reads the server's next
message only after the caller's machine has received the last piece of the reply.
"""

import asyncio
from collections.abc import Hashable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from gradewire_gateway.body import Body, Budget, Share
from gradewire_gateway.json_work import Json
from gradewire_gateway.observing import GatewayTelemetry
from gradewire_gateway.requests import record_of, with_bearer
from gradewire_gateway.settings import GatewaySettings
from gradewire_gateway.upstream import Upstream
from gradewire_proto.tracing.factory import open_tracing, prometheus_counts

if TYPE_CHECKING:
    from gradewire_proto.tracing.sdk import Tracing


class Gateway:
    """The state of a gateway. Call `open` and `close` on the event loop that serves the requests.

    Attributes:
        places: The budget for requests in flight.
        bytes_in_flight: The budget for the bytes of bodies and replies in flight.
        tracing: Tracing of requests; None before `open`, or if tracing is off.
        closing: Resources that `close` closes first.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.telemetry = GatewayTelemetry()
        bounds = settings.bounds
        self.places = Budget(bounds.max_requests, "too many of this caller's requests are in flight")
        self.bytes_in_flight = Budget(
            bounds.max_bytes_in_flight, "the bodies and replies of the requests in flight need too much memory"
        )
        self.json = Json()
        self.tracing: Tracing | None = None
        self.closing = AsyncExitStack()
        self._upstream: Upstream | None = None

    @property
    def upstream(self) -> Upstream:
        """The connections to the server. Before `open`, the property raises RuntimeError."""
        if self._upstream is None:
            raise RuntimeError("the gateway is not open; serve the app with its lifespan")
        return self._upstream

    def open(self) -> None:
        """Open the channel to the server. The channel connects at the first call."""
        self._upstream = Upstream(self.settings.upstream)
        if self.settings.tracing.is_on():
            counts = prometheus_counts(self.telemetry.registry, "gradewire_gateway")
            self.tracing = open_tracing(self.settings.tracing, "gradewire-gateway", counts)

    def caller_of(self, scope: Scope) -> Hashable:
        """Return the caller (an accepted token or a host) that a request's budgets belong to."""
        authorization = with_bearer(Headers(scope=scope).get("authorization", ""))
        if authorization in self.upstream.tokens:
            return authorization
        client: tuple[str, int] | None = scope.get("client")
        return client and client[0], bool(authorization)

    def share_of(self, scope: Scope) -> Share:
        """Return a `Share` of `bytes_in_flight`, still empty, for the caller of a recorded request."""
        return Share(self.bytes_in_flight, record_of(scope).caller)

    def body_of(self, scope: Scope, receive: Receive) -> Body:
        """Return a request's body, which counts toward its caller's share."""
        return Body(receive, Headers(scope=scope), self.settings.bounds, self.share_of(scope))

    async def json_of(self, scope: Scope, reply: bytes, kind: type[Message]) -> bytes:
        """Return a reply in JSON; raise ProblemError if the replies in flight need too much memory."""
        with self.share_of(scope) as share:
            return await self.json.write(record_of(scope).caller, reply, kind, share.hold)

    async def close(self) -> None:
        """Close the resources in `closing`, then the channel and tracing."""
        await self.closing.aclose()
        await asyncio.to_thread(self.json.close)
        if self._upstream is not None:
            await self._upstream.close()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
