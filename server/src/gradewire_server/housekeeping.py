"""Housekeeping while the server serves: memory, garbage, health of the backends, and overload that lasts."""

import asyncio
import ctypes
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from gradewire_server.backends import Backends
from gradewire_server.processes.gateway import GatewaySupervisor
from gradewire_server.requests.context import RequestContext
from gradewire_server.rpc.call import RpcTelemetry
from gradewire_server.rpc.calls import Lifecycle
from gradewire_server.rpc.log import FloodFilter
from gradewire_server.rpc.memory_guard import MemoryGuard, watch_lateness
from gradewire_server.rpc.messages import Receiver


@asynccontextmanager
async def guarded(
    port: int, receiver: Receiver, telemetry: RpcTelemetry, *, memory_limit_bytes: int
) -> AsyncIterator[MemoryGuard]:
    """Guards the server on `port` for as long as the context lasts; gives the guard of memory, to be told of models.

    Args:
        port: Of gRPC.
        receiver: Receives its messages.
        telemetry: Where the guards count.
        memory_limit_bytes: What the process may take.
    """
    memory = MemoryGuard(receiver, memory_limit_bytes, port, shed=telemetry.messages_shed.inc)
    memory.start()
    watching = asyncio.create_task(watch_lateness(telemetry.loop_late.observe))
    try:
        yield memory
    finally:
        watching.cancel()
        memory.close()


_OBSERVE_EVERY_S: Final = 0.25
"""Less than a judge's process takes to restart, so that health shows each restart."""
_LASTING_S: Final = 5.0
"""Seconds of overload from which on it is no burst, and health tells of it."""


async def observe(  # noqa: PLR0913 - whose state is shown, and where; the last by name
    backends: Backends,
    lifecycle: Lifecycle,
    flood: FloodFilter,
    context: RequestContext,
    unready_overload_s: float,
    *,
    gateway: GatewaySupervisor | None = None,
) -> None:
    """Shows the state of backends and gateway in health and metrics, again and again."""
    while True:
        trouble = "" if gateway is None else gateway.trouble
        await observe_once(
            backends, lifecycle, context.admission.overload_s, unready_overload_s, gateway_trouble=trouble
        )
        flood.tell()
        await asyncio.sleep(_OBSERVE_EVERY_S)


async def observe_once(
    backends: Backends,
    lifecycle: Lifecycle,
    overload_s: float = 0.0,
    unready_overload_s: float = 0.0,
    *,
    gateway_trouble: str = "",
) -> None:
    """Shows it once.

    Args:
        backends: Of the server.
        lifecycle: Where it is shown.
        overload_s: How long small requests have been refused.
        unready_overload_s: As in the settings; 0: overload never takes the server out of rotation.
        gateway_trouble: Of the HTTP gateway; empty: none.
    """
    health = backends.health()
    broken = [
        health.troubles.get(name) or f"model {name} is not loaded" for name, well in health.models.items() if not well
    ]
    unloaded = () if any(health.models.values()) else ("no model is loaded",)
    judge = health.judge
    overload = [f"overload: small requests have been refused for {overload_s:.0f} s"] if overload_s > _LASTING_S else []
    down = [trouble for trouble in (gateway_trouble, judge.trouble and f"judge: {judge.trouble}") if trouble]
    degraded = (*unloaded, *health.degraded, *down, *overload)
    await lifecycle.observe(
        degraded=degraded,
        broken=broken,
        judging=judge.ready if judge.configured else None,
        overloaded=0 < unready_overload_s <= overload_s,
    )


_OLD_AFTER: Final = 100
"""Looks at younger objects until old ones are looked at in any case, in place of 10: some 700 000 new objects."""
_EVERY_S: Final = 10.0
_ALL_EVERY_S: Final = 3600.0
"""Then everything is looked at once more: what is in use now may be garbage by then."""


def collect_and_keep() -> None:
    """Frees what is garbage. What is in use is not looked at again, and freed as ever when it is let go.

    To be called while no call is answered: what a call holds would be kept for long if it ended up in a cycle.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collect_when_idle(idle: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Has garbage looked for again and again, only when no call is in flight; afterwards all is as Python has it.

    Where a call is in flight at any time, old objects are looked at after many new ones alone. For one server in a
    process: the collector is the process's.

    Args:
        idle: Waits until no call is in flight.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _OLD_AFTER)
    looking = asyncio.create_task(_look(idle))
    try:
        yield
    finally:
        looking.cancel()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


async def _look(idle: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    all_due_s = clock() + _ALL_EVERY_S
    while True:
        await asyncio.sleep(_EVERY_S)
        await idle()
        if clock() >= all_due_s:
            gc.unfreeze()
            all_due_s = clock() + _ALL_EVERY_S
        collect_and_keep()


_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of glibc's malloc.h."""
_MAPPED_FROM_BYTES: Final = 4 << 20
"""More than an encoder's run allocates at once: only messages are larger, and their memory goes back when they do."""
_ARENAS: Final = 4


def return_large_blocks() -> None:
    """Has large blocks mapped on their own, so that they return to the system when they are freed.

    Otherwise glibc learns from the first large block that is freed to keep the next ones, and keeps parts of them for
    each thread. Does nothing where the C library is another one.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)
