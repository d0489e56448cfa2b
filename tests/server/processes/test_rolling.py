"""A rolling restart does not wait for the process that it is to mend, and starts over on a further request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.fakes.server_processes import FakeServerProcess, until

from gradewire_server.processes.rolling import restart_all, restart_whenever
from gradewire_server.processes.slot import Slot


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
    """All processes as `Whole` has them, when each has been started."""
    slots = [Slot(n, lambda n=n: starts(n), stop_s=5, ended=lambda *_: None) for n in range(2)]  # type: ignore[misc]
    running = [asyncio.create_task(slot.run()) for slot in slots]
    try:
        async with asyncio.timeout(30):
            await until(lambda: len(starts.processes) == 2)
            yield SimpleNamespace(slots=slots, judge_host=None)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def test_processes_without_their_backend_are_replaced_by_ones_that_have_it() -> None:
    starts = _Starts()
    starts.lacks = "triton is unreachable"
    async with _running(starts) as whole:
        starts.lacks = ""
        await restart_all(whole)
        assert len(starts.processes) == 4
        assert all(slot.ready for slot in whole.slots)


async def test_one_that_still_loads_is_replaced_first_and_not_waited_for() -> None:
    starts = _Starts()
    async with _running(starts) as whole:
        starts.processes[1][1].report["phase"] = "loading"
        await restart_all(whole)
        assert [index for index, _ in starts.processes] == [0, 1, 1, 0]
        assert all(slot.ready for slot in whole.slots)


async def test_a_restart_that_ends_says_which_process_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.slot.READY_S", 0.2)
    starts = _Starts()
    async with _running(starts) as whole:
        starts.lacks = "triton is unreachable"
        await restart_all(whole)
        assert len(starts.processes) == 3, "the second one goes on as it is"
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    for part in ("process 0 serves", "in 0.2 s: triton is unreachable", "send SIGHUP again"):
        assert part in said


async def test_a_further_request_cancels_a_waiting_restart_and_starts_over_with_the_current_settings() -> None:
    starts, wanted = _Starts(), asyncio.Event()
    async with _running(starts) as whole:
        restarting = asyncio.create_task(restart_whenever(wanted, whole))
        try:
            starts.lacks = "triton is unreachable"
            wanted.set()
            await until(lambda: len(starts.processes) == 3 and whole.slots[0].serves)
            starts.lacks = ""
            wanted.set()
            await until(lambda: len(starts.processes) == 5 and all(slot.ready for slot in whole.slots))
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
            await until(lambda number=number: caplog.text.count("ended by a defect") == number)
    finally:
        restarting.cancel()
        await asyncio.wait((restarting,))
