"""`gradewire bench load` against a server that a benchmark started."""

import subprocess
from typing import Final

from benchmarks.common.command import GRADEWIRE
from benchmarks.common.servers import Server

# The server broke a promise at twice the knee, or the client was the bottleneck: the JSON says which.
_FOUND: Final = {0, 4}


def bench_load(server: Server, *arguments: object) -> None:
    """Runs it, arguments as `str` writes them; where it cannot measure, ends the program with its exit code."""
    at = ("--server", server.address, "--metrics-url", f"{server.http}/metrics")
    code = subprocess.run([GRADEWIRE, "bench", "load", *at, *map(str, arguments)], check=False).returncode
    if code not in _FOUND:
        raise SystemExit(code)
