"""What bounds connections before a request stands: how many there are, and how long the first head may take."""

import asyncio
from typing import ClassVar

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol


class BoundedConnection(H11Protocol):
    """uvicorn's connection of HTTP/1.1; it bounds neither by itself.

    Attributes:
        head_s: Seconds in which a new connection must have sent its first head.
        max_connections: That are open at a time; one more is closed.
    """

    head_s: ClassVar[float] = 15.0
    max_connections: ClassVar[int] = 1000
    _waiting: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the base class has it
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
        self._waiting = asyncio.get_running_loop().call_later(self.head_s, self._end_silent)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _end_silent(self) -> None:
        asked: object | None = self.cycle  # the base class says of it that it is there, also where nobody has asked yet
        if asked is None:
            self.transport.abort()
