"""Real gradewire servers out of `.venv`, each a process of its own."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Serving:
    """Where a server is.

    Attributes:
        address: HOST:PORT of gRPC.
        api: Base address of the HTTP API; "" where it has none.
    """

    address: str
    api: str


@contextmanager
def serving(directory: Path, **settings: object) -> Iterator[Serving]:
    """A server over the default encoder, from its start to its end."""
    log_file = directory / "server.log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")}
    named = {"port": 0, "http_port": "", "disk_directory": directory / "store", "drain_s": 0.2, **settings}
    given = {f"GRADEWIRE_{name.upper()}": str(value) for name, value in named.items()}
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [ROOT / ".venv/bin/gradewire", "serve"],
            env=clean | given,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        port = _port(process, log_file, "serving on port ")
        api = f"http://127.0.0.1:{_port(process, log_file, 'HTTP API on port ')}" if "http_api_port" in named else ""
        yield Serving(f"127.0.0.1:{port}", api)
    finally:
        process.terminate()
        process.wait()


def _port(process: subprocess.Popen[bytes], log_file: Path, event: str) -> int:
    give_up = time.monotonic() + _START_S
    while time.monotonic() < give_up and process.poll() is None:
        for line in log_file.read_text().splitlines():
            if line.startswith("{") and (said := json.loads(line)["event"]).startswith(event):
                return int(said.rpartition(" ")[2])
        time.sleep(0.05)
    raise TimeoutError(f"the server did not start: {log_file.read_text()}")
