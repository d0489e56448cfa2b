"""A server process that says nothing is ended, but not for the time in which its supervisor stood still itself."""

import asyncio
import socket
import sys
import time

import pytest

from gradewire_server.processes import server_process
from gradewire_server.processes.figures import Families
from gradewire_server.processes.server_process import ServerProcess

_SILENT_S = 0.5


async def _no_figures() -> Families:
    return []


async def test_silence_while_the_supervisor_was_paused_is_none_of_the_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_process, "_PAUSED_S", 0.3)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    with theirs:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        process = ServerProcess(child, "process 0", ours, _no_figures)
        try:
            losing = asyncio.create_task(process.lost(_SILENT_S))
            await asyncio.sleep(0)
            time.sleep(2 * _SILENT_S)  # noqa: ASYNC251 - as a paused container: nothing of this process runs
            went_on_s = time.monotonic()
            assert "was silent" in await losing
            assert time.monotonic() - went_on_s >= _SILENT_S / 2
            assert child.returncode is not None
        finally:
            await process.kill()
