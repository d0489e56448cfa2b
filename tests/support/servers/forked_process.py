"""Starts programs as forks of `fork_server`, which has imported the server: its imports are most of a start's work.

The process that runs the tests has threads, which a fork would lose. So the first program starts another process, and
each program runs in a fork of that one, with files, environment and signals of its own. The modules that a forked
server starts are forks as well.
"""

import asyncio
import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

FORK_SERVER: Final = "tests.support.servers.fork_server"
_ROOT: Final = Path(__file__).resolve().parents[3]
_ANSWER_BYTES: Final = 1 << 16


class ForkedProcess:
    """A program that runs in a fork. It has those methods of `subprocess.Popen` that tests use.

    Attributes:
        pid: Number of its process.
        returncode: Its exit code, the negative number of the signal that ended it, or None while it runs.
    """

    def __init__(self, ends: socket.socket) -> None:
        self.pid = int(ends.recv(_ANSWER_BYTES))
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
            self.returncode = _end_code(self._ends)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class ForkedModule:
    """A module that runs in a fork, for an event loop. It has what `SupervisedProcess` uses of asyncio's `Process`."""

    def __init__(
        self, pid: int, ends: socket.socket, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._loop.add_reader(ends.fileno(), self._end)

    async def wait(self) -> int:
        """Wait for the end and return the exit code."""
        code: int = await asyncio.shield(self._ended)
        return code

    def _end(self) -> None:
        self._loop.remove_reader(self._ends.fileno())
        self.returncode = _end_code(self._ends)
        self.stdin.close()
        self._ended.set_result(self.returncode)


def _end_code(ends: socket.socket) -> int:
    """Read the exit code. A fork server that is killed tells of no end any more, and the system kills nobody then."""
    with ends:
        return int(ends.recv(_ANSWER_BYTES) or b"-9")


def start(program: str, *, environment: Mapping[str, str], output: int) -> ForkedProcess:
    """Run a program in a fork, in the directory of this process.

    Args:
        program: Its text, as for `python -c`.
        environment: Its whole environment.
        output: The file descriptor for its output and its errors.
    """
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - its descriptor is what is needed
        return ForkedProcess(
            _ask({"program": program, "environment": dict(environment)}, {0: nothing.fileno(), 1: output, 2: output})
        )


async def start_module(
    module: str,
    descriptor: int,
    *others: int,
    stdout: int | None = None,
    stderr: int | None = None,
    settings: bool = False,
) -> ForkedModule:
    """Do what `gradewire_server.process.start_module` does, with a fork."""
    environment = {
        name: value for name, value in os.environ.items() if settings or not name.upper().startswith("GRADEWIRE_")
    }
    ours, theirs = socket.socketpair()
    with theirs:
        given = {0: theirs.fileno(), 1: 1, 2: 2, **{each: each for each in (descriptor, *others)}}
        if stdout is not None:
            given[1] = theirs.fileno()
        if stderr is not None:
            given[2] = given[1]
        asked = {"module": module, "arguments": [str(descriptor)], "environment": environment, "owner": os.getpid()}
        ends = _ask(asked, given)
    ends.setblocking(False)  # noqa: FBT003 - the name of the parameter is the function's
    loop = asyncio.get_running_loop()
    pid = int(await loop.sock_recv(ends, _ANSWER_BYTES))
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    return ForkedModule(pid, ends, writer, reader)


def modules_of(owner: int) -> Sequence[tuple[int, str]]:
    """Processes that a forked program has started and that run: number and module, in the order of their start."""
    with _ask({"modules_of": owner}, {}) as answers:
        found: list[tuple[int, str]] = json.loads(answers.recv(_ANSWER_BYTES))
        return found


_asking: socket.socket | None = None


def ask_through(connection: socket.socket) -> None:
    """Use this connection to a fork server that runs already."""
    global _asking  # noqa: PLW0603 - a process has one
    _asking = connection


def _ask(asked: Mapping[str, Any], descriptors: Mapping[int, int]) -> socket.socket:
    """Send a request, and descriptors by their numbers in the fork. Return the socket to read answers from."""
    if _asking is None:
        ask_through(_start_fork_server())
    request = json.dumps({"directory": str(Path.cwd()), "descriptors": list(descriptors), **asked})
    answers, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert _asking is not None
    with answering:
        socket.send_fds(_asking, [request.encode()], [answering.fileno(), *descriptors.values()])
    return answers


def _start_fork_server() -> socket.socket:
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
