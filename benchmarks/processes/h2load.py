"""One recorded gRPC request, sent again and again by h2load: a client in C that takes little of the cores.

h2load is Debian's, fetched without being installed. It looks at HTTP's status alone, which is 200 for whatever gRPC
says, so callers compare its count with the server's own count of calls that went well.
"""

import os
import re
import resource
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Final

from deploy.local.apt_package import unpacked

_LIBRARIES: Final = ("libnghttp2-14", "libev4", "libjansson4", "libjemalloc2", "libxml2")
_DONE: Final = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded")


@dataclass(frozen=True, slots=True)
class Sent:
    """What h2load did.

    Attributes:
        calls: That were answered.
        cpu_s: CPU time that it took itself, seconds.
    """

    calls: int
    cpu_s: float


class H2Load:
    """Sends one message to one server; fetches the program when it is made.

    Args:
        url: http://HOST:PORT/SERVICE/METHOD.
        message: The request.
        connections: How many it opens; the system spreads them over the processes of a server.
        in_flight: Calls of each connection at a time.
    """

    def __init__(self, url: str, message: bytes, *, connections: int = 8, in_flight: int = 8) -> None:
        tree = unpacked("nghttp2-client", *_LIBRARIES)
        self._program = tree / "usr/bin/h2load"
        self._environment = {**os.environ, "LD_LIBRARY_PATH": str(tree / "usr/lib/x86_64-linux-gnu")}
        self._url = url
        self._frame = b"\0" + len(message).to_bytes(4, "big") + message
        self._connections = connections
        self._in_flight = in_flight

    def send(self, duration_s: int, calls_per_s: float = 0) -> Sent:
        """Sends for so long, at a steady rate, or as fast as answers come (0).

        Raises:
            RuntimeError: A request failed, or the program did.
        """
        with tempfile.NamedTemporaryFile(suffix=".grpc") as body:
            body.write(self._frame)
            body.flush()
            command = [self._program, "-c", self._connections, "-m", self._in_flight, "-D", duration_s, "-d", body.name]
            command += [f"--rps={calls_per_s / self._connections:.3f}"] if calls_per_s else []
            command += ["-H", "content-type: application/grpc", "-H", "te: trailers", self._url]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                list(map(str, command)), env=self._environment, capture_output=True, text=True, check=False
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = _DONE.search(done.stdout)
        if done.returncode or found is None:
            raise RuntimeError(f"h2load ended with {done.returncode}: {done.stdout} {done.stderr}")
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Sent(int(found[2]), cpu_s)
