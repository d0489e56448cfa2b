"""How long a server drains: a set drain_s is kept, an unset one ends when nobody calls."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from grpc import aio
from prometheus_client import CollectorRegistry

from gradewire_server.process import Phase, Stop
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.settings.transport import ShutdownConfig
from gradewire_server.shutdown import wind_down

if TYPE_CHECKING:
    from gradewire_server.rpc.dispatch import Calls


class Callers:
    """Calls of which nothing is in flight; `silent` says that nobody calls any more."""

    def __init__(self) -> None:
        self.silent = asyncio.Event()

    async def idle(self) -> None:
        return

    async def quiet(self, for_s: float) -> None:
        assert for_s > 0
        await self.silent.wait()


class Winding:
    """A server that winds down, and its phase."""

    def __init__(self, shutdown: ShutdownConfig) -> None:
        self.stop, self.callers = Stop(), Callers()
        self.lifecycle = Lifecycle(RpcTelemetry(CollectorRegistry()))
        self.ended = asyncio.create_task(
            wind_down(aio.server(), cast("Calls", self.callers), self.lifecycle, shutdown, self.stop)
        )

    async def phase(self) -> Phase:
        """The phase, after a time in which it could have changed."""
        await asyncio.wait((self.ended,), timeout=0.2)
        return self.lifecycle.phase


async def test_an_unset_window_ends_when_nobody_calls() -> None:
    winding = Winding(ShutdownConfig())
    assert await winding.phase() is Phase.DRAINING
    winding.callers.silent.set()
    await winding.ended
    assert winding.lifecycle.phase is Phase.STOPPING


async def test_a_set_window_lasts_even_if_nobody_calls() -> None:
    winding = Winding(ShutdownConfig(drain_s=60))
    winding.callers.silent.set()
    assert await winding.phase() is Phase.DRAINING
    winding.stop.urgent.set()
    await winding.ended


async def test_an_unset_window_ends_even_while_calls_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.settings.transport._MAX_UNSET_DRAIN_S", 0.0)
    winding = Winding(ShutdownConfig(grace_s=0))
    await winding.ended


@pytest.mark.parametrize(("given", "most_s", "limit_s"), [({}, 5, 50), ({"drain_s": 9, "grace_s": 1}, 9, 25)])
def test_the_longest_time_that_a_stop_may_take(given: dict[str, Any], most_s: float, limit_s: float) -> None:
    shutdown = ShutdownConfig(**given)
    assert (shutdown.max_drain_s, shutdown.limit_s) == (most_s, limit_s)
