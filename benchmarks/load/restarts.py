"""Measure how scoring slows down a training loop with a running and with a dead server, and count lost results.

A step hashes a fixed number of bytes on one core without Python's lock, like a training step on an accelerator. Each
round has three blocks of steps: without scoring, with one submission per step to a running server on the same cores,
and with one submission per step to a killed server. Ratios compare median times with and without scoring.
"""

import argparse
import hashlib
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common.ports import free_port
from benchmarks.common.servers import GRADEWIRE

from gradewire import Client, ScoreReport, TransportError

_ROWS_PER_STEP = 4
_METRICS = "smile,exact_match"


@dataclass
class Loop:
    """The training loop, with the seconds of its steps and `submit` calls by kind of block."""

    client: Client
    step_bytes: bytes
    steps_s: dict[str, list[float]] = field(default_factory=lambda: {"without": [], "up": [], "dead": []})
    submits_s: dict[str, list[float]] = field(default_factory=lambda: {"up": [], "dead": []})
    futures: list[Future[ScoreReport]] = field(default_factory=list)

    def run(self, way: str, steps: int) -> None:
        """Run a block of steps."""
        for _ in range(steps):
            began = time.perf_counter()
            hashlib.blake2b(self.step_bytes)
            if way != "without":
                rows, submitting = self._rows(), time.perf_counter()
                self.futures.append(self.client.submit(rows, _METRICS))
                self.submits_s[way].append(time.perf_counter() - submitting)
            self.steps_s[way].append(time.perf_counter() - began)

    def _rows(self) -> list[dict[str, object]]:
        step = len(self.futures)
        return [
            {"references": ["a cat", f"{step % 97} cats"], "prediction": f"{(step + row) % 89} small kittens"}
            for row in range(_ROWS_PER_STEP)
        ]


def main() -> None:
    """Run the rounds; print steps, ratios and the results of all futures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60, help="steps of each block")
    parser.add_argument("--step-mb", type=int, default=10, help="megabytes hashed in a step; 10 take about 10 ms")
    arguments = parser.parse_args()
    load_before = os.getloadavg()
    with TemporaryDirectory() as directory:
        address = f"127.0.0.1:{free_port()}"
        with Client(address) as client:
            loop = Loop(client, bytes(arguments.step_mb * 1_000_000))
            for _ in range(arguments.rounds):
                with _server(address, Path(directory)):
                    _reached(client)
                    client.flush(120)
                    loop.run("without", arguments.steps)
                    loop.run("up", arguments.steps)
                loop.run("dead", arguments.steps)
                # The first block has no submissions, so the dead server's backlog does not slow down the next server.
            with _server(address, Path(directory)):
                everything = client.flush(120)
    medians = {way: statistics.median(steps) for way, steps in loop.steps_s.items()}
    for way, steps in loop.steps_s.items():
        ratio = medians[way] / medians["without"]
        print(f"{way:8} {len(steps)} steps, median {medians[way] * 1e3:.2f} ms, ratio {ratio:.3f}", end="")
        submits = loop.submits_s.get(way)
        print(f", submit() {statistics.median(submits) * 1e6:.0f} µs" if submits else "")
    failed = [future for future in loop.futures if not future.done() or future.exception(0) is not None]
    print(
        f"{arguments.rounds} kills, {len(loop.futures)} futures, {len(failed)} lost or failed, "
        f"all flushed: {everything}, load before {load_before[0]:.1f}, after {os.getloadavg()[0]:.1f}"
    )


@contextmanager
def _server(address: str, directory: Path) -> Iterator[None]:
    port = address.rpartition(":")[2]
    flags = ["--port", port, "--http-port", "0", "--disk-directory", str(directory / "store"), "--drain-s", "0"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([GRADEWIRE, "serve", *flags], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _reached(client: Client) -> None:
    for _ in range(4):
        try:
            client.models()
        except TransportError:
            continue
        return
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
