"""Starts programs as forks of `fork_server`, which has imported the server: its imports are most of a start's work.

The process that runs the tests has threads, which a fork would lose. So the first program starts another process, and
each program runs in a fork of that one, with files, environment and signals of its own.
"""

import atexit
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

FORK_SERVER: Final = "tests.support.servers.fork_server"
_ROOT: Final = Path(__file__).resolve().parents[3]


class ForkedProcess:
    """A program that runs in a fork. It has those methods of `subprocess.Popen` that tests use.

    Attributes:
        pid: Number of its process.
        returncode: Its exit code, the negative number of the signal that ended it, or None while it runs.
    """

    def __init__(self, pid: int, ends: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._ends, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0)
            self.returncode = int(self._ends.recv(64))
            self._ends.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def start(program: str, *, environment: Mapping[str, str], output: int) -> ForkedProcess:
    """Run a program in a fork, in the directory of this process and without input.

    Args:
        program: Its text, as for `python -c`.
        environment: Its whole environment.
        output: The file descriptor for its output and its errors.
    """
    request = json.dumps({"program": program, "environment": dict(environment), "directory": str(Path.cwd())})
    ends, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with telling:
        socket.send_fds(_fork_server(), [request.encode()], [output, telling.fileno()])
    return ForkedProcess(int(ends.recv(64)), ends)


@functools.cache
def _fork_server() -> socket.socket:
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        process = subprocess.Popen(
            [sys.executable, "-m", FORK_SERVER, str(other.fileno())],
            cwd=_ROOT,
            pass_fds=(other.fileno(),),
            stdin=subprocess.DEVNULL,
        )

    @atexit.register
    def end() -> None:
        own.close()
        process.wait()

    return own
