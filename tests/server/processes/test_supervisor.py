"""A restart of all processes in turn is not kept waiting by what it is to mend."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from gradewire_server.processes.slot import Slot
from gradewire_server.processes.supervisor import _restart_all


class _Process:
    """Has come up and lacks its backend, as its settings lead to none, unless it was started with others."""

    serves = True

    def __init__(self, *, ready: bool) -> None:
        self.ready = ready

    async def lost(self, _silent_s: float) -> str:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def stop(self, _timeout_s: float) -> None:
        self.ready = self.serves = False

    leave = stop


async def test_processes_without_their_backend_are_replaced_by_ones_that_have_it() -> None:
    started: list[_Process] = []

    async def start() -> Any:
        started.append(_Process(ready=len(started) >= 2))
        return started[-1]

    slots = [Slot(index, start, stop_s=5, ended=lambda *_: None) for index in range(2)]
    running = [asyncio.create_task(slot.run()) for slot in slots]
    try:
        async with asyncio.timeout(30):
            for slot in slots:
                await slot.until_serving()
            await _restart_all(cast("Any", SimpleNamespace(slots=slots, every_slot=slots)))
        assert len(started) == 4
        assert all(slot.ready for slot in slots)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
