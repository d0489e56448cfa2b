"""Measure how the gateway slows down gRPC callers, and how long a call over HTTP takes.

Two servers run on this machine, one with and one without the HTTP API. The program sends a warm request to each server
in turn, in a new order each time, so that the machine's load affects both alike. With --load, other callers use the
gateway without a pause.
"""

import argparse
import http.client
import os
import random
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack

import grpc
from benchmarks.common.ports import free_port
from benchmarks.common.servers import start_engine
from google.protobuf import json_format

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_PATH = "/gradewire.v1.Scoring/Score"
_WARM_UP = 50
SIZES = (1, 32)
_GOAL = 1.1


def request_of(items: int) -> scoring_pb2.ScoreRequest:
    """Return a request to score `items` fixed short answers with SMILE."""
    return scoring_pb2.ScoreRequest(
        items=[
            types_pb2.Item(references=["a cat"], prediction=f"There is a small cat on sill number {number}.")
            for number in range(items)
        ],
        metrics=[types_pb2.MetricSpec(smile=types_pb2.SmileParameters())],
        omit_diagnostics=True,
    )


def over_grpc(address: str, stack: ExitStack) -> Callable[[int], None]:
    """Return a function that sends the given number of items over gRPC."""
    score = scoring_pb2_grpc.ScoringStub(stack.enter_context(grpc.insecure_channel(address))).Score
    requests = {items: request_of(items) for items in SIZES}

    def send(items: int) -> None:
        assert len(score(requests[items], timeout=60).items) == items

    return send


def over_http(port: int, stack: ExitStack) -> Callable[[int], None]:
    """Return a function that sends the given number of items as JSON over an open HTTP connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    stack.callback(connection.close)
    bodies = {items: json_format.MessageToJson(request_of(items)) for items in SIZES}

    def send(items: int) -> None:
        connection.request("POST", _PATH, bodies[items], {"content-type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == http.client.OK

    return send


def keep_calling(port: int, ended: threading.Event) -> None:
    """Call without a pause until `ended` is set."""
    with ExitStack() as stack:
        send = over_http(port, stack)
        while not ended.is_set():
            send(1)


def measure(ways: dict[str, Callable[[int], None]], rounds: int) -> dict[tuple[str, int], list[float]]:
    """Return the seconds of every call, by way and items."""
    taken: dict[tuple[str, int], list[float]] = defaultdict(list)
    source = random.Random(1)  # noqa: S311 - no secret
    for number in range(rounds + _WARM_UP):
        for items in SIZES:
            order = list(ways)
            source.shuffle(order)
            for name in order:
                start_s = time.perf_counter()
                ways[name](items)
                if number >= _WARM_UP:
                    taken[name, items].append(time.perf_counter() - start_s)
    return taken


def report(taken: dict[tuple[str, int], list[float]]) -> None:
    """Print the medians and the promised ratio."""
    print("| items | gRPC, no gateway | gRPC, gateway on | ratio | HTTP |\n|---:|---:|---:|---:|---:|")
    for items in SIZES:
        off, on, web = (statistics.median(taken[name, items]) * 1e3 for name in ("off", "on", "http"))
        print(f"| {items} | {off:.2f} ms | {on:.2f} ms | {on / off:.3f} | {web:.2f} ms |")
    print(f"\nmedians of {len(taken['on', 1])} calls each; goal: ratio <= {_GOAL}")


def main() -> None:
    """Start both servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400, help="calls of each kind and way (default: 400)")
    parser.add_argument("--load", type=int, default=0, help="HTTP callers that never pause (default: none)")
    options = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"load of the machine at the start: {load}; {options.load} HTTP callers without a pause", file=sys.stderr)
    api = free_port()
    with ExitStack() as stack:
        flags = {"judge-backend": "none", "log-level": "warning"}
        off = stack.enter_context(start_engine("embedded", flags))
        on = stack.enter_context(start_engine("embedded", flags | {"http-api-port": str(api)}))
        ways = {
            "off": over_grpc(off.address, stack),
            "on": over_grpc(on.address, stack),
            "http": over_http(api, stack),
        }
        ended = threading.Event()
        callers = [threading.Thread(target=keep_calling, args=(api, ended)) for _ in range(options.load)]
        for caller in callers:
            caller.start()
        try:
            taken = measure(ways, options.rounds)
        finally:
            ended.set()
            for caller in callers:
                caller.join()
    report(taken)


if __name__ == "__main__":
    main()
