"""Supervises the HTTP gateway: starts it, and starts another one when it is lost."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gradewire_gateway.settings import GatewaySettings
from gradewire_server.concurrency.supervised import keep_running
from gradewire_server.gateway.endpoint import Endpoint
from gradewire_server.gateway.process import GatewayLostError, GatewayProcess

_log = logging.getLogger(__name__)


class GatewaySupervisor:
    """One gateway at a time. Lives on one event loop.

    Args:
        endpoint: What gateways are handed.
        settings: What they are told.
        log_level: Of their log.
        restarted: Called whenever one was lost and another one is about to be started.

    Attributes:
        trouble: Why there is no gateway now; empty when there is one.
        pid: Process id of the gateway; None while there is none.
    """

    def __init__(
        self, endpoint: Endpoint, settings: GatewaySettings, log_level: str, *, restarted: Callable[[], None]
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._log_level = log_level
        self._restarted = restarted
        self.trouble = "the HTTP gateway is starting"
        self.pid: int | None = None

    async def run(self) -> None:
        """Keeps one running until cancelled, which lets it answer what it has taken."""
        await keep_running(self._run_until_lost)

    async def _run_until_lost(self) -> None:
        why = await self._run_one()
        self.pid, self.trouble = None, why
        _log.error("%s; starting another one", why)
        self._restarted()

    async def _run_one(self) -> str:
        """Runs one until it is lost; returns how."""
        try:
            gateway = await GatewayProcess.start(self._endpoint, self._settings, self._log_level)
        except (GatewayLostError, OSError) as error:
            return str(error)
        try:
            self.pid, self.trouble = gateway.pid, ""
            _log.info("the HTTP gateway runs as process %d", gateway.pid)
            return str(await gateway.lost())
        finally:
            await asyncio.shield(gateway.stop())


@asynccontextmanager
async def supervised(supervisor: GatewaySupervisor) -> AsyncIterator[GatewaySupervisor]:
    """Keeps a gateway running for as long as the context lasts."""
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.wait((running,))
