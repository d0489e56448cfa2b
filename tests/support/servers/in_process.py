"""The whole server inside the test's process, on free ports: everything but process and signals is real."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gradewire_server.app import serve
from gradewire_server.process import Stop
from gradewire_server.settings.server import Settings


@asynccontextmanager
async def serving(directory: Path, **settings: Any) -> AsyncIterator[tuple[int, Stop]]:
    """Yields the gRPC port and the way to stop it; stops it in the end, and raises what it raised."""
    given = {"port": 0, "http_port": 0, "disk_directory": directory / "store", "drain_s": 0, "grace_s": 10, **settings}
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = Stop()
    running = asyncio.create_task(serve(Settings.load(**given), started=port.set_result, stop=stop))
    await asyncio.wait((port, running), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    try:
        yield port.result(), stop
    finally:
        if not stop.requested.is_set():
            stop.request()
        await running
