"""Compare the time for cold items with Triton and with the embedded engine, one and 64 items at a time.

Three programs process the same texts in turns, so that the machine's load affects all alike: the bare forward in this
process (tokenizer and one `session.run`), a gradewire server with the embedded engine, and a gradewire server with
Triton. First, the program compares the two servers' scores.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import grpc
import numpy as np
from benchmarks.common.rows import DEFAULT_DATA, Row, read_rows, sample_rows
from benchmarks.common.servers import Server, start_engine
from benchmarks.latency.payloads import BareForward

from gradewire_proto.v1 import references_pb2, references_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2

Call = Callable[[Sequence[str]], None]
_REFERENCE = "a reference that every item shares"
_SBERT = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())
_SMILE = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
_COMPARED_ROWS = 500
_BATCH = 64
_COUNT = "nv_inference_count_total"  # the parsed metric's name
_COUNTING_S = 3.0
"""Seconds to wait for Triton's metrics, which change every two seconds."""


class Way:
    """A server and its timed calls."""

    def __init__(self, server: Server, channel: grpc.Channel) -> None:
        self.server = server
        self._score = scoring_pb2_grpc.ScoringStub(channel).Score
        self._prepare = references_pb2_grpc.ReferencesStub(channel).Prepare

    def prepare(self) -> None:
        """Prepare the shared reference."""
        entry = references_pb2.ReferenceEntry(references=[_REFERENCE])
        for _ in self._prepare(references_pb2.PrepareRequest(entries=[entry], metrics=[_SBERT])):
            pass

    def send(self, texts: Sequence[str]) -> None:
        """Score cold predictions in one request.

        Raises:
            RuntimeError: A prediction has no score.
        """
        self.scores([(text, [_REFERENCE]) for text in texts], _SBERT)

    def scores(self, answers: Sequence[tuple[str, Sequence[str]]], metric: types_pb2.MetricSpec) -> list[float]:
        """Return the scores of (prediction, references) pairs."""
        items = [
            types_pb2.Item(id=str(number), references=references, prediction=prediction)
            for number, (prediction, references) in enumerate(answers)
        ]
        reply = self._score(scoring_pb2.ScoreRequest(items=items, metrics=[metric]), timeout=300)
        results = [item.results[0] for item in reply.items]
        failed = [result.message for result in results if not result.HasField("score")]
        if failed:
            raise RuntimeError(f"{len(failed)} items have no score: {failed[0]}")
        return [result.score for result in results]


def compare(ways: dict[str, Way], rows: Sequence[Row]) -> None:
    """Score the same rows with both engines and print the largest score difference."""
    answers = [(row["prediction"], row["references"]) for row in rows]
    found: dict[str, np.ndarray] = {}
    counted = ways["triton"].server.triton_metric(_COUNT)
    for name, way in ways.items():
        scores: list[float] = []
        for start in range(0, len(answers), _BATCH):
            scores += way.scores(answers[start : start + _BATCH], _SMILE)
        computed = way.server.metric("gradewire_engine_texts_total", source="computed")
        print(f"{name}: {len(scores)} rows, mean score {np.mean(scores):.6f}, {computed:,.0f} texts computed")
        found[name] = np.array(scores)
    time.sleep(_COUNTING_S)
    print(f"Triton's own count of inferences rose by {ways['triton'].server.triton_metric(_COUNT) - counted:,.0f}")
    gap = float(np.abs(found["embedded"] - found["triton"]).max())
    print(f"largest score difference over {len(answers)} rows (SMILE v1): {gap:.1e} (goal: < 2e-4)\n")


def cold_texts(rows: Sequence[Row], seed: int) -> Iterator[str]:
    """Yield distinct, uncached texts of 4 to 40 words, cut from real predictions and numbered."""
    source = random.Random(seed)  # noqa: S311 - no secret
    for number in range(1 << 30):
        words = source.choice(rows)["prediction"].split()
        yield " ".join([*words[: source.randint(4, 40)], str(number)])


def measure(calls: dict[str, Call], texts: Iterator[str], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every call, by kind; each round sends new texts, in a new order."""
    taken: dict[str, list[float]] = defaultdict(list)
    source = random.Random(1)  # noqa: S311 - no secret
    for number in range(rounds):
        for size, times in ((1, 8), (_BATCH, 1)):
            for _ in range(times):
                batch = [next(texts) for _ in range(size)]
                order = list(calls)
                source.shuffle(order)
                for name in order:
                    start_s = time.perf_counter()
                    calls[name](batch)
                    taken[f"{name} {size}"].append(time.perf_counter() - start_s)
        if number == 2:  # the first rounds warm up sessions, channels and allocators
            taken.clear()
        sys.stderr.write(f"\rround {number + 1}/{rounds}")
    sys.stderr.write("\n")
    return taken


def report(taken: dict[str, list[float]]) -> None:
    """Print the medians and the promised ratios."""
    p50 = {kind: statistics.median(times) for kind, times in taken.items()}
    print("| kind | n | p50 ms | p90 ms |\n|---|---|---|---|")
    for kind, times in sorted(taken.items()):
        print(f"| {kind} | {len(times)} | {p50[kind] * 1e3:.2f} | {float(np.percentile(times, 90)) * 1e3:.2f} |")
    print("\n| ratio of p50 | value | goal |\n|---|---|---|")
    for name, value, goal in (
        ("one cold item, Triton over embedded", p50["triton 1"] / p50["embedded 1"], "<= 1.5"),
        (f"{_BATCH} cold items, Triton over embedded", p50[f"triton {_BATCH}"] / p50[f"embedded {_BATCH}"], "<= 1.08"),
        (f"{_BATCH} cold items, embedded over bare", p50[f"embedded {_BATCH}"] / p50[f"bare {_BATCH}"], "<= 1.25"),
        ("one cold item, embedded over bare", p50["embedded 1"] / p50["bare 1"], "-"),
    ):
        print(f"| {name} | {value:.2f} | {goal} |")


def main() -> None:
    """Start the servers, compare their scores, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument(
        "--rounds", type=int, default=60, help="rounds of 8 single items and one request of 64, per way"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of the bare forward")
    arguments = parser.parse_args()
    rows = read_rows(arguments.data)
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(start_engine(name, {"log-level": "warning"})) for name in ("embedded", "triton")
        }
        ways = {
            name: Way(server, stack.enter_context(grpc.insecure_channel(server.address)))
            for name, server in servers.items()
        }
        compare(ways, sample_rows(rows, _COMPARED_ROWS, seed=0))
        for way in ways.values():
            way.prepare()
        bare = BareForward(arguments.threads)
        calls: dict[str, Call] = {"bare": bare.run, **{name: way.send for name, way in ways.items()}}
        taken = measure(calls, cold_texts(rows, seed=2), arguments.rounds)
    print(f"load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n")
    report(taken)


if __name__ == "__main__":
    main()
