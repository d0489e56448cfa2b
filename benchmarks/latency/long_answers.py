"""Measure how long a cold long answer takes, and how long it blocks the event loop.

`python -m benchmarks.latency.long_answers --data DIR` scores answers of 40, 88, 400 and 2 000 words one at a time,
uncached, in its own process. It prints medians over rounds, and the longest hold, which is the maximum time for which
the event loop was blocked. The answers are joined from EVOUNA's; no text is used twice.

`--compare` scores the same answers with windows chosen in fp32 and as `--window-choice` says, in turns, and prints the
ratio of their CPU times and the largest difference of their scores.

A task on the same loop measures the hold, in wall-clock time and in CPU time of the loop's thread. Wall-clock time
includes other programs, so the program prints the load. `--hostile` scores items as large as the server accepts, with
every metric without a judge.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common.rows import DATA_DIRECTORY, WARM_UP, read_lines
from benchmarks.latency.event_loops import hostile_items

from gradewire import AsyncScorer

WORDS = (40, 88, 400, 2_000)
METRICS = ("smile:v1", "smile:fast", "smile:one_pass", "smile:whole", "correctness")
PLAIN_METRICS = (
    *("exact_match", "easy_match", "lexical_match", "vqa_accuracy", "soft_vqa_accuracy", "rouge_l", "bleu", "meteor"),
    *("sbert", "sfve", "bertscore", *METRICS),
)
TICK_S = 0.001


class LoopLag:
    """The event loop's longest hold, and its thread's highest CPU time in a hold."""

    def __init__(self) -> None:
        self.longest_s = self.longest_cpu_s = 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            began_s, cpu_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            self.longest_s = max(self.longest_s, time.perf_counter() - began_s - TICK_S)
            self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - cpu_s)


@contextmanager
def loop_lag() -> Iterator[LoopLag]:
    """Watch the running loop."""
    lag = LoopLag()
    task = asyncio.get_running_loop().create_task(lag.watch())
    try:
        yield lag
    finally:
        task.cancel()


class LongAnswers:
    """A source of items with answers of a given length, joined from different rows."""

    def __init__(self, data: Path) -> None:
        self._rows = iter(read_lines(data / "evouna_dev.jsonl"))

    def next(self, words: int, *, says_none: bool = False) -> dict[str, Any]:
        """Return an item with a new row's references; with `says_none`, the answer contains no reference."""
        while True:
            item = self._next(words)
            said = item["prediction"].casefold()
            if not (says_none and any(reference.casefold() in said for reference in item["references"])):
                return item

    def _next(self, words: int) -> dict[str, Any]:
        asked = next(self._rows)
        text: list[str] = []
        while len(text) < words:
            text += next(self._rows)["prediction"].split()
        return {
            "id": asked["id"],
            "question": asked["question"],
            "references": asked["references"][:2],
            "prediction": " ".join(text[:words]),
        }


class Measured(NamedTuple):
    """The cost of an item in milliseconds, and its status."""

    wall_ms: float
    cpu_ms: float
    hold_ms: float
    hold_cpu_ms: float
    status: str


async def measure(scorer: AsyncScorer, item: dict[str, Any], metric: str) -> Measured:
    """Score a cold item and return its cost."""
    with loop_lag() as lag:
        await asyncio.sleep(5 * TICK_S)
        lag.longest_s = lag.longest_cpu_s = 0.0
        began_s, cpu_s = time.perf_counter(), time.process_time()
        report = await scorer.score([item], metric)
        took_s, used_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        await asyncio.sleep(5 * TICK_S)
    (found,) = report
    (result,) = found.scores.values()
    return Measured(1e3 * took_s, 1e3 * used_s, 1e3 * lag.longest_s, 1e3 * lag.longest_cpu_s, result.status.name)


async def lengths(options: argparse.Namespace, answers: LongAnswers) -> None:
    """Print a table by number of words and metric."""
    rows: dict[tuple[int, str], list[Measured]] = {}
    async with AsyncScorer.embedded(**settings_of(options)) as scorer:
        for metric in METRICS:
            await scorer.score([WARM_UP], metric)
        for _ in range(options.rounds):
            for words in WORDS:
                for metric in METRICS:
                    measured = await measure(scorer, answers.next(words), metric)
                    rows.setdefault((words, metric), []).append(measured)
    print("| words | metric | ms | CPU ms | CPU µs a word | longest hold, ms | its CPU ms |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for (words, metric), runs in rows.items():
        wall, cpu = statistics.median(run.wall_ms for run in runs), statistics.median(run.cpu_ms for run in runs)
        hold, held = max(run.hold_ms for run in runs), max(run.hold_cpu_ms for run in runs)
        print(f"| {words} | `{metric}` | {wall:.0f} | {cpu:.0f} | {1e3 * cpu / words:.0f} | {hold:.0f} | {held:.0f} |")


async def hostile(options: argparse.Namespace) -> None:
    """Print a table by hostile item and metric."""
    print("| item | metric | ms | CPU ms | longest hold, ms | its CPU ms | status |")
    print("|---|---|---:|---:|---:|---:|---|")
    async with AsyncScorer.embedded(**settings_of(options)) as scorer:
        for metric in PLAIN_METRICS:
            await scorer.score([WARM_UP], metric)
        for name, item in hostile_items().items():
            for metric in PLAIN_METRICS:
                runs = [await measure(scorer, {"id": name, **item}, metric) for _ in range(options.rounds)]
                first = runs[0]
                hold = min(run.hold_ms for run in runs)  # other programs block the loop only in some runs
                held = max(run.hold_cpu_ms for run in runs)
                print(
                    f"| {name} | `{metric}` | {first.wall_ms:.0f} | {first.cpu_ms:.0f} | {hold:.0f} | {held:.0f} "
                    f"| {first.status} |",
                    flush=True,
                )


async def ratios(options: argparse.Namespace, answers: LongAnswers) -> None:
    """Print the CPU ratios of `fast` to `v1`, and of 400 words to 40, with cached references."""
    used_s: dict[tuple[str, int], float] = {}
    async with (
        AsyncScorer.embedded(**settings_of(options)) as one,
        AsyncScorer.embedded(**settings_of(options)) as other,
    ):
        scorers = {"v1": one, "fast": other}
        for _ in range(options.rounds):
            for words in (40, 400):
                item = answers.next(words, says_none=True)
                for preset, scorer in scorers.items():
                    await scorer.score([{**item, "prediction": "nothing of it"}], f"smile:{preset}")
                    began_s = time.process_time()
                    await scorer.score([item], f"smile:{preset}")
                    used_s[preset, words] = used_s.get((preset, words), 0.0) + time.process_time() - began_s
    print("| | CPU ms an answer |\n|---|---:|")
    for (preset, words), spent_s in used_s.items():
        print(f"| `{preset}`, {words} words | {1e3 * spent_s / options.rounds:.1f} |")
    print(f"\n40 words, `fast` over `v1`: {used_s['fast', 40] / used_s['v1', 40]:.2f} (goal: at most .4)")
    print(f"`fast`, 400 words over 40: {used_s['fast', 400] / used_s['fast', 40]:.1f} (goal: at most 12)")


class Compared(NamedTuple):
    """One item's CPU milliseconds by way of choosing windows, and how its results differ."""

    before_ms: float
    after_ms: float
    score_difference: float
    same_window: bool


async def compare(options: argparse.Namespace, answers: LongAnswers) -> None:
    """Print, by number of words and metric, the CPU ratio of two ways of choosing windows."""
    rows: dict[tuple[int, str], list[Compared]] = {}
    with tempfile.TemporaryDirectory(prefix="gradewire-window-graphs-") as folder:
        given = {"workers": 1, "lone_run_threads": 1, "remembered_results_max_bytes": 0}
        async with (
            AsyncScorer.embedded(**given, disk_directory=f"{folder}/before", window_choice="fp32") as before,
            AsyncScorer.embedded(
                **given, disk_directory=f"{folder}/after", window_choice=options.window_choice
            ) as after,
        ):
            for metric in METRICS:
                for scorer in (before, after):
                    await scorer.score([WARM_UP], metric)
            for turn in range(options.rounds):
                for words in WORDS:
                    for metric in METRICS:
                        item = answers.next(words, says_none=options.says_none)
                        compared = await _both(before, after, item, metric, swapped=turn % 2 == 1)
                        rows.setdefault((words, metric), []).append(compared)
    print("| words | metric | CPU ms, fp32 | ratio | largest difference of a score | other windows |")
    print("|---:|---|---:|---:|---:|---:|")
    for (words, metric), items in rows.items():
        before_ms, after_ms = sum(item.before_ms for item in items), sum(item.after_ms for item in items)
        difference = max(item.score_difference for item in items)
        others = sum(not item.same_window for item in items)
        print(
            f"| {words} | `{metric}` | {before_ms / len(items):.0f} | {after_ms / before_ms:.2f} | {difference:.1e} "
            f"| {others} |"
        )


async def _both(
    before: AsyncScorer, after: AsyncScorer, item: dict[str, Any], metric: str, *, swapped: bool
) -> Compared:
    used_ms, found = {}, {}
    for scorer in (after, before) if swapped else (before, after):
        began_s = time.process_time()
        (result,) = (await scorer.score([item], metric))[0].scores.values()
        used_ms[scorer], found[scorer] = 1e3 * (time.process_time() - began_s), result
    old, new = found[before], found[after]
    windows = [getattr(result.parts, "best_window", None) for result in (old, new)]
    return Compared(used_ms[before], used_ms[after], abs((old.score or 0) - (new.score or 0)), windows[0] == windows[1])


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the scorer's settings."""
    return {"disk_directory": "", "window_choice": options.window_choice}


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="folder with evouna_dev.jsonl")
    parser.add_argument("--window-choice", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument(
        "--hostile", action="store_true", help="measure hostile items with every metric instead of lengths"
    )
    parser.add_argument(
        "--ratios", action="store_true", help="compare fast with v1 on the same answers instead of lengths"
    )
    parser.add_argument(
        "--compare", action="store_true", help="compare ways of choosing windows on the same answers instead of lengths"
    )
    parser.add_argument("--says-none", action="store_true", help="with --compare, only answers without a reference")
    options = parser.parse_args()
    if options.hostile:
        work = hostile(options)
    elif options.compare:
        work = compare(options, LongAnswers(options.data))
    else:
        work = (ratios if options.ratios else lengths)(options, LongAnswers(options.data))
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    asyncio.run(work)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
