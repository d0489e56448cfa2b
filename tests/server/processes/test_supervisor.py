"""The port of several processes is kept from others, and from a second server of the same kind."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.fakes.server_processes import FakeServerProcess, until

from gradewire_proto.wire_rules import Backoff
from gradewire_server.process import Stop
from gradewire_server.processes import supervisor
from gradewire_server.processes.server_process import Worker
from gradewire_server.processes.supervisor import StartError, reserved_port, restart_all, restart_whenever, supervise
from gradewire_server.rpc.sockets import BindError
from gradewire_server.settings.server import Settings
from gradewire_server.settings.shares import shared_bytes


def test_it_is_shared_with_those_that_share_and_kept_from_others() -> None:
    with reserved_port("127.0.0.1", 0) as port:
        with (
            pytest.raises(BindError, match=f"another program listens on port {port}"),
            reserved_port("127.0.0.1", port),
        ):
            pass
        with socket.socket() as foreign:
            foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                foreign.bind(("127.0.0.1", port))
        with socket.socket() as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind(("127.0.0.1", port))
            ours.listen()
            socket.create_connection(("127.0.0.1", port), 5).close()


def test_a_port_on_which_a_program_listens_is_an_error() -> None:
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        port = foreign.getsockname()[1]
        with pytest.raises(BindError), reserved_port("127.0.0.1", port):
            pass


class _Starts:
    """Starts processes of two places and keeps them all, with the number of their place."""

    def __init__(self) -> None:
        self.lacks = ""
        self.loads = False
        self.processes: list[tuple[int, FakeServerProcess]] = []

    async def __call__(self, index: int) -> Any:
        process = FakeServerProcess(serves=not self.loads, lacks=self.lacks)
        self.processes.append((index, process))
        return process


@asynccontextmanager
async def _running(starts: _Starts) -> AsyncIterator[Any]:
    """All processes, when each has been started."""
    workers = [Worker(n, lambda n=n: starts(n), stop_s=5, on_exit=lambda *_: None) for n in range(2)]  # type: ignore[misc]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        async with asyncio.timeout(30):
            await until(lambda: len(starts.processes) == 2)
            yield SimpleNamespace(workers=workers, judge_host=None)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def test_processes_without_their_backend_are_replaced_by_ones_that_have_it() -> None:
    starts = _Starts()
    starts.lacks = "triton is unreachable"
    async with _running(starts) as state:
        starts.lacks = ""
        await restart_all(state)
        assert len(starts.processes) == 4
        assert all(worker.ready for worker in state.workers)


async def test_one_that_still_loads_is_replaced_first_and_not_waited_for() -> None:
    starts = _Starts()
    async with _running(starts) as state:
        starts.processes[1][1].report["phase"] = "loading"
        await restart_all(state)
        assert [index for index, _ in starts.processes] == [0, 1, 1, 0]
        assert all(worker.ready for worker in state.workers)


async def test_a_restart_that_ends_says_which_process_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.server_process.READY_S", 0.2)
    starts = _Starts()
    async with _running(starts) as state:
        starts.lacks = "triton is unreachable"
        await restart_all(state)
        assert len(starts.processes) == 3, "the second one goes on as it is"
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    for part in ("process 0 serves", "in 0.2 s: triton is unreachable", "send SIGHUP again"):
        assert part in said


async def test_a_further_request_cancels_a_waiting_restart_and_starts_over_with_the_current_settings() -> None:
    starts, wanted = _Starts(), asyncio.Event()
    async with _running(starts) as state:
        restarting = asyncio.create_task(restart_whenever(wanted, state))
        try:
            starts.lacks = "triton is unreachable"
            wanted.set()
            await until(lambda: len(starts.processes) == 3 and state.workers[0].serves)
            starts.lacks = ""
            wanted.set()
            await until(lambda: len(starts.processes) == 5 and all(worker.ready for worker in state.workers))
            assert [index for index, _ in starts.processes] == [0, 1, 0, 0, 1]
        finally:
            restarting.cancel()
            await asyncio.wait((restarting,))


async def test_a_defect_ends_one_restart_and_not_those_after_it(caplog: pytest.LogCaptureFixture) -> None:
    wanted = asyncio.Event()
    restarting = asyncio.create_task(restart_whenever(wanted, cast("Any", SimpleNamespace())))
    try:
        for number in (1, 2):
            wanted.set()
            await until(lambda number=number: caplog.text.count("failed because of a defect") == number)
    finally:
        restarting.cancel()
        await asyncio.wait((restarting,))


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
    return Settings.load(processes=2, judge_backend="none", port=0, http_port="", disk_directory=tmp_path)


@asynccontextmanager
async def _running_supervisor(
    server: _Server, settings: Settings, patch: pytest.MonkeyPatch
) -> AsyncIterator["asyncio.Task[None]"]:
    """The supervisor, with both processes started."""
    patch.setattr("gradewire_server.processes.supervisor.ServerProcess.start", server.start)
    patch.setattr("gradewire_server.process.RESTART_BACKOFF", Backoff(0.01, 8.0))
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
    async with _running_supervisor(server, settings, monkeypatch) as supervising:
        await until(lambda: server.ports)
        server.processes[0].lose("ended with signal 9")
        await until(lambda: len(server.processes) == 3)
        assert not supervising.done()
    supervising.result()


async def test_one_that_has_come_up_may_be_lost_while_another_one_loads(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _Server()
    async with _running_supervisor(server, settings, monkeypatch) as supervising:
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
    async with _running_supervisor(server, settings, monkeypatch) as supervising:
        server.processes[1].lose("process 1 ended with exit code 2")
        await asyncio.wait((supervising,))
    assert not server.ports
    with pytest.raises(StartError, match=r"^process 1 ended with exit code 2$"):
        supervising.result()


async def test_a_restart_is_heard_while_processes_load(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    async with _running_supervisor(server, settings, monkeypatch) as supervising:
        server.serve = True  # as mended settings would have it; those that run load for ever
        server.restart.set()
        await until(lambda: server.ports)
        assert len(server.processes) == 4
    supervising.result()


async def test_processes_serve_without_shared_memory_if_the_system_refuses_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(max_bytes: int, writers: int) -> int:
        assert (max_bytes, writers) == (shared_bytes(settings.given, 2), 2)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(supervisor, "create_table", refuse)
    async with AsyncExitStack() as stack:
        assert supervisor._shared_memory(stack, settings, 2) is None
    assert "The processes share no memory" in caplog.text
    assert "Cannot allocate memory" in caplog.text


async def test_a_request_to_stop_ends_a_start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    async with _running_supervisor(server, settings, monkeypatch) as supervising:
        server.stop.request()
        await asyncio.wait((supervising,))
    assert not server.ports
    supervising.result()
