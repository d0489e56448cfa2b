"""Where the event loop has too much to do, calls end soon, refused or cancelled, and none runs out of time."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.load.frames import FramedConnection
from benchmarks.load.generator import SCORE, Texts

_PROGRAM = """
import asyncio, sys, time
import uvloop
from tests.support.servers.wire import wire_server

async def hold():
    while True:
        time.sleep(0.02)  # every round of the loop takes so long, whatever the calls need
        await asyncio.sleep(0)

async def main():
    async with wire_server() as wire:
        print(wire.port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        holding = asyncio.create_task(hold())
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        holding.cancel()

uvloop.run(main())
"""
_ROOT = Path(__file__).resolve().parents[3]
_DEADLINE_S = 30.0
_CALLS = 1024


@pytest.fixture
def server() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.fspath(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
            process.communicate(b"\n", timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0


async def test_no_call_runs_out_of_time_while_the_loop_is_held(server: "subprocess.Popen[bytes]") -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    port = int(server.stdout.readline())
    connections = [await FramedConnection.open(SCORE, f"127.0.0.1:{port}", _DEADLINE_S) for _ in range(8)]
    request = Texts().next()
    assert (await connections[0].call(request)).code == "OK", "from here on its answer is in the cache"
    server.stdin.write(b"\n")
    server.stdin.flush()
    assert await asyncio.to_thread(server.stdout.readline) == b"held\n"
    calls = [connections[number % len(connections)].call(request) for number in range(_CALLS)]
    ended = await asyncio.gather(*calls)
    for connection in connections:
        connection.close()
    codes = Counter(each.code for each in ended)
    assert set(codes) <= {"OK", "RESOURCE_EXHAUSTED", "CANCELLED"}, codes
    assert codes["OK"] > 0, codes
    assert all(each.hinted for each in ended if each.code == "RESOURCE_EXHAUSTED")
