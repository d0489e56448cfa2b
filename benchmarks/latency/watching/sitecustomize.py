"""Record how long a Python process's event loop was blocked; Python loads this file if PYTHONPATH has its folder.

A task on the main thread's first event loop repeatedly sleeps for a millisecond and measures holds, the times for which
the loop is blocked. It stores three numbers in the file `HOLDS_DIRECTORY/ROLE-PID` (24 bytes; write zeros to start
again). ROLE is `gateway`, or `server` for all other processes. Each number is a maximum over all holds so far, in
seconds:
- the hold itself, caused by this process, a different thread with the interpreter's lock, or other programs;
- the CPU time of the loop's thread during the hold;
- the CPU time of the whole process during the hold, limited to the hold's length.
"""

import asyncio
import mmap
import os
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

_TICK_S = 0.001
_FIGURES = struct.Struct("ddd")
_run = asyncio.Runner.run
_tasks: list[asyncio.Task[None]] = []


async def _watch(figures: mmap.mmap) -> None:
    while True:
        began_s, cpu_s, own_s = time.perf_counter(), time.thread_time(), time.process_time()
        await asyncio.sleep(_TICK_S)
        held_s = time.perf_counter() - began_s - _TICK_S
        now_s = held_s, time.thread_time() - cpu_s, min(held_s, time.process_time() - own_s)
        _FIGURES.pack_into(figures, 0, *map(max, now_s, _FIGURES.unpack_from(figures)))


def _watched(runner: asyncio.Runner, program: Any, **options: Any) -> Any:
    if not _tasks and threading.current_thread() is threading.main_thread():
        role = "gateway" if "gradewire_gateway.serving" in sys.orig_argv else "server"
        path = Path(os.environ["HOLDS_DIRECTORY"]) / f"{role}-{os.getpid()}"
        path.write_bytes(bytes(_FIGURES.size))
        with path.open("r+b") as file:
            figures = mmap.mmap(file.fileno(), _FIGURES.size)
        _tasks.append(runner.get_loop().create_task(_watch(figures)))
    return _run(runner, program, **options)


if "HOLDS_DIRECTORY" in os.environ:
    asyncio.Runner.run = _watched  # type: ignore[method-assign, assignment] # uvloop.run uses it too
