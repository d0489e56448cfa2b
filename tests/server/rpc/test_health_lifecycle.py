"""What health says in each phase, per service."""

import pytest
from tests.support.servers.wire import Wire, wire_server

from gradewire_proto.wire_rules import JUDGING
from gradewire_server.process import Phase
from gradewire_server.rpc.errors import NotServingError

SERVICES = ("", "gradewire.v1.Scoring", "gradewire.v1.References", "gradewire.v1.Models")


async def health(wire: Wire) -> list[bool]:
    return [await wire.health(service) == "SERVING" for service in SERVICES]


async def test_health_follows_the_phases() -> None:
    async with wire_server(serving=False) as wire:
        lifecycle = wire.lifecycle
        assert (await health(wire), lifecycle.phase, lifecycle.ready) == ([False] * 4, Phase.LOADING, False)
        lifecycle.serving(wire.handlers)
        assert (await health(wire), lifecycle.phase, lifecycle.ready) == ([True] * 4, Phase.SERVING, True)
        lifecycle.draining()
        assert (await health(wire), lifecycle.phase, lifecycle.ready) == ([False] * 4, Phase.DRAINING, False)
        assert lifecycle.handlers() is wire.handlers, "calls are still taken"
        lifecycle.stopping()
        with pytest.raises(NotServingError):
            lifecycle.handlers()


async def test_calls_are_taken_once_all_is_loaded_before_health_says_so() -> None:
    async with wire_server(serving=False) as wire:
        with pytest.raises(NotServingError):
            wire.lifecycle.handlers()
        wire.lifecycle.loaded(wire.handlers)
        assert wire.lifecycle.handlers() is wire.handlers
        assert (await health(wire), wire.lifecycle.ready) == ([False] * 4, False)


async def test_degraded_is_told_and_scoring_stays_up(wire: Wire) -> None:
    wire.lifecycle.observe(degraded=["redis: breaker open"], broken=[])
    assert await health(wire) == [True] * 4
    assert wire.lifecycle.report()["degraded"] == ["redis: breaker open"]
    assert wire.registry.get_sample_value("gradewire_degraded") == 1
    wire.lifecycle.observe(degraded=[], broken=[])
    assert wire.lifecycle.report()["degraded"] == []


async def test_a_broken_engine_takes_down_what_needs_it_and_comes_back(wire: Wire) -> None:
    wire.lifecycle.observe(degraded=[], broken=["model m is not loaded"])
    assert await health(wire) == [False, False, False, True]
    assert not wire.lifecycle.ready
    assert wire.registry.get_sample_value("gradewire_serving") == 0
    wire.lifecycle.observe(degraded=[], broken=[])
    assert await health(wire) == [True] * 4


async def test_an_unknown_service_is_not_serving_in_silence(wire: Wire) -> None:
    with pytest.raises(Exception, match="NOT_FOUND"):
        await wire.health("gradewire.v1.Nonsense")


async def test_judging_has_health_of_its_own_and_takes_nothing_along(wire: Wire) -> None:
    with pytest.raises(Exception, match="NOT_FOUND"):  # no judge is configured
        await wire.health(JUDGING)
    assert wire.lifecycle.report()["judging"] is None
    for judging in (True, False, True):
        wire.lifecycle.observe(degraded=[] if judging else ["judge: its worker died"], broken=[], judging=judging)
        assert (await wire.health(JUDGING) == "SERVING") == judging
        assert await health(wire) == [True] * 4
        assert wire.lifecycle.ready
        assert wire.lifecycle.report()["judging"] is judging
    wire.lifecycle.observe(degraded=[], broken=["model m is not loaded"], judging=True)
    assert await wire.health(JUDGING) == "SERVING", "a judge needs no encoder"
    wire.lifecycle.draining()
    assert await wire.health(JUDGING) == "NOT_SERVING"
