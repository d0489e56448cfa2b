"""The place of a process: what is lost is replaced, a restart replaces once, and nothing outlives the slot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.processes.slot import RestartError, Slot


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
        self.ended: list[tuple[Any, bool]] = []

    async def __call__(self) -> Any:
        self.processes.append(_Process(comes_up=self.comes_up, lacks=self.lacks, loads=self.loads))
        return self.processes[-1]


@asynccontextmanager
async def _running(starts: _Starts) -> AsyncIterator[Slot]:
    slot = Slot(0, starts, stop_s=5, ended=lambda process, lost: starts.ended.append((process, lost)))
    running = asyncio.create_task(slot.run())
    try:
        await slot.until_serving()
        yield slot
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_restart_replaces_once_and_lets_callers_go_elsewhere() -> None:
    starts = _Starts()
    async with _running(starts) as slot:
        await slot.restart()
        await asyncio.sleep(0.1)
        assert len(starts.processes) == 2
        assert starts.processes[0].ways == ["leave"]
        assert starts.ended == [(starts.processes[0], False)]
    assert starts.processes[1].ways == ["stop"]


async def test_a_loss_during_a_restart_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.concurrency.supervised._BACKOFF", Backoff(base_s=0.01))
    starts = _Starts()
    async with _running(starts) as slot:
        starts.processes[0].losing.set()  # both are seen in the same turn of the loop
        await slot.restart()
        await asyncio.sleep(0.2)
        assert len(starts.processes) == 2
        assert slot.ready
    assert [lost for _, lost in starts.ended] == [True, False]


async def test_one_that_does_not_come_up_ends_the_restart() -> None:
    starts = _Starts()
    async with _running(starts) as slot:
        starts.comes_up = False
        with pytest.raises(RestartError, match="exit code 1"):
            await slot.restart()
        assert "exit code 1" in slot.trouble


async def test_one_that_serves_without_its_backend_ends_the_restart_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradewire_server.processes.slot.READY_S", 0.2)
    starts = _Starts()
    async with _running(starts) as slot:
        starts.lacks = "triton:8001 is unreachable"
        with pytest.raises(RestartError, match=r"^process 0 serves and has not become ready in 0\.2 s: triton:8001 is"):
            await slot.restart()
        assert slot.serves
        assert len(starts.processes) == 2


async def test_one_that_loads_for_too_long_ends_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.processes.slot.LOAD_S", 0.2)
    starts = _Starts()
    async with _running(starts) as slot:
        starts.loads = True
        with pytest.raises(RestartError, match=r"^process 0 has been loading for 0\.2 s$"):
            await slot.restart()


async def test_the_end_waits_for_one_that_is_leaving() -> None:
    starts = _Starts()
    async with _running(starts) as slot:
        first = starts.processes[0]
        first.may_end.clear()
        restarting = asyncio.create_task(slot.restart())
        await first.ending.wait()
        restarting.cancel()
        asyncio.get_running_loop().call_later(0.1, first.may_end.set)
    assert starts.ended == [(first, False)]
    assert len(starts.processes) == 1
