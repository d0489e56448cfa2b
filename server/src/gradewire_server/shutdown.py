"""Wind a server down after a request to stop: drain, let the calls in flight finish, and end gRPC."""

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
"""Seconds without a call after which all callers are taken to know that the server stops."""
_MAX_QUIET_WAIT_S: Final = 3.0
_REMAINING_CALLS_S: Final = 0.5
"""Seconds for calls that are left when our own are done: a watcher of health would stay for ever."""


async def wind_down(
    server: aio.Server, calls: Calls, lifecycle: Lifecycle, shutdown: ShutdownConfig, stop: Stop
) -> None:
    """Drains, lets the calls in flight finish, and stops gRPC; an urgent stop cuts each of these short.

    If other processes go on, `Calls` sends callers there and still takes their calls.
    """
    _log.info(
        "draining for %.1f s, then up to %.1f s for calls in flight",
        shutdown.drain_s,
        shutdown.grace_s,
    )
    lifecycle.others_serve = stop.others_serve
    lifecycle.draining()
    await unless(stop.urgent, asyncio.sleep(shutdown.drain_s))
    if stop.others_serve:
        await _hand_over(server, calls, shutdown.grace_s, stop)
        return
    # Calls that come now are told UNAVAILABLE by us. Were the server stopped at once, gRPC would cancel those that it
    # has read and not yet handed over, with a code that clients take for their own doing and do not retry.
    lifecycle.stopping()
    await _settle(calls, shutdown.grace_s, stop)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)


async def _hand_over(server: aio.Server, calls: Calls, grace_s: float, stop: Stop) -> None:
    """Wait until callers that understand have gone elsewhere, then have gRPC send the others away (GOAWAY)."""
    await unless(stop.urgent, calls.quiet(_QUIET_S), _MAX_QUIET_WAIT_S)
    ending = asyncio.create_task(server.stop(grace_s))
    await unless(stop.urgent, calls.idle(), grace_s)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)
    await ending


async def _settle(calls: Calls, grace_s: float, stop: Stop) -> None:
    """Wait for the calls in flight, then for callers that have not noticed yet that the server stops."""
    await unless(stop.urgent, calls.idle(), grace_s)
    if not stop.urgent.is_set():
        await unless(stop.urgent, calls.quiet(_QUIET_S), min(grace_s, _MAX_QUIET_WAIT_S))
