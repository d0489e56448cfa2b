"""Measure how many items per second judges rate: on vLLM through gradewire and through a plain client, and our own."""

import asyncio
import importlib.util
import itertools
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.gpu.calling import items_of, serving
from benchmarks.gpu.machine import Bench
from benchmarks.gpu.step_processes import NotRunError, Row
from benchmarks.gpu.vllm_servers import (
    DRAWN_MODELS,
    TINY_MODELS,
    DrawnModel,
    JudgeServer,
    vllm_command,
    vllm_started,
    write_model,
)

from gradewire import AsyncClient, GradewireError, JudgeParts
from gradewire.results import MetricScore

METRIC: Final = "lave"
LOADS: Final = (1, 64, 256)
"""Numbers of concurrent items; the last one is also the limit for requests to the judge's server."""
DEADLINE_S: Final = 60.0
NOT_TOLD: Final = "not told"
PREFIX_WORDS: Final = 560
ITEM_WORDS: Final = 40
"""Sizes of a plain client's prompt, about those of a `lave` prompt in tokens."""
_TAIL_S: Final = 8.0
"""Seconds of a judge's measurement besides the loads: the start of gradewire and last answers."""
_OTHERS: Final = "--judge-url URL and --judge-model NAME (an OpenAI-compatible server, such as vLLM)"


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The user's choice of a judge, in place of drawn weights."""

    server: JudgeServer | None = None
    weights: Path | None = None


@dataclass(slots=True)
class _Rated:
    items: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    untold: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def count(self, result: MetricScore) -> None:
        if result.score is None:
            self.failures[result.status.name] += 1
            return
        self.items += 1
        parts = result.parts
        if not isinstance(parts, JudgeParts) or parts.prompt_tokens is None or parts.generated_tokens is None:
            self.untold += 1
            return
        self.read_tokens += parts.prompt_tokens
        self.written_tokens += parts.generated_tokens


def lave(bench: Bench, judge: JudgeChoice) -> Iterator[Row]:
    """Yield the items per second of `lave` and of a plain client, for each judge and load.

    Raises:
        NotRunError: There is no judge, or a package is missing.
        RuntimeError: A judge did not start or rated nothing; the other one was measured.
    """
    if importlib.util.find_spec("httpx2") is None:
        raise NotRunError(
            "this Python lacks httpx2 for calls to a judge's server. Run: pip install 'gradewire[judge]', or make a "
            "larger pack (--max-mb)"
        )
    if judge.server is not None:
        yield from rates(bench, judge.server.model, judge.server)
        return
    command = vllm_command()
    if not command:
        raise NotRunError(f"vLLM is not installed. Make a pack with --pieces and --machine, or give {_OTHERS}")
    models = TINY_MODELS if bench.rehearsal else DRAWN_MODELS
    given: list[tuple[str, DrawnModel | None]] = [(each.name, each) for each in models]
    if judge.weights is not None:
        given = [(judge.weights.name, None)]
    else:
        bench.need_gpu()
    failures = []
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = []
        for number, (name, drawn) in enumerate(given):
            weights = judge.weights or scratch / str(number)
            if drawn is not None:
                write_model(drawn, bench.cpu.tokenizer_path, weights)
            # All start at the same time, because a start takes a minute of one core.
            started.append((name, stack.enter_context(vllm_started(command, weights, drawn))))
        for number, (name, vllm) in enumerate(started):
            needed_s = (len(started) - number) * (_TAIL_S + 2 * len(LOADS) * bench.seconds)
            try:
                yield from rates(bench, name, vllm.wait(max(1.0, bench.left_s - needed_s)))
            except (RuntimeError, GradewireError) as error:
                failures.append(f"{name}: {error}")
    if failures:
        raise RuntimeError("; ".join(failures))


def rates(bench: Bench, name: str, server: JudgeServer) -> Iterator[Row]:
    """Yield the rates of gradewire and of a plain client at each load.

    Raises:
        RuntimeError: gradewire rated no item.
    """
    loads = LOADS[:1] if bench.rehearsal else LOADS
    for row in judged(bench, server, bench.seconds, loads):
        yield {"judge": name, "client": f"gradewire, `{METRIC}`", **row}
    for at_a_time in loads:
        yield {"judge": name, "client": "plain", **plainly_asked(server, at_a_time, bench.seconds)}


def judged(
    bench: Bench, judge: JudgeServer, seconds: float, loads: Sequence[int], *, deadline_s: float = DEADLINE_S
) -> Iterator[Row]:
    """Let the judge rate new items through gradewire, and yield a row for each load.

    New items start during `seconds`; then the program waits at most `deadline_s` for the running items. If the judge's
    server needs a key, set GRADEWIRE_JUDGE_TOKEN.

    Raises:
        RuntimeError: No item was rated.
    """
    flags = {
        "device": "cpu",
        "default-model": bench.cpu.name,
        "judge-backend": "openai",
        "judge-url": judge.url,
        "judge-remote-model": judge.model,
        "judge-max-in-flight": str(LOADS[-1]),
        "judge-timeout-s": str(deadline_s),
    }
    with serving(bench.repository, flags) as address:
        asyncio.run(_rate_first(address, deadline_s))
        for at_a_time in loads:
            yield asyncio.run(_rate(address, seconds, at_a_time, deadline_s))


async def _rate_first(address: str, deadline_s: float) -> None:
    # For the first item, gradewire opens the judge, whose server computes the prompts' common prefix.
    async with AsyncClient(address) as client:
        (first,) = await client.score(items_of("first", 1), METRIC, deadline_s=deadline_s)
    result = first.scores[METRIC]
    if result.score is None:
        raise RuntimeError(f"the judge did not rate an item: {result.status.name}: {result.message}")


async def _rate(address: str, seconds: float, at_a_time: int, deadline_s: float) -> Row:
    rated = _Rated()
    async with AsyncClient(address) as client:

        async def rate(number: str) -> None:
            try:
                items = items_of(f"{at_a_time} {number}", 1)
                (item,) = await client.score(items, METRIC, deadline_s=deadline_s)
            except GradewireError as error:
                rated.failures[type(error).__name__] += 1
            else:
                rated.count(item.scores[METRIC])

        took_s = await _repeat(rate, seconds, at_a_time)
    if not rated.items:
        raise RuntimeError(f"the judge rated only the first item: {_said(rated.failures)}")
    told = not rated.untold
    return {
        "at a time": at_a_time,
        "items": rated.items,
        "items/s": round(rated.items / took_s, 2),
        "tokens read/s": round(rated.read_tokens / took_s) if told else NOT_TOLD,
        "tokens written/s": round(rated.written_tokens / took_s) if told else NOT_TOLD,
        "failed": rated.failures.total(),
        "why": _said(rated.failures),
    }


async def _repeat(work: Callable[[str], Awaitable[None]], seconds: float, at_a_time: int) -> float:
    """Do work, `at_a_time` at a time, until `seconds` have passed; return the time until the last one has ended."""
    began_s = time.perf_counter()

    async def repeat(caller: int) -> None:
        for number in itertools.count():
            await work(f"{caller} {number}")
            if time.perf_counter() >= began_s + seconds:
                return

    await asyncio.gather(*(repeat(caller) for caller in range(at_a_time)))
    return time.perf_counter() - began_s


def plainly_asked(judge: JudgeServer, at_a_time: int, seconds: float) -> Row:
    """Return the rate of a client that only asks for one token with 20 log probabilities, without gradewire.

    Prompts have a common beginning and an own end, as long as those of `lave`.
    """
    import httpx2

    done, failures = 0, Counter[str]()
    shared = "Rate the answer. " * (PREFIX_WORDS // 3)
    key = os.environ.get("GRADEWIRE_JUDGE_TOKEN")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    limits = httpx2.Limits(max_connections=at_a_time, max_keepalive_connections=at_a_time)

    async def ask_all() -> float:
        async with httpx2.AsyncClient(limits=limits, timeout=DEADLINE_S, headers=headers, trust_env=False) as client:

            async def ask(number: str) -> None:
                nonlocal done
                own = f"{number} " + "word " * ITEM_WORDS
                body = {
                    "model": judge.model,
                    "messages": [{"role": "system", "content": shared}, {"role": "user", "content": own}],
                    "max_tokens": 1,
                    "temperature": 0,
                    "logprobs": True,
                    "top_logprobs": 20,
                }
                try:
                    reply = await client.post(f"{judge.url}/chat/completions", json=body)
                except httpx2.HTTPError as error:
                    failures[type(error).__name__] += 1
                    return
                if reply.status_code == httpx2.codes.OK:
                    done += 1
                else:
                    failures[f"HTTP {reply.status_code}"] += 1

            return await _repeat(ask, seconds, at_a_time)

    took_s = asyncio.run(ask_all())
    return {
        "at a time": at_a_time,
        "items": done,
        "items/s": round(done / took_s, 2),
        "tokens read/s": NOT_TOLD,
        "tokens written/s": NOT_TOLD,
        "failed": failures.total(),
        "why": _said(failures),
    }


def _said(failures: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in failures.most_common())


def own_judge_parity(bench: Bench) -> Iterator[Row]:
    """Yield the differences between the GPU's and the CPU's probabilities of a small drawn judge."""
    device = bench.device()
    _need_graph_writer()
    from benchmarks.gpu.drawn_judges import parity

    yield from parity(device)


def own_judge(bench: Bench) -> Iterator[Row]:
    """Yield the items and tokens per second of our own judge with drawn weights in the shapes of 1.5 B and 7 B."""
    device = bench.device()
    _need_graph_writer()
    from benchmarks.gpu.drawn_judges import SHAPES, TINY_SHAPES, measured

    for shape in TINY_SHAPES if bench.rehearsal else SHAPES:
        name = f"the judge of {shape.name} in {shape.form}"
        # The writing time was estimated for 16 cores: 2 s per gigabyte, and 8 s if the weights are rounded.
        needed_s = bench.seconds + shape.gigabytes * (2 if shape.form == "fp16" else 8) + 10
        if needed_s > bench.left_s:
            raise NotRunError(f"no time is left for {name}. Use fewer --seconds")
        if shutil.disk_usage(tempfile.gettempdir()).free < 1.1e9 * shape.gigabytes:
            raise NotRunError(f"{name} needs {shape.gigabytes:.0f} GB of disk in {tempfile.gettempdir()}")
        yield from measured(shape, device, bench.seconds)


def _need_graph_writer() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise NotRunError(
            "this Python lacks onnx, which writes the drawn judge's graph. Run: pip install onnx safetensors, or make "
            "a larger pack (--max-mb)"
        )
