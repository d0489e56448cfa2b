"""A real server in a process of its own, on free ports."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from tests.support.servers import forked_process
from tests.support.servers.forked_process import ForkedProcess

PROGRAM = """
import sys
from gradewire_server.settings.server import Settings
settings = Settings.load()
if settings.processes.count > 1:
    from gradewire_server.processes.supervisor import run
    arguments = (settings, {})
else:
    from gradewire_server.app import run
    arguments = (settings,)
sys.exit(run(*arguments))
"""
_START_S = 60.0


def lasting_port() -> int:
    """A free port of 127.0.0.1 that nobody gets by chance, so that a server can come back to it.

    While nobody listens at a port for outgoing connections, one may get it: even a client that looks for that server.
    """
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    candidates = [*range(10_000, lowest), *range(highest + 1, 65_536)] or range(10_000, 65_536)
    while True:
        port = secrets.choice(candidates)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class ServerProcess:
    """`with ServerProcess(tmp_path) as server: server.address`. It is a fork of a process that has imported it.

    Args:
        directory: Where its log and, unless a setting says otherwise, its store lie.
        settings: By name; those in force can be read as `settings`.
    """

    program: ClassVar[str] = PROGRAM

    def __init__(self, directory: Path, **settings: Any) -> None:
        self._log = directory / "server.log"
        self.settings = {
            "port": 0,
            "http_port": 0,
            "disk_directory": directory / "store",
            "drain_s": 0.2,
            "grace_s": 20,
            # Each new store would get a new 8-bit graph, which takes seconds to write.
            "window_choice": "fp32",
            # For lone runs on several cores, each graph would be opened once more.
            "lone_run_threads": 1,
            **settings,
        }
        self._process: ForkedProcess | subprocess.Popen[bytes] | None = None
        self.port = 0
        self.http_port = 0
        self.api_port = 0

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._running.pid

    @property
    def api(self) -> str:
        """Base address of the HTTP API, where one was asked for."""
        return f"http://127.0.0.1:{self.api_port}"

    @property
    def address(self) -> str:
        """HOST:PORT of gRPC."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        self.wait_until_serving()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts the process and does not wait."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")}
        given = {f"GRADEWIRE_{name.upper()}": str(value) for name, value in self.settings.items()}
        with self._log.open("wb") as log:
            self._process = self._started(clean | given, log.fileno())

    def _started(self, environment: Mapping[str, str], output: int) -> ForkedProcess | subprocess.Popen[bytes]:
        return forked_process.start(self.program, environment=environment, output=output)

    def wait_until_serving(self) -> None:
        """Waits for the log to say so, and reads the ports from it."""
        self.port = int(self.wait_for_event("serving on port ").rpartition(" ")[2])
        http = [line["event"] for line in self.log() if line["event"].startswith("HTTP on port ")]
        self.http_port = int(http[0].rpartition(" ")[2]) if http else 0
        api = [line["event"] for line in self.log() if line["event"].startswith("HTTP API on port ")]
        self.api_port = int(api[0].rpartition(" ")[2]) if api else 0

    def wait_for_event(self, start: str) -> str:
        """Waits for a log line whose event starts so; returns the event."""
        give_up = time.monotonic() + _START_S
        while time.monotonic() < give_up:
            ended = self._running.poll()
            for line in self.log():
                if line["event"].startswith(start):
                    event: str = line["event"]
                    return event
            if ended is not None:
                break
            time.sleep(0.02)
        raise TimeoutError(f"no {start!r} in: {self._log.read_text()}")

    def log(self) -> list[dict[str, Any]]:
        """All lines written so far, a torn last one and those of gRPC's C++ core left out."""
        text = self.log_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines() if line.startswith("{")]

    def log_text(self) -> str:
        """All that it has written so far to its log, its standard output and its standard error."""
        return self._log.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._running.send_signal(number)

    def wait(self, timeout_s: float = 30.0) -> int:
        """Waits for the end; returns the exit code."""
        return self._running.wait(timeout_s)

    def kill(self) -> None:
        """Ends it at once if it still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def http(self, path: str) -> tuple[int, Mapping[str, Any]]:
        """GET of a JSON page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def samples(self) -> Mapping[str, float]:
        """What /metrics says, by name with labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    @property
    def _running(self) -> ForkedProcess | subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


class FreshServerProcess(ServerProcess):
    """A server in a Python that was started for it, whose memory is its own alone."""

    def _started(self, environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", self.program]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
