"""Single-sample rewards against one batched call: samples a second, ways taking turns in one run.

Each round scores 512 completions of 64 prompts in every way, in a new order: one call of the client with all of them;
one of a reward scorer; single calls of a reward scorer, all at once and 64 at a time; and single calls of the client
without gathering, 64 at a time. A reward scorer also finds the answer behind 200 words of thinking. "cold" completions
are in no cache, and each way has its own; "warm" ones were scored before, and are the same for all ways. The server
runs in a process of its own on the same machine.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

from benchmarks.common.servers import start_engine

from gradewire import AsyncClient
from gradewire.rewards import RewardSample, RewardScorer

_SAMPLES = 512
_GROUP = 8
_POOL = 64
_WORDS = (
    *(
        "a",
        "the",
        "small",
        "old",
        "very",
        "quiet",
        "cat",
        "dog",
        "horse",
        "river",
        "bridge",
        "morning",
        "light",
        "under",
    ),
    *("over", "beside", "sleeps", "runs", "waits", "blue", "seventeen", "stones", "while", "nobody", "looks", "and"),
    *("then", "of", "water", "made", "long", "before", "winter", "came"),
)
_ONE_CALL = "one call of 512"

Rows = Sequence[RewardSample]
Way = Callable[[Rows], Awaitable[object]]
Taken = dict[str, dict[str, list[float]]]
_numbers = count()


def completions(source: random.Random) -> list[RewardSample]:
    """Completions of 4 to 10 words, no two of them alike; the samples of a prompt have its reference."""
    samples = []
    for _ in range(_SAMPLES // _GROUP):
        reference = " ".join(source.choices(_WORDS, k=3))
        for _ in range(_GROUP):
            said = " ".join([*source.choices(_WORDS, k=source.randint(4, 10)), str(next(_numbers))])
            samples.append(RewardSample(f"<think>{' '.join(source.choices(_WORDS, k=200))}</think>{said}", [reference]))
    return samples


def rows_of(samples: Rows) -> list[dict[str, object]]:
    """The same for a call of the client, which extracts no answers."""
    return [
        {"references": sample.references, "prediction": str(sample.completion).rpartition("</think>")[2]}
        for sample in samples
    ]


async def each(call: Callable[[RewardSample], Awaitable[object]], samples: Rows, at_a_time: int) -> None:
    """Calls once for each sample, so many at a time."""
    left = iter(samples)

    async def work() -> None:
        for sample in left:
            await call(sample)

    await asyncio.gather(*(work() for _ in range(at_a_time)))


def ways_over(client: AsyncClient, scorer: RewardScorer, metric: str) -> dict[str, Way]:
    """Every way to score the samples."""
    return {
        _ONE_CALL: lambda samples: client.score(rows_of(samples), metric),
        "one group of rewards": scorer.ascore,
        "single rewards, all at once": lambda samples: each(scorer.ascore_one, samples, _SAMPLES),
        f"single rewards, {_POOL} at a time": lambda samples: each(scorer.ascore_one, samples, _POOL),
        f"single calls, not gathered, {_POOL} at a time": lambda samples: each(
            lambda sample: client.score(rows_of([sample]), metric), samples, _POOL
        ),
    }


async def measure(address: str, metric: str, rounds: int) -> Taken:
    """Seconds of each way, cold and warm, by round."""
    source = random.Random(1)  # noqa: S311 - an order and texts, not a secret
    async with AsyncClient(address, deadline_s=300) as client, RewardScorer(address, metric, deadline_s=300) as scorer:
        ways = ways_over(client, scorer, metric)
        warm = completions(source)
        await client.score(rows_of(warm), metric)
        return await take_turns(ways, lambda: completions(source), warm, rounds, source)


async def take_turns(
    ways: dict[str, Way], draw: Callable[[], Rows], warm: Rows, rounds: int, source: random.Random
) -> Taken:
    """Seconds of each way, cold and warm, by round: every way once a round over new samples and over the warm ones."""
    taken: Taken = {"cold": defaultdict(list), "warm": defaultdict(list)}
    for number in range(rounds + 1):
        for state, times in taken.items():
            for name in source.sample(list(ways), len(ways)):
                samples = warm if state == "warm" else draw()
                start_s = time.perf_counter()
                await ways[name](samples)
                times[name].append(time.perf_counter() - start_s)
        if number == 0:  # connections, sessions and allocators are warm after the first
            for times in taken.values():
                times.clear()
        sys.stderr.write(f"\rround {number}/{rounds}")
    sys.stderr.write("\n")
    return taken


def report(taken: Taken, one_call: str = _ONE_CALL) -> None:
    """Prints medians, and each way's throughput over that of one call, round by round."""
    print(f"{'':45} {'samples/s':>10} {'of one call':>12}   (5th to 95th percentile of rounds)")
    for state, times in taken.items():
        for name, seconds in times.items():
            ratios = sorted(one / other for one, other in zip(times[one_call], seconds, strict=True))
            low, high = ratios[len(ratios) // 20], ratios[-1 - len(ratios) // 20]
            print(
                f"{state}, {name:39} {_SAMPLES / statistics.median(seconds):10,.0f} "
                f"{statistics.median(ratios):12.2f}   ({low:.2f} to {high:.2f})"
            )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metric", default="smile:fast", help="the metric (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds that count (default: %(default)s)")
    arguments = parser.parse_args()
    before = os.getloadavg()[0]
    with start_engine("embedded", {"judge-backend": "none"}) as server:
        taken = asyncio.run(measure(server.address, arguments.metric, arguments.rounds))
    print(
        f"{arguments.metric}, {_SAMPLES} samples, {arguments.rounds} rounds, {os.cpu_count()} cores; load average "
        f"{before:.1f} before, {os.getloadavg()[0]:.1f} after\n"
    )
    report(taken)


if __name__ == "__main__":
    main()
