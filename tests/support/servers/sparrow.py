"""A real server of decision models: sparrow-decider, with the small model that its package carries."""

import contextlib
import subprocess
import sys
import time
import urllib.request
from types import TracebackType
from typing import Final, Self

from tests.support.servers.server_process import lasting_port

MODEL: Final = "sparrow-nano-general-v1.1"
_START_S: Final = 30.0


class SparrowServer:
    """`with SparrowServer() as server: server.url`.

    Attributes:
        url: Base address, with /v1.
    """

    def __init__(self) -> None:
        self._port = lasting_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts it, on the same port as before if it ran already; returns when it answers."""
        command = (sys.executable, "-m", "sparrow_decider.cli", "--model", MODEL, "serve", "--port", str(self._port))
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + _START_S
        while time.monotonic() < give_up and self._process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url, timeout=5):  # noqa: S310 - our own
                return
            time.sleep(0.05)
        self.kill()
        raise TimeoutError("sparrow-decider did not start")

    def kill(self) -> None:
        """Ends it at once, as a crash would; once more does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
