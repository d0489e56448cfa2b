"""Compare calls per second and CPU of a server with one process and with several, on a machine with few cores.

A client in C sends one recorded request over eight connections to each running server in turn. Every process has all
texts in its memory cache. The program measures calls with one item and with many:
- paced: CPU time per item of all server processes, minus idle CPU time, at a rate that all servers can handle;
- full: CPU time per item including idle time at full speed, and the cores of the server, its busiest Python thread and
  the client. With enough cores, N processes would answer N times as many calls, divided by the ratio of CPU time per
  item.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from benchmarks.common.servers import Server, start_engine
from deploy.local.apt_package import unpacked

from gradewire_proto.v1 import scoring_pb2, types_pb2

_LIBRARIES: Final = ("libnghttp2-14", "libev4", "libjansson4", "libjemalloc2", "libxml2")
_DONE: Final = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded")
_METHOD: Final = "gradewire.v1.Scoring/Score"
_WARM_UP_S: Final = 3
_WARM_CALLS: Final = 200
"""Number of calls after which every process has all texts in memory."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of h2load."""

    calls: int
    cpu_s: float


class H2Load:
    """A sender of one message to one server; the constructor downloads h2load.

    The system spreads the connections over the server's processes. `in_flight` is the number of open calls on each
    connection.
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
        """Send for `duration_s` at a steady rate; 0 calls per second means full speed.

        Raises:
            RuntimeError: h2load or a request failed.
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


@dataclass(frozen=True, slots=True)
class Measured:
    """A server's measured values.

    Attributes:
        cpu_us: CPU microseconds of all server processes per item.
        loop_cores: Cores that the busiest Python thread used.
    """

    calls_per_s: float
    cpu_us: float
    cores: float
    loop_cores: float
    client_cores: float


class Subject:
    """A measured server, which `stack` stops."""

    def __init__(self, stack: ExitStack, processes: int) -> None:
        store = stack.enter_context(TemporaryDirectory())
        flags = {"processes": str(processes), "judge-backend": "none", "disk-directory": store}
        self._server: Server = stack.enter_context(start_engine("embedded", {**flags, "log-level": "warning"}))
        self._idle_cores = 0.0

    def rest(self, duration_s: float) -> float:
        """Measure, store and return the cores that the idle server uses."""
        before_s = self._cpu_s()
        time.sleep(duration_s)
        self._idle_cores = (self._cpu_s() - before_s) / duration_s
        return self._idle_cores

    def warm_up(self, items: int) -> None:
        """Make the server encode the texts; ignore refused calls."""
        client = H2Load(f"http://{self._server.address}/{_METHOD}", request(items))
        while client.send(_WARM_UP_S).calls < _WARM_CALLS:
            pass

    def measure(self, items: int, duration_s: int, calls_per_s: float = 0) -> Measured:
        """Measure the server at a steady rate without idle time; 0 calls per second means full load with idle time."""
        client = H2Load(f"http://{self._server.address}/{_METHOD}", request(items))
        cpu_s, loops_s, went_well, began_s = self._cpu_s(), self._loops_s(), self._went_well(), time.monotonic()
        sent = client.send(duration_s, calls_per_s)
        took_s, cpu_s = time.monotonic() - began_s, self._cpu_s() - cpu_s
        loop_s = max(after_s - loops_s[pid] for pid, after_s in self._loops_s().items())
        calls = self._went_well() - went_well
        if calls < sent.calls or not sent.calls:
            raise RuntimeError(f"{sent.calls - calls:.0f} of {sent.calls} calls failed")
        spent_s = cpu_s - self._idle_cores * took_s if calls_per_s else cpu_s
        return Measured(
            calls / took_s, spent_s / calls / items * 1e6, cpu_s / took_s, loop_s / took_s, sent.cpu_s / took_s
        )

    def _family(self) -> list[psutil.Process]:
        return [self._server.process, *self._server.process.children(recursive=True)]

    def _cpu_s(self) -> float:
        return sum(sum(each.cpu_times()[:2]) for each in self._family())

    def _loops_s(self) -> dict[int, float]:
        """Return the CPU seconds of each process's event loop thread."""
        return {
            each.pid: thread.user_time + thread.system_time
            for each in self._family()
            for thread in each.threads()
            if thread.id == each.pid
        }

    def _went_well(self) -> float:
        return self._server.metric("gradewire_calls_total", method=_METHOD, code="OK")


def request(items: int) -> bytes:
    """Return a request with `items` short items."""
    texts = [
        types_pb2.Item(references=["a cat", f"{row} cats"], prediction=f"{row} small cats") for row in range(items)
    ]
    metric = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
    return scoring_pb2.ScoreRequest(items=texts, metrics=[metric]).SerializeToString()


def median(rounds: Sequence[Measured]) -> Measured:
    """Return the median of each value."""
    return Measured(*(statistics.median(getattr(each, field.name) for each in rounds) for field in fields(Measured)))


def main() -> None:
    """Print a row for each measurement, then results from the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--items", type=int, nargs="+", default=[1, 64], help="numbers of items in a call")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration-s", type=int, default=5, help="seconds of each measurement")
    parser.add_argument(
        "--share", type=float, default=0.4, help="rate of paced calls, relative to the first server at full load"
    )
    options = parser.parse_args()
    with ExitStack() as stack:
        subjects = {count: Subject(stack, count) for count in options.processes}
        for count, subject in subjects.items():
            print(f"{count} processes without calls: {subject.rest(options.duration_s):.3f} cores")
        print("| items | | processes | calls/s | µs an item | server, cores | its loop | client, cores | load |")
        print("|---|---|---|---|---|---|---|---|---|")
        for items in options.items:
            compare(subjects, items, options)


def compare(subjects: dict[int, Subject], items: int, options: argparse.Namespace) -> None:
    """Compare all servers with calls of `items` items."""
    for subject in subjects.values():
        subject.warm_up(items)
    rates = [subject.measure(items, options.duration_s).calls_per_s for subject in subjects.values()]
    found: dict[tuple[str, int], list[Measured]] = defaultdict(list)
    for _ in range(options.rounds):
        for way, calls_per_s in (("paced", options.share * rates[0]), ("full", 0.0)):
            for count, subject in subjects.items():
                found[way, count].append(subject.measure(items, options.duration_s, calls_per_s))
                _print(f"{items} | {way} | {count}", found[way, count][-1])
    medians = {key: median(rounds) for key, rounds in found.items()}
    for (way, count), row in medians.items():
        _print(f"{items} | **{way}, median** | {count}", row)
    first, *others = subjects
    for count in others:
        paced, full = (medians[way, count].cpu_us / medians[way, first].cpu_us for way in ("paced", "full"))
        calls = medians["full", count].calls_per_s / medians["full", first].calls_per_s
        cores = medians["full", count].cores / medians["full", first].cores
        print(
            f"{items} items a call, {count} processes against {first}: measured {paced:.2f} x the CPU for an item when "
            f"paced, {full:.2f} x at full load, with {cores:.2f} x the cores for {calls:.2f} x the calls; "
            f"derived {count / first / full:.2f} x the calls with enough cores",
            flush=True,
        )


def _print(begin: str, row: Measured) -> None:
    print(
        f"| {begin} | {row.calls_per_s:.0f} | {row.cpu_us:.1f} | {row.cores:.2f} | {row.loop_cores:.2f} | "
        f"{row.client_cores:.2f} | {os.getloadavg()[0]:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
