"""Measure how many items per CPU second a judge rates, with this project's method and three other methods in turns.

    rating       fixed turns computed once and kept, items batched, the rating from label probabilities
    own tokens   only the items' own tokens, also batched, without a prefix; no rating can be cheaper
    full prefill the whole prompt for every item, then one token
    naive        the whole prompt for every item, then a rationale of 40 tokens

The last two methods are so slow that they get only some rows. All four use the same worker process, threads and tokens.
`--form int8 --form gguf` measures both forms, turn by turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.servers import cpu_s
from benchmarks.judges.binary import vqa_items

from gradewire_models.judges.catalog import default_judge
from gradewire_models.judges.cores.rows import Row, Run
from gradewire_models.judges.repository import default_judge_repository, load_judge
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.judges.local.chat import open_chat_tokenizer
from gradewire_server.judges.local.queue import EmbeddedQueue, Work
from gradewire_server.judges.local.supervisor import WorkerProcess
from gradewire_server.judges.worker.messages import OpenModel
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters
from gradewire_server.settings.judge import EmbeddedJudgeConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gradewire_models.judges.catalog import Form
    from gradewire_models.judges.repository import BuiltJudge

RATIONALE_TOKENS = 40
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A row's token ids, for the rating (fixed turns, item with opening, labels) and for a rationale's prompt."""

    fixed: tuple[int, ...]
    item: tuple[int, ...]
    labels: tuple[int, ...]
    rationale: tuple[int, ...]


@dataclass(slots=True)
class Spent:
    """A method's time so far."""

    items: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0

    @property
    def items_per_cpu_s(self) -> float:
        """The number of rows per CPU second."""
        return self.items / self.cpu_s


@dataclass(slots=True)
class Way:
    """A method to rate rows, and its number of rows per turn."""

    run: Callable[[Sequence[Prompt]], Awaitable[None]]
    items: int
    spent: Spent = field(default_factory=Spent)


class Bench:
    """The worker for a form, and the four methods."""

    def __init__(self, form: Form, worker: WorkerProcess, config: EmbeddedJudgeConfig) -> None:
        self.form = form
        self.worker = worker
        self._config = config
        self._state = 1_000_000_000  # the queue's state IDs are lower
        limits = replace(config, max_prefix_tokens=100_000)
        self._queue = EmbeddedQueue(limits, worker.limits, config.max_context_tokens)

    def ways(self, each: int, slow: int) -> dict[str, Way]:
        """Return all four methods, each with its number of rows per turn."""
        return {
            "rating": Way(self.rating, each),
            "own tokens": Way(self.own_tokens, each),
            "full prefill": Way(self.full_prefill, slow),
            "naive": Way(self.naive, slow),
        }

    async def rating(self, prompts: Sequence[Prompt]) -> None:
        """Rate with this project's method."""
        await self._batched([(prompt.fixed, prompt.item, prompt.labels) for prompt in prompts])

    async def own_tokens(self, prompts: Sequence[Prompt]) -> None:
        """Evaluate only the items' own tokens, in batches."""
        await self._batched([((), prompt.item, prompt.labels) for prompt in prompts])

    async def full_prefill(self, prompts: Sequence[Prompt]) -> None:
        """Evaluate whole prompts one by one, and generate one token for each."""
        for prompt in prompts:
            await self._whole(prompt.fixed + prompt.item, labels=prompt.labels)

    async def naive(self, prompts: Sequence[Prompt]) -> None:
        """Evaluate whole prompts one by one, and generate a rationale for each."""
        for prompt in prompts:
            await self._whole(prompt.rationale, tokens=RATIONALE_TOKENS)

    async def _batched(self, works: Sequence[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]) -> None:
        loop = asyncio.get_running_loop()
        for fixed, item, labels in works:
            self._queue.push(Work(fixed, item, loop.create_future(), 0.0, labels=labels))
        while (planned := self._queue.plan()) is not None:
            results = await self.worker.run(planned.run, timeout_s=TIMEOUT_S)
            for work, row, result in zip(planned.works, planned.run.rows, results, strict=False):
                work.take(row, result)
            self._queue.computed(planned)

    async def _whole(self, ids: tuple[int, ...], *, labels: tuple[int, ...] = (), tokens: int = 0) -> None:
        # Drop the previous prompt's state in this prompt's first run.
        drop: tuple[int, ...] = (self._state,)
        self._state += 1
        longest = self.worker.limits.max_row_tokens
        written = -1
        for at in range(0, len(ids), longest):
            last = at + longest >= len(ids)
            row = Row(
                self._state, ids[at : at + longest], labels if last else (), next_token=last and tokens > 0, keep=True
            )
            (result,) = await self.worker.run(Run(None, (row,), drop), timeout_s=TIMEOUT_S)
            written, drop = result.next_token, ()
        for _ in range(tokens - 1):
            row = Row(self._state, (written,), next_token=True, keep=True)
            (result,) = await self.worker.run(Run(None, (row,)), timeout_s=TIMEOUT_S)
            written = result.next_token


def prompts_of(judge: BuiltJudge, config: EmbeddedJudgeConfig) -> list[Prompt]:
    """Return the rows as prompts of the metric `lave`."""
    tokenizer = open_chat_tokenizer(judge, config)

    def first_need(mode: str, item: Any) -> Any:
        parameters = LaveParameters(mode=mode, demonstrations="short", binary="judge")  # type: ignore[arg-type]
        return next(LAVE.score(item, parameters, NO_MODEL))[0]

    found = []
    for item in vqa_items():
        rating, rationale = first_need("rating", item), first_need("rationale", item)
        labels = tokenizer.labels(rating.prompt.opening, rating.options)
        tokens = tokenizer.prompt(rating.prompt, labels.shared)
        reason = tokenizer.prompt(rationale.prompt, tokenizer.opening(rationale.prompt.opening))
        found.append(Prompt(tokens.fixed, tokens.item, labels.tokens, reason.fixed + reason.item))
    return found


async def turn(bench: Bench, way: Way, prompts: Sequence[Prompt]) -> None:
    """Time one turn of a method."""
    before_s, begin_s = cpu_s(bench.worker.pid), time.monotonic()
    await way.run(prompts)
    way.spent.items += len(prompts)
    way.spent.cpu_s += cpu_s(bench.worker.pid) - before_s
    way.spent.wall_s += time.monotonic() - begin_s


async def open_bench(judge: BuiltJudge, form: Form, config: EmbeddedJudgeConfig) -> Bench:
    """Start a form's worker."""
    path = judge.onnx_path if form == "int8" else judge.gguf_path
    assert path is not None, f"{judge.name} has no form {form}: gradewire models build {judge.name} --form {form}"
    model = OpenModel(form, str(path), config.threads, config.max_context_tokens, 2, 0)
    return Bench(form, await WorkerProcess.start(model, timeout_s=TIMEOUT_S), config)


def show(bench: Bench, ways: dict[str, Way], prompts: Sequence[Prompt]) -> None:
    """Print a form's table."""
    rating = ways["rating"].spent.items_per_cpu_s
    print(f"\n{bench.form}: {ways['rating'].spent.wall_s / ways['rating'].spent.items:.2f} s of wall time a rating")
    print("| way | rows timed | CPU s a row | rows per CPU s | rating is so many times faster |\n|---|---|---|---|---|")
    for name, way in ways.items():
        each = way.spent.cpu_s / way.spent.items
        print(f"| {name} | {way.spent.items} | {each:.3f} | {1 / each:.3f} | {rating * each:.2f} |")
    own = sum(len(prompt.item) for prompt in prompts)
    rate, alone = (own / ways[name].spent.cpu_s for name in ("rating", "own tokens"))
    print(f"items' own tokens per CPU s: rating {rate:.0f}, alone {alone:.0f}")


async def main() -> None:
    """Run all turns, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default=default_judge().name)
    parser.add_argument("--repository", type=Path, default=default_judge_repository())
    parser.add_argument("--form", action="append", choices=["int8", "gguf"], help="default: int8")
    parser.add_argument("--rows", type=int, default=64, help="number of rows, at most 64")
    parser.add_argument("--turns", type=int, default=4, help="turns for the rows")
    parser.add_argument("--slow", type=int, default=2, help="rows per turn for full prefill and naive")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    config = EmbeddedJudgeConfig(arguments.repository, threads=arguments.threads)
    judge = load_judge(arguments.repository, arguments.judge)
    prompts = prompts_of(judge, config)[: arguments.rows]
    benches = [await open_bench(judge, form, config) for form in arguments.form or ["int8"]]
    ways = [bench.ways(-(-len(prompts) // arguments.turns), arguments.slow) for bench in benches]
    own = [len(prompt.item) for prompt in prompts]
    print(
        f"{judge.name}, {len(prompts)} rows: fixed turns {len(prompts[0].fixed)} tokens, "
        f"items {min(own)} to {max(own)} (mean {sum(own) / len(own):.1f}), "
        f"whole prompt of a rationale {len(prompts[0].rationale)}; "
        f"{arguments.threads} thread(s), load {os.getloadavg()[0]:.1f} before"
    )
    for bench in benches:
        # Compute the state that all rows share before the timing.
        before_s = cpu_s(bench.worker.pid)
        await bench.rating(prompts[:1])
        print(f"{bench.form}: fixed turns and a first row once: {cpu_s(bench.worker.pid) - before_s:.2f} CPU s")
    for at in range(arguments.turns):
        for bench, its in zip(benches, ways, strict=True):
            for way in its.values():
                await turn(bench, way, prompts[at * len(prompts) // arguments.turns :][: way.items])
        print(f"turn {at + 1} of {arguments.turns} done, load {os.getloadavg()[0]:.1f}", flush=True)
    for bench, its in zip(benches, ways, strict=True):
        show(bench, its, prompts)
        await bench.worker.close()


if __name__ == "__main__":
    asyncio.run(main())
