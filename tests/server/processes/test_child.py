"""The process of a server around its event loop."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from prometheus_client import enable_created_metrics

from gradewire_server.process import Stop
from gradewire_server.processes.child import run_to_exit
from gradewire_server.rpc.log import FloodFilter


@pytest.fixture(autouse=True)
def usual_log() -> Iterator[None]:
    """Later tests read the log as pytest has it, and creation times as prometheus-client has them."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    enable_created_metrics()


@pytest.fixture(autouse=True)
def handlers() -> Iterator[list[object]]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield before
    assert [signal.getsignal(number) for number in numbers] == before


def test_signals_stop_the_loop_and_are_afterwards_what_they_were(handlers: list[object]) -> None:
    seen = []

    async def serve(_flood: FloodFilter) -> None:
        stop = Stop()
        stop.listen(lambda: None)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.requested.wait(), 10)
        seen.append(signal.getsignal(signal.SIGTERM))

    assert run_to_exit(serve, "error") == 0
    assert seen != [handlers[1]]


def test_an_error_of_the_system_is_an_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    async def serve(_flood: FloodFilter) -> None:
        raise OSError("the port is taken")

    assert run_to_exit(serve, "error") == 1
    assert "the port is taken" in capfd.readouterr().err


def test_its_end_looks_through_no_imported_object() -> None:
    program = (
        "import asyncio, atexit, gc\n"
        "from gradewire_server.processes.child import run_to_exit\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "run_to_exit(lambda flood: asyncio.sleep(0), 'error')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
