"""A server that is shutting down is waited for by the next one on its ports, and nobody else is."""

import asyncio
import logging
import os
import socket

import pytest

from gradewire_server.rpc.predecessor import after_predecessor, announced_stop, fixed_ports
from gradewire_server.rpc.sockets import BindError
from gradewire_server.settings.server import Settings


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_the_next_server_waits_until_the_earlier_one_has_stopped(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    requested = asyncio.Event()
    async with announced_stop(requested, (port,)):
        requested.set()
        await asyncio.sleep(0)
        with caplog.at_level(logging.INFO):
            waiting = asyncio.create_task(after_predecessor((port,), 60))
            done, _ = await asyncio.wait((waiting,), timeout=0.2)
        assert not done
    await waiting
    assert caplog.messages == [f"waiting up to 60 s for the earlier server on port {port}, which is shutting down"]


async def test_several_wait_for_the_same_one(port: int) -> None:
    requested = asyncio.Event()
    async with announced_stop(requested, (port,)):
        requested.set()
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(after_predecessor((port,), 60)) for _ in range(3)]
        done, _ = await asyncio.wait(waiting, timeout=0.2)
        assert not done
    await asyncio.gather(*waiting)


async def test_a_server_that_serves_is_not_waited_for(port: int, caplog: pytest.LogCaptureFixture) -> None:
    async with announced_stop(asyncio.Event(), (port,)):
        with caplog.at_level(logging.INFO):
            await after_predecessor((port,), 60)
    assert not caplog.messages


async def test_a_server_on_other_ports_is_not_waited_for(port: int) -> None:
    requested = asyncio.Event()
    async with announced_stop(requested, (port,)):
        requested.set()
        await asyncio.sleep(0)
        await after_predecessor((port - 1, port + 1), 60)


async def test_one_that_does_not_end_in_time_is_an_error_that_names_the_port(port: int) -> None:
    requested = asyncio.Event()
    async with announced_stop(requested, (port,)):
        requested.set()
        await asyncio.sleep(0)
        with pytest.raises(BindError, match=rf"^the earlier server on port {port} is still shutting down after 0 s; "):
            await after_predecessor((port,), 0.05)


async def test_another_user_cannot_delay_a_start(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    requested = asyncio.Event()
    async with announced_stop(requested, (port,)):
        requested.set()
        await asyncio.sleep(0)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        await after_predecessor((port,), 60)


async def test_two_that_stop_on_one_port_do_not_disturb_each_other(port: int) -> None:
    requested = asyncio.Event()
    requested.set()
    async with announced_stop(requested, (port,)), announced_stop(requested, (port,)):
        await asyncio.sleep(0)


def test_only_ports_that_are_always_the_same_count() -> None:
    assert fixed_ports(Settings.load(port=1, http_port=2, http_api_port=3)) == (1, 2, 3)
    assert fixed_ports(Settings.load(port=0, http_port="")) == ()
