"""How several processes start together: what ends the start, what is one process's own, and that SIGHUP is heard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.fakes.server_processes import FakeServerProcess, until

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.processes.supervisor import StartError, supervise
from gradewire_server.settings.server import Settings
from gradewire_server.stop import Stop


class _Server:
    """A supervisor of two processes that are none.

    Attributes:
        processes: All that it has started.
        serve: Whether those that it starts come up at once.
        lacks: What they lack then.
        ports: Those that it said to serve on.
    """

    def __init__(self) -> None:
        self.processes: list[FakeServerProcess] = []
        self.serve, self.lacks = False, ""
        self.ports: list[int] = []
        self.stop, self.restart = Stop(), asyncio.Event()

    async def start(self, *_: Any) -> FakeServerProcess:
        self.processes.append(FakeServerProcess(serves=self.serve, lacks=self.lacks))
        return self.processes[-1]

    def supervise(self, settings: Settings) -> "asyncio.Task[None]":
        return asyncio.create_task(
            supervise(settings, {}, self.stop, self.restart, started=self.ports.append), name="supervisor"
        )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(processes=2, judge_backend="none", port=0, http=False, disk_directory=tmp_path)


@asynccontextmanager
async def _running(
    server: _Server, settings: Settings, patch: pytest.MonkeyPatch
) -> AsyncIterator["asyncio.Task[None]"]:
    """The supervisor, with both processes started."""
    patch.setattr("gradewire_server.processes.supervisor.ServerProcess.start", server.start)
    patch.setattr("gradewire_server.concurrency.supervised._BACKOFF", Backoff(base_s=0.01))
    supervising = server.supervise(settings)
    try:
        async with asyncio.timeout(30):
            await until(lambda: len(server.processes) == 2)
            yield supervising
    finally:
        server.stop.request()
        await asyncio.wait((supervising,))


async def test_processes_that_lack_their_backend_serve_and_one_of_them_may_be_lost(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _Server()
    server.serve, server.lacks = True, "triton is unreachable"
    async with _running(server, settings, monkeypatch) as supervising:
        await until(lambda: server.ports)
        server.processes[0].lose("ended with signal 9")
        await until(lambda: len(server.processes) == 3)
        assert not supervising.done()
    supervising.result()


async def test_one_that_has_come_up_may_be_lost_while_another_one_loads(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _Server()
    async with _running(server, settings, monkeypatch) as supervising:
        server.processes[0].come_up()
        await asyncio.sleep(0.2)  # it is looked at every 50 ms
        server.processes[0].lose("ended with signal 9")
        await until(lambda: len(server.processes) == 3)
        server.processes[2].come_up()
        server.processes[1].come_up()
        await until(lambda: server.ports)
    supervising.result()


async def test_one_that_is_lost_before_it_comes_up_ends_the_start_with_the_reason(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _Server()
    async with _running(server, settings, monkeypatch) as supervising:
        server.processes[1].lose("process 1 ended with exit code 2")
        await asyncio.wait((supervising,))
    assert not server.ports
    with pytest.raises(StartError, match=r"^process 1 ended with exit code 2$"):
        supervising.result()


async def test_a_restart_is_heard_while_processes_load(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    async with _running(server, settings, monkeypatch) as supervising:
        server.serve = True  # as mended settings would have it; those that run load for ever
        server.restart.set()
        await until(lambda: server.ports)
        assert len(server.processes) == 4
    supervising.result()


async def test_a_request_to_stop_ends_a_start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    async with _running(server, settings, monkeypatch) as supervising:
        server.stop.request()
        await asyncio.wait((supervising,))
    assert not server.ports
    supervising.result()
