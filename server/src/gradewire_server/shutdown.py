"""Shut down a server: drain, let the calls in flight finish, and stop gRPC."""

import asyncio
import logging
from typing import Final

from grpc import aio

from gradewire_server.process import Stop, unless
from gradewire_server.rpc.dispatch import Calls
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.settings.transport import ShutdownConfig

_log = logging.getLogger(__name__)

_QUIET_S: Final = 0.2
"""Seconds without a new call after which all callers have probably noticed that the server is stopping."""
_NO_CALLERS_S: Final = 0.3
"""Seconds without a call after which an unset drain_s ends, because nobody seems to use the server."""
_MAX_QUIET_WAIT_S: Final = 3.0
_REMAINING_CALLS_S: Final = 0.5
"""Timeout for calls that never end on their own, such as health watches."""


async def wind_down(
    server: aio.Server, calls: Calls, lifecycle: Lifecycle, shutdown: ShutdownConfig, stop: Stop
) -> None:
    """Drain, let the calls in flight finish, and stop gRPC. An urgent stop shortens these steps.

    If other processes keep serving, `Calls` redirects callers to them, but still accepts calls.
    """
    _log.info(
        "draining for %s%.1f s, then up to %.1f s for calls in flight",
        "up to " if shutdown.drain_s is None else "",
        shutdown.max_drain_s,
        shutdown.grace_s,
    )
    lifecycle.others_serve = stop.others_serve
    lifecycle.draining()
    await _drain(calls, shutdown, stop)
    if stop.others_serve:
        await _hand_over(server, calls, shutdown.grace_s, stop)
        return
    # From now on, we answer calls with UNAVAILABLE. If we stopped gRPC at once, it would end the calls that it has read
    # but not yet delivered with CANCELLED. Clients would then think that they had cancelled the calls, and not retry.
    lifecycle.stopping()
    await _settle(calls, shutdown.grace_s, stop)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)


async def _drain(calls: Calls, shutdown: ShutdownConfig, stop: Stop) -> None:
    """Wait for drain_s. If it is unset, the wait ends early once no call arrives."""
    # A set drain_s is for load balancers, which may still send calls to a server that seems unused.
    if shutdown.drain_s is None:
        await unless(stop.urgent, calls.quiet(_NO_CALLERS_S), shutdown.max_drain_s)
    else:
        await unless(stop.urgent, asyncio.sleep(shutdown.drain_s))


async def _hand_over(server: aio.Server, calls: Calls, grace_s: float, stop: Stop) -> None:
    """Wait until gradewire's clients have moved to other processes, then let gRPC end all others (GOAWAY)."""
    await unless(stop.urgent, calls.quiet(_QUIET_S), _MAX_QUIET_WAIT_S)
    ending = asyncio.create_task(server.stop(grace_s))
    await unless(stop.urgent, calls.idle(), grace_s)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)
    await ending


async def _settle(calls: Calls, grace_s: float, stop: Stop) -> None:
    """Wait for the calls in flight, then until callers have probably noticed that the server is stopping."""
    await unless(stop.urgent, calls.idle(), grace_s)
    if not stop.urgent.is_set():
        await unless(stop.urgent, calls.quiet(_QUIET_S), min(grace_s, _MAX_QUIET_WAIT_S))
