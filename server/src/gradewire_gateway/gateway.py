"""The state that all endpoints of one gateway share, and the law of what callers may take of it.

Before the gateway reads a byte of a body, it checks three things in this order: the host has a place for the
connection, the name in `Host` is the gateway's, and the caller has a place for the request. The server checks the
token when it gets the call. A caller is a token that the server has accepted before. All other callers count by host,
and requests with an unknown token count apart from requests without one, so neither can block the other. Hosts share
the connections; callers share the requests and the bytes of bodies, lines and large replies. Nobody may hold more than
remains free (`Budget`). If a host has no place left, its longest idle connection is closed, and those of callers with
an accepted token last. Every head, body, line and write has a time limit (`Bounds`); after it, the gateway answers 408
or closes the connection. A request keeps its place until the caller's machine has received the reply. The gateway
writes replies in pieces, and reads the next message from the server when the caller has received the last one. A closed
connection ends its call, and a call that ends closes its stream.
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
    """The state of a gateway; `open` and `close` belong to the event loop that serves.

    Attributes:
        places: Requests in flight.
        bytes_in_flight: Bytes of their bodies and replies.
        tracing: Tracing of requests; None before `open`, and where nothing is traced.
        closing: What is to be closed with it, before the channel is.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.telemetry = GatewayTelemetry()
        bounds = settings.bounds
        self.places = Budget(bounds.max_requests, "this caller has its share of the requests in flight")
        self.bytes_in_flight = Budget(
            bounds.max_bytes_in_flight, "the bodies and replies of the requests in flight take too much memory"
        )
        self.json = Json()
        self.tracing: Tracing | None = None
        self.closing = AsyncExitStack()
        self._upstream: Upstream | None = None

    @property
    def upstream(self) -> Upstream:
        """The server; a RuntimeError before `open`."""
        if self._upstream is None:
            raise RuntimeError("the gateway is not open: serve the app with its lifespan")
        return self._upstream

    def open(self) -> None:
        """Open the channel to the server; connects at the first call."""
        self._upstream = Upstream(self.settings.upstream)
        if self.settings.tracing.is_on():
            counts = prometheus_counts(self.telemetry.registry, "gradewire_gateway")
            self.tracing = open_tracing(self.settings.tracing, "gradewire-gateway", counts)

    def caller_of(self, scope: Scope) -> Hashable:
        """Return the caller of a request, by which all that it may take is counted."""
        authorization = with_bearer(Headers(scope=scope).get("authorization", ""))
        if authorization in self.upstream.tokens:
            return authorization
        client: tuple[str, int] | None = scope.get("client")
        return client and client[0], bool(authorization)

    def share_of(self, scope: Scope) -> Share:
        """Return an empty share of the bytes in flight, for a request that has a record."""
        return Share(self.bytes_in_flight, record_of(scope).caller)

    def body_of(self, scope: Scope, receive: Receive) -> Body:
        """Return the body of a request, which is counted as its caller's."""
        return Body(receive, Headers(scope=scope), self.settings.bounds, self.share_of(scope))

    async def json_of(self, scope: Scope, reply: bytes, kind: type[Message]) -> bytes:
        """Return a reply to a request in JSON; raise ProblemError if waiting replies take too much memory."""
        with self.share_of(scope) as share:
            return await self.json.write(reply, kind, share.hold)

    async def close(self) -> None:
        """Close all that is open, the channel last."""
        await self.closing.aclose()
        await asyncio.to_thread(self.json.close)
        if self._upstream is not None:
            await self._upstream.close()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
