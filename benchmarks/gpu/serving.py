"""A server of gradewire in a process of its own."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

START_S: Final = 120
STOP_S: Final = 30


@contextmanager
def serving(repository: Path, flags: Mapping[str, str], *, start_s: float = START_S) -> Iterator[str]:
    """Starts a server and stops it.

    Args:
        repository: Of built models.
        flags: Of `gradewire serve`, without their dashes.
        start_s: Longest wait for it.

    Yields:
        HOST:PORT of it.

    Raises:
        RuntimeError: It does not start; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory() as store:
        several = int(flags.get("processes", "1")) > 1  # they need a store that all of them see
        every = {
            "port": "0",
            "http-port": "0",
            "disk-directory": store if several else "",
            "drain-s": "0",
            "judge-backend": "none",
            "model-repository": str(repository),
        }
        command = [sys.executable, "-c", "from gradewire_cli import main; main()", "serve"]
        command += [text for name, value in {**every, **flags}.items() for text in (f"--{name}", value)]
        with (
            tempfile.TemporaryFile("w+") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
        ):
            too_late = Timer(start_s, server.kill)
            too_late.start()
            try:
                assert server.stdout is not None
                line = server.stdout.readline()
                too_late.cancel()
                if not line:
                    server.wait(STOP_S)
                    log.seek(0)
                    raise RuntimeError(f"the server does not start: {log.read()[-300:]}")
                yield f"127.0.0.1:{line.rsplit(':', 1)[1].split()[0]}"
            finally:
                too_late.cancel()
                server.terminate()
                try:
                    server.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    server.kill()
