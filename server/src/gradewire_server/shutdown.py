"""How serving ends: what requests to stop cut short, and the time that calls in flight get."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from grpc import aio

from gradewire_server.rpc.calls import Calls
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.settings.transport import ShutdownConfig
from gradewire_server.stop import Stop

_log = logging.getLogger(__name__)

_QUIET_S: Final = 0.2
"""Seconds without a call after which all callers are taken to know that the server stops."""
_MAX_QUIET_WAIT_S: Final = 3.0
_REMAINING_CALLS_S: Final = 0.5
"""Seconds for calls that are left when our own are done: a watcher of health would stay for ever."""


async def before_stop(loading: asyncio.Task[Any], stop: Stop) -> bool:
    """Waits for `loading`; only an urgent stop cuts it short, for a store that is half open cannot be closed again.

    Returns:
        Whether to serve; False where a request to stop came first.
    """
    urgent = asyncio.create_task(stop.urgent.wait())
    try:
        await asyncio.wait((loading, urgent), return_when=asyncio.FIRST_COMPLETED)
    finally:
        urgent.cancel()
        if stop.urgent.is_set():
            loading.cancel()
        await asyncio.wait((loading,))
    if not loading.cancelled():
        loading.result()  # raises what went wrong, even where the server is to stop
    return not stop.requested.is_set()


async def wind_down(
    server: aio.Server, calls: Calls, lifecycle: Lifecycle, shutdown: ShutdownConfig, stop: Stop
) -> None:
    """Drains, lets the calls in flight finish, and stops gRPC; an urgent stop cuts each of these short.

    Where other processes go on, callers are told to go there while their calls are still taken (`Calls`).
    """
    _log.info(
        "draining for %.1f s, then up to %.1f s for calls in flight",
        shutdown.drain_s,
        shutdown.grace_s,
    )
    lifecycle.others_serve = stop.others_serve
    await lifecycle.draining()
    with suppress(TimeoutError):
        async with asyncio.timeout(shutdown.drain_s):
            await stop.urgent.wait()
    if stop.others_serve:
        await _hand_over(server, calls, shutdown.grace_s, stop)
        return
    # Calls that come now are told UNAVAILABLE by us. Were the server stopped at once, gRPC would cancel those that it
    # has read and not yet handed over, with a code that clients take for their own doing and do not retry.
    lifecycle.stopping()
    await _unless_urgent(_settle(calls, shutdown.grace_s), stop)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)


async def _unless_urgent(waiting: Coroutine[Any, Any, None], stop: Stop, timeout_s: float | None = None) -> None:
    """Waits, for so long at most, unless it is to end at once."""
    tasks = asyncio.create_task(waiting), asyncio.create_task(stop.urgent.wait())
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _hand_over(server: aio.Server, calls: Calls, grace_s: float, stop: Stop) -> None:
    """Waits until callers that understand have gone elsewhere, then has gRPC send the others away (GOAWAY)."""
    await _unless_urgent(_quiet(calls), stop)
    ending = asyncio.create_task(server.stop(grace_s))
    await _unless_urgent(calls.idle(), stop, grace_s)
    await server.stop(None if stop.urgent.is_set() else _REMAINING_CALLS_S)
    await ending


async def _quiet(calls: Calls) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_MAX_QUIET_WAIT_S):
            await calls.quiet(_QUIET_S)


async def _settle(calls: Calls, grace_s: float) -> None:
    """Waits for the calls in flight, then for callers that have not noticed yet that the server stops."""
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await calls.idle()
    with suppress(TimeoutError):
        async with asyncio.timeout(min(grace_s, _MAX_QUIET_WAIT_S)):
            await calls.quiet(_QUIET_S)
