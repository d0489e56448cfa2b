"""Measure the server's CPU time for a warm item by metric, with short and verbose answers, in batches and alone.

One server replies with remembered results. The other (`remembered_results_max_bytes 0`) computes every score again from
cached vectors. Times are CPU time of the server process, which hardly depends on the machine's load.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from benchmarks.common.rows import DEFAULT_DATA, Row, read_rows
from benchmarks.common.servers import Server, cpu_s, start_engine
from benchmarks.latency.payloads import pick

from gradewire.metrics.choice import parse_metric_line
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

METRICS: Final = ("exact_match", "smile", "smile:fast", "smile:one_pass", "correctness", "smile,correctness")
_BATCH: Final = 64
_WORDS: Final = {"short": range(1, 7), "verbose": range(30, 60)}
_SERVERS: Final = {"remembered": {}, "computed": {"remembered-results-max-bytes": "0"}}
_WARM_UP: Final = 6


@dataclass(frozen=True)
class Kind:
    """A kind of calls: metric identifiers, a key in `_WORDS`, and the number of items (0 for an empty call)."""

    metrics: str
    answers: str
    items: int


def request_of(kind: Kind, rows: Mapping[str, Sequence[Row]]) -> scoring_pb2.ScoreRequest:
    """Return the request to send repeatedly."""
    items = [
        types_pb2.Item(
            id=row["id"], question=row["question"], references=row["references"], prediction=row["prediction"]
        )
        for row in rows[kind.answers][: kind.items]
    ]
    specs = [parse_metric_line(line).to_spec() for line in kind.metrics.split(",")]
    return scoring_pb2.ScoreRequest(items=items, metrics=specs)


class Target:
    """A server, a connection to it, and its CPU seconds for the calls."""

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self._pid = server.process.pid
        channel = stack.enter_context(grpc.insecure_channel(server.address))
        self._score = scoring_pb2_grpc.ScoringStub(channel).Score
        self.used_s: dict[Kind, float] = defaultdict(float)
        self.calls: dict[Kind, int] = defaultdict(int)

    def send(self, kind: Kind, request: scoring_pb2.ScoreRequest, calls: int, *, counted: bool) -> None:
        """Send a request `calls` times; exit if a result is not OK."""
        before_s = cpu_s(self._pid)
        for _ in range(calls):
            reply = self._score(request, timeout=60)
        if counted:
            self.used_s[kind] += cpu_s(self._pid) - before_s
            self.calls[kind] += calls
        failed = [result for item in reply.items for result in item.results if result.status != types_pb2.STATUS_OK]
        if failed or len(reply.items) != kind.items:
            raise SystemExit(f"{kind}: {failed[:1] or 'items are missing'}")

    def cost_us(self, kind: Kind) -> float:
        """Return the CPU microseconds for an item, or for an empty call."""
        return self.used_s[kind] / self.calls[kind] / max(1, kind.items) * 1e6


def main() -> None:
    """Start both servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument(
        "--metrics", default=";".join(METRICS), help="metrics of a call, with ';' between (default: %(default)s)"
    )
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--batch-calls", type=int, default=40, help="calls with 64 items in a block")
    parser.add_argument("--single-calls", type=int, default=300, help="calls with one item or none in a block")
    arguments = parser.parse_args()
    data = list(read_rows(arguments.data))
    rows = {name: pick(data, words, _BATCH, said=None) for name, words in _WORDS.items()}
    kinds = [
        Kind(metrics, answers, items)
        for metrics in arguments.metrics.split(";")
        for answers in _WORDS
        for items in (_BATCH, 1)
    ]
    kinds += [Kind(metrics, "short", 0) for metrics in arguments.metrics.split(";")]
    requests = {kind: request_of(kind, rows) for kind in kinds}
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        base = {"judge-backend": "none", "log-level": "warning", "http-port": "0"}
        targets = {
            name: Target(stack.enter_context(start_engine("embedded", base | flags)), stack)
            for name, flags in _SERVERS.items()
        }
        for block in range(-1, arguments.blocks):
            for kind in kinds:
                calls = arguments.batch_calls if kind.items == _BATCH else arguments.single_calls
                for target in list(targets.values())[:: 1 if block % 2 else -1]:
                    target.send(kind, requests[kind], _WARM_UP if block < 0 else calls, counted=block >= 0)
            sys.stderr.write(f"block {block + 1} of {arguments.blocks}\n")
    report(targets, arguments.metrics.split(";"), load_before)


def report(targets: Mapping[str, Target], metrics: Sequence[str], load_before: float) -> None:
    """Print the CPU microseconds for an item in a batch, a single item, and an empty call."""
    print(f"server CPU, µs; load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| metrics | server | short, of 64 | verbose, of 64 | short alone | verbose alone | empty call |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for each in metrics:
        for name, target in targets.items():
            kinds = [Kind(each, answers, items) for items in (_BATCH, 1) for answers in _WORDS]
            cells = [f"{target.cost_us(kind):.0f}" for kind in (*kinds, Kind(each, "short", 0))]
            print(f"| {each} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
