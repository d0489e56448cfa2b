"""The judge host tells the supervisor that it has come up, as server processes do, and so ends the start."""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.fakes.server_processes import until

from gradewire_proto.wire_rules import Backoff
from gradewire_server.processes import server_process
from gradewire_server.processes.child import Position
from gradewire_server.processes.http_gateway import private_directory
from gradewire_server.processes.process_connection import MetricsJson
from gradewire_server.processes.server_process import RestartError, ServerProcess, Worker


async def _no_figures() -> MetricsJson:
    return []


@pytest.fixture
def directory() -> Iterator[Path]:
    with private_directory() as path:
        yield path


async def test_it_says_that_it_serves(directory: Path, tmp_path: Path) -> None:
    position = Position(2, 2, 0, directory, judge_host=True)
    values = {"judge_backend": "embedded", "disk_directory": str(tmp_path)}
    host = await ServerProcess.start(position, values, _no_figures, hosts_judges=True)
    try:
        assert not host.serves
        await until(lambda: host.serves)
        assert host.ready
    finally:
        await host.stop(20)


_SILENT_S = 0.5


async def _no_figures_server_process() -> MetricsJson:
    return []


@asynccontextmanager
async def _hanging_process() -> AsyncIterator[tuple[ServerProcess, socket.socket, asyncio.subprocess.Process]]:
    """One that says nothing of its own, its end of the link, and what runs."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    with theirs:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        process = ServerProcess(child, "process 0", ours, _no_figures_server_process)
        try:
            yield process, theirs, child
        finally:
            await process.kill()


async def test_silence_while_the_supervisor_was_paused_is_none_of_the_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_process, "_PAUSED_S", 0.3)
    monkeypatch.setattr(server_process, "START_S", 0)
    async with _hanging_process() as (process, _theirs, child):
        losing = asyncio.create_task(process.lost(_SILENT_S))
        await asyncio.sleep(0)
        time.sleep(2 * _SILENT_S)  # noqa: ASYNC251 - as a paused container: nothing of this process runs
        went_on_s = time.monotonic()
        assert "sent no heartbeat" in await losing
        assert time.monotonic() - went_on_s >= _SILENT_S / 2
        assert child.returncode is not None


async def test_silence_before_the_first_beat_is_borne_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "START_S", 3 * _SILENT_S)
    async with _hanging_process() as (process, _theirs, _child):
        assert await process.lost(_SILENT_S) == "process 0 sent no heartbeat for 1.5 s and was killed"


async def test_silence_after_a_beat_is_borne_for_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "START_S", 600)
    async with _hanging_process() as (process, theirs, _child):
        theirs.sendall(b'["beat", {"phase": "loading"}]\n')
        assert await process.lost(_SILENT_S) == "process 0 sent no heartbeat for 0.5 s and was killed"


async def test_what_it_has_counted_last_stays_though_it_is_asked_at_the_same_time() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    with theirs:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        process = ServerProcess(child, "process 0", ours, _no_figures_server_process)
        theirs.sendall(b'["beat", {"phase": "serving"}]\n')
        await until(lambda: process.serves)
        refreshing = asyncio.create_task(process.refresh())
        kind, number = json.loads(await asyncio.to_thread(theirs.recv, 1 << 10))
        assert kind == "wanted"
        lines = (["figures", number, ["before"]], ["figures", -1, ["last"]])
        theirs.sendall("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        await refreshing
    await process.stop(20)
    assert process.metrics == ["last"]


class _Process:
    """Stands for a server process: ready at once, lost or stopped when the test says so."""

    def __init__(self, *, comes_up: bool = True, lacks: str = "", loads: bool = False) -> None:
        self.ready = comes_up and not lacks and not loads
        self.serves = comes_up and not loads
        self.report = {"degraded": [lacks] if lacks else []}
        self.losing = asyncio.Event()
        self.ending = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.ways: list[str] = []
        if not comes_up:
            self.losing.set()

    async def lost(self, silent_s: float) -> str:
        assert silent_s > 0
        await self.losing.wait()
        return "ended with exit code 1"

    async def stop(self, timeout_s: float) -> None:
        await self._end("stop", timeout_s)

    async def leave(self, timeout_s: float) -> None:
        await self._end("leave", timeout_s)

    async def _end(self, way: str, timeout_s: float) -> None:
        self.ways.append(way)
        self.ending.set()
        async with asyncio.timeout(timeout_s):
            await self.may_end.wait()
        self.ready = self.serves = False


class _Starts:
    """Starts processes and keeps them all."""

    def __init__(self) -> None:
        self.processes: list[_Process] = []
        self.comes_up, self.lacks, self.loads = True, "", False
        self.process_exited: list[tuple[Any, bool]] = []

    async def __call__(self) -> Any:
        self.processes.append(_Process(comes_up=self.comes_up, lacks=self.lacks, loads=self.loads))
        return self.processes[-1]


@asynccontextmanager
async def _running(starts: _Starts) -> AsyncIterator[Worker]:
    worker = Worker(0, starts, stop_s=5, on_exit=lambda process, lost: starts.process_exited.append((process, lost)))
    running = asyncio.create_task(worker.run())
    try:
        await worker.until_serving()
        yield worker
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_restart_replaces_once_and_lets_callers_go_elsewhere() -> None:
    starts = _Starts()
    async with _running(starts) as worker:
        await worker.restart()
        await asyncio.sleep(0.1)
        assert len(starts.processes) == 2
        assert starts.processes[0].ways == ["leave"]
        assert starts.process_exited == [(starts.processes[0], False)]
    assert starts.processes[1].ways == ["stop"]


async def test_a_loss_during_a_restart_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.process.RESTART_BACKOFF", Backoff(0.01, 8.0))
    starts = _Starts()
    async with _running(starts) as worker:
        starts.processes[0].losing.set()  # both are seen in the same turn of the loop
        await worker.restart()
        await asyncio.sleep(0.2)
        assert len(starts.processes) == 2
        assert worker.ready
    assert [lost for _, lost in starts.process_exited] == [True, False]


async def test_one_that_does_not_come_up_ends_the_restart() -> None:
    starts = _Starts()
    async with _running(starts) as worker:
        starts.comes_up = False
        with pytest.raises(RestartError, match="exit code 1"):
            await worker.restart()
        assert "exit code 1" in worker.trouble


async def test_one_that_serves_without_its_backend_ends_the_restart_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradewire_server.processes.server_process.READY_S", 0.2)
    starts = _Starts()
    async with _running(starts) as worker:
        starts.lacks = "triton:8001 is unreachable"
        with pytest.raises(RestartError, match=r"^process 0 serves but has not become ready in 0\.2 s: triton:8001 is"):
            await worker.restart()
        assert worker.serves
        assert len(starts.processes) == 2


async def test_one_that_loads_for_too_long_ends_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.processes.server_process.LOAD_S", 0.2)
    starts = _Starts()
    async with _running(starts) as worker:
        starts.loads = True
        with pytest.raises(RestartError, match=r"^process 0 has been loading for 0\.2 s$"):
            await worker.restart()


async def test_the_end_waits_for_one_that_is_leaving() -> None:
    starts = _Starts()
    async with _running(starts) as worker:
        first = starts.processes[0]
        first.may_end.clear()
        restarting = asyncio.create_task(worker.restart())
        await first.ending.wait()
        restarting.cancel()
        asyncio.get_running_loop().call_later(0.1, first.may_end.set)
    assert starts.process_exited == [(first, False)]
    assert len(starts.processes) == 1
