"""Measure how the HTTP API, its page and tracing slow down gRPC callers.

Four servers run on this machine. The first has everything off. The second has the HTTP API and its page, with an open
live view that polls the server. The third and the fourth also send traces to an OTLP receiver, the third for all calls
and the fourth for the default share. The program sends a warm request to each server in turn, in a new order each time,
so that the machine's load affects all alike. Ratios are medians over the rounds.
"""

import argparse
import http.client
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.common.ports import free_port
from benchmarks.common.servers import start_engine, started
from benchmarks.latency.gateway import SIZES, measure, over_grpc

_GOAL = 1.1
_OFF = "off"
_WAYS = ("HTTP API and page", "and traced, 100 %", "and traced, default")
_SNAPSHOT = "/gradewire.v1.Monitoring/Snapshot"
_LIVE_EVERY_S = 2.0
"""Seconds between snapshots, as in static/live-view.js."""


@contextmanager
def live_view(port: int) -> Iterator[None]:
    """Poll snapshots as a page with a visible live view does.

    Raises:
        RuntimeError: A poll failed.
    """
    ended = threading.Event()
    answered: list[int] = []

    def look() -> None:
        while not ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.request("POST", _SNAPSHOT, "{}", {"content-type": "application/json"})
                answered.append(connection.getresponse().status)
            except OSError:
                answered.append(0)
            finally:
                connection.close()
            ended.wait(_LIVE_EVERY_S)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if set(answered) != {http.client.OK}:
        raise RuntimeError(f"snapshots of port {port} were answered with {answered}")


def report(taken: dict[tuple[str, int], list[float]]) -> None:
    """Print medians and ratios over the whole run, and the ratios in each half."""
    print(
        "| items | way | median | ratio to off | of the run's halves | 95th percentile |\n|---:|---|---:|---:|---|---:|"
    )
    for items in SIZES:
        off = taken[_OFF, items]
        for way in (_OFF, *_WAYS):
            each = taken[way, items]
            ratios = [here / there for here, there in zip(each, off, strict=True)]
            middle = len(ratios) // 2
            halves = " and ".join(f"{statistics.median(half):.2f}" for half in (ratios[:middle], ratios[middle:]))
            tail = statistics.quantiles(each, n=20)[-1]
            print(
                f"| {items} | {way} | {statistics.median(each) * 1e3:.2f} ms | {statistics.median(ratios):.3f} "
                f"| {halves} | {tail * 1e3:.2f} ms |"
            )
    print(f"\nmedians of {len(taken[_OFF, 1])} calls each; goal: ratios <= {_GOAL}")


def main() -> None:
    """Start the servers and the receiver, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400, help="calls of each size and way (default: 400)")
    options = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"load of the machine at the start: {load}", file=sys.stderr)
    with ExitStack() as stack:
        receiver, line = stack.enter_context(started([sys.executable, "-m", "benchmarks.latency.otlp_receiver"]))
        flags = {"judge-backend": "none", "log-level": "warning"}
        traced = {"otlp-endpoint": f"http://127.0.0.1:{line.strip()}"}
        settings = {
            _OFF: flags,
            _WAYS[0]: flags | {"http-api-port": str(free_port())},
            _WAYS[1]: flags | traced | {"http-api-port": str(free_port())},
            _WAYS[2]: flags | traced | {"http-api-port": str(free_port())},
        }
        ways = {}
        for name, given in settings.items():
            os.environ["OTEL_TRACES_SAMPLER_ARG"] = "1" if name == _WAYS[1] else "0.1"
            ways[name] = over_grpc(stack.enter_context(start_engine("embedded", given)).address, stack)
        with ExitStack() as views:
            for given in settings.values():
                if port := given.get("http-api-port"):
                    views.enter_context(live_view(int(port)))
            taken = measure(ways, options.rounds)
        time.sleep(6)  # wait until the last batch of spans is sent
        spans, events = receiver.communicate("")[0].split()
        print(f"the receiver got {spans} spans and {events} events", file=sys.stderr)
    report(taken)


if __name__ == "__main__":
    main()
