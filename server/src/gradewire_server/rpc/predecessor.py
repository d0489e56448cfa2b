"""Wait for an earlier server on the same ports that is shutting down.

Such a server listens on a Unix socket for each of its ports, with a name that contains the port. The names are in
Linux's abstract namespace, which belongs to a network namespace, like the ports, and which the system cleans up.
"""

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Final

from gradewire_server.rpc.sockets import BindError
from gradewire_server.settings.server import Settings

_log = logging.getLogger(__name__)

_CREDENTIALS: Final = struct.Struct("3i")
"""Linux's `struct ucred`: process, user and group."""
_BACKLOG: Final = 8


def fixed_ports(settings: Settings) -> tuple[int, ...]:
    """Return the ports that a server with these settings always uses. Any free port is not among them."""
    ports = (settings.listen.port, settings.listen.http_port, settings.http_api.port)
    return tuple(port for port in ports if port)


@asynccontextmanager
async def announced_stop(requested: asyncio.Event, ports: Collection[int]) -> AsyncIterator[None]:
    """Let the next server know, from a requested stop to the end of the context, that this server is shutting down."""

    async def announce() -> None:
        await requested.wait()
        for port in ports:
            stack.enter_context(_announced(port))

    with ExitStack() as stack:
        announcing = asyncio.create_task(announce())
        try:
            yield
        finally:
            announcing.cancel()


async def after_predecessor(ports: Collection[int], limit_s: float) -> None:
    """Wait until no server of this user is shutting down on one of these ports.

    Raises:
        BindError: An earlier server has not stopped after `limit_s`.
    """
    for port in ports:
        with _connection_to_stopping(port) as connection:
            if connection is None:
                continue
            _log.info("waiting up to %.0f s for the earlier server on port %d, which is shutting down", limit_s, port)
            try:
                async with asyncio.timeout(limit_s):
                    await _until_closed(connection)
            except TimeoutError:
                raise BindError(
                    f"the earlier server on port {port} is still shutting down after {limit_s:.0f} s; send it a second "
                    "SIGTERM, which ends its calls, or choose another port"
                ) from None


async def _until_closed(connection: socket.socket) -> None:
    try:
        await asyncio.get_running_loop().sock_recv(connection, 1)
    except ConnectionError:  # the listening socket was closed before it accepted the connection
        return


def _name(port: int) -> str:
    return f"\0gradewire-stopping-{port}"


@contextmanager
def _announced(port: int) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        if sys.platform == "linux":
            try:
                listening.bind(_name(port))
                listening.listen(_BACKLOG)
            except OSError as error:  # e.g. a server on another address, with the same port, is shutting down too
                _log.debug("cannot announce that port %d will be free: %s", port, error)
        yield


@contextmanager
def _connection_to_stopping(port: int) -> Iterator[socket.socket | None]:
    """Yield a connection that closes once the server on `port` has stopped, or None if no server is shutting down."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)  # noqa: FBT003 - a positional parameter of socket
        if sys.platform != "linux":
            yield None
            return
        try:
            connection.connect(_name(port))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            yield None
            return
        # Another user could use the name to delay our start.
        yield connection if _CREDENTIALS.unpack(credentials)[1] == os.geteuid() else None
