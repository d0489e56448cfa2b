"""A server process that says nothing is ended, but not for the time in which its supervisor stood still itself."""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.fakes.server_processes import until

from gradewire_server.processes import server_process
from gradewire_server.processes.figures import Families
from gradewire_server.processes.server_process import ServerProcess

_SILENT_S = 0.5


async def _no_figures() -> Families:
    return []


@asynccontextmanager
async def _hanging_process() -> AsyncIterator[tuple[ServerProcess, socket.socket, asyncio.subprocess.Process]]:
    """One that says nothing of its own, its end of the link, and what runs."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    with theirs:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        process = ServerProcess(child, "process 0", ours, _no_figures)
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
        assert "was silent" in await losing
        assert time.monotonic() - went_on_s >= _SILENT_S / 2
        assert child.returncode is not None


async def test_silence_before_the_first_beat_is_borne_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "START_S", 3 * _SILENT_S)
    async with _hanging_process() as (process, _theirs, _child):
        assert await process.lost(_SILENT_S) == "process 0 was silent for 1.5 s and was ended"


async def test_silence_after_a_beat_is_borne_for_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "START_S", 600)
    async with _hanging_process() as (process, theirs, _child):
        theirs.sendall(b'["beat", {"phase": "loading"}]\n')
        assert await process.lost(_SILENT_S) == "process 0 was silent for 0.5 s and was ended"


async def test_what_it_has_counted_last_stays_though_it_is_asked_at_the_same_time() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    with theirs:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        process = ServerProcess(child, "process 0", ours, _no_figures)
        theirs.sendall(b'["beat", {"phase": "serving"}]\n')
        await until(lambda: process.serves)
        refreshing = asyncio.create_task(process.refresh())
        kind, number = json.loads(await asyncio.to_thread(theirs.recv, 1 << 10))
        assert kind == "wanted"
        lines = (["figures", number, ["before"]], ["figures", -1, ["last"]])
        theirs.sendall("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        await refreshing
    await process.stop(20)
    assert process.figures == ["last"]
