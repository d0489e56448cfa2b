"""Server processes that load, serve, lack something or are lost when a test says so; seen from their supervisor."""

import asyncio
import signal
from typing import Any


class FakeServerProcess:
    """Stands for `gradewire_server.processes.server_process.ServerProcess`.

    Args:
        serves: Whether it has come up; else it loads until `come_up`.
        lacks: What it reports to lack; empty: it is ready as soon as it serves.
    """

    def __init__(self, *, serves: bool = True, lacks: str = "") -> None:
        self.report: dict[str, Any] = {"phase": "loading", "degraded": [lacks] if lacks else [], "judging": None}
        self.metrics: list[Any] = []
        self._losing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if serves:
            self.come_up()

    @property
    def serves(self) -> bool:
        return bool(self.report["phase"] == "serving")

    @property
    def ready(self) -> bool:
        return self.serves and not self.report["degraded"]

    def come_up(self) -> None:
        """Serves from now on."""
        self.report["phase"] = "serving"

    def lose(self, how: str) -> None:
        """Ends it as a crash does."""
        self._losing.set_result(how)

    async def lost(self, silent_s: float) -> str:
        assert silent_s > 0
        return await self._losing

    async def stop(self, timeout_s: float) -> None:
        assert timeout_s > 0
        self.report["phase"] = "stopping"

    async def leave(self, timeout_s: float) -> None:
        await self.stop(timeout_s)

    def signal(self, number: signal.Signals) -> None:
        """Ends in its own time."""

    async def refresh(self) -> None:
        """Its metrics stay."""


async def until(holds: Any) -> None:
    """Waits until `holds()`; pytest's own time bounds it."""
    while not holds():  # noqa: ASYNC110 - what is looked at tells nobody
        await asyncio.sleep(0.01)
