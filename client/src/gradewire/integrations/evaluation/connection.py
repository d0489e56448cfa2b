"""One connection to each server for all scorers of a process."""

import asyncio
import os
import threading
from typing import Final, Unpack

from gradewire._calls.options import CallOptions
from gradewire.call_options import ScoreOptions
from gradewire.client import Client
from gradewire.items import ItemLike
from gradewire.metric_types.choice import MetricsLike
from gradewire.score_report import ScoreReport
from gradewire.scorer import EMBEDDED_DEADLINE_S, embedded_transport

ADDRESS_VARIABLE: Final = "GRADEWIRE_SERVER"
TOKEN_VARIABLE: Final = "GRADEWIRE_TOKEN"  # noqa: S105 - the name of a variable
EMBEDDED: Final = "embedded"
"""The address that scores in this process, without a server."""
_USUAL_ADDRESS: Final = "127.0.0.1:50051"


class SharedClient(Client):
    """A client whose calls can be awaited on any event loop of asyncio, and made from any thread."""

    async def score_soon(
        self, items: list[ItemLike], metrics: MetricsLike, **options: Unpack[ScoreOptions]
    ) -> ScoreReport:
        """As `score`, from a coroutine; a cancelled wait cancels the call."""
        call = CallOptions.of("Client.score", metrics, options)
        running = self._background.running()
        return await asyncio.wrap_future(running.loop.start(running.calls.score(items, call, None)))


_lock = threading.Lock()
_clients: dict[tuple[str, str | None], SharedClient] = {}


def shared_client(address: str | None, token: str | None) -> SharedClient:
    """The process's client for a server, made at the first call.

    Args:
        address: HOST:PORT of a server; "embedded": in this process; None: what the environment variable
            GRADEWIRE_SERVER says, else 127.0.0.1:50051.
        token: Bearer token; None: what GRADEWIRE_TOKEN says, else none.

    Raises:
        InvalidRequest: The address or token cannot be one.
        MissingExtra: "embedded" was asked for, and the server's part is not installed.
    """
    address = address or os.environ.get(ADDRESS_VARIABLE) or _USUAL_ADDRESS
    where = (address, token or os.environ.get(TOKEN_VARIABLE) or None)
    # Without the lock where it is there: a process that another thread forks meanwhile would keep the lock for good.
    if (client := _clients.get(where)) is not None:
        return client
    with _lock:
        if where not in _clients:
            _clients[where] = _open(*where)
        return _clients[where]


def close_connections() -> None:
    """Closes all connections that scorers opened; the end of the program does so too. The next call opens one again."""
    with _lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()


def _open(address: str, token: str | None) -> SharedClient:
    if address == EMBEDDED:
        return SharedClient(deadline_s=EMBEDDED_DEADLINE_S, transport=embedded_transport())
    return SharedClient(address, token=token)
