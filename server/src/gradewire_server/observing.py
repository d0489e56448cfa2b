"""Shows in health and metrics what state the backends are in, and overload that lasts."""

import asyncio
from typing import Final

from gradewire_server.backends import Backends
from gradewire_server.gateway.supervisor import GatewaySupervisor
from gradewire_server.requests.context import RequestContext
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.rpc.log_bound import FloodFilter

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
