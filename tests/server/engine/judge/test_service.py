"""The judge service: asked once, remembered, bounded, cancelled when nobody waits, and never believed blindly."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.scripted_judge import ScriptedJudges, choice, judge_status, preferring, saying
from tests.support.valkey import ValkeyServer

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.needs import Source
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.engine.config import CacheConfig, DiskConfig, RedisConfig
from gradewire_server.engine.judge import shelf
from gradewire_server.engine.judge.config import JudgeConfig
from gradewire_server.engine.judge.opening import NoJudges
from gradewire_server.engine.judge.service import JudgeHealth, JudgeService
from gradewire_server.engine.judge.telemetry import JudgeTelemetry
from gradewire_server.engine.judge.verdicts import VerdictCache
from gradewire_server.engine.lru import SegmentedLru
from gradewire_server.engine.second_level import SecondLevel
from gradewire_server.engine.stores import open_stores
from gradewire_server.engine.telemetry import EngineTelemetry

FIXED = (Turn(Role.SYSTEM, "Grade."), Turn(Role.USER, "right?"), Turn(Role.ASSISTANT, "yes"))
CONFIG = JudgeConfig(max_queue_items=3)  # where judges come from is the source's affair


def choose(text: str = "a cat", *, model: str = "", options: tuple[str, ...] = ("yes", "no")) -> Choose:
    return Choose(model, JudgePrompt(FIXED, lead="Answer: ", prediction=text, opening="Verdict:"), options)


def generate(text: str = "a cat", *, max_tokens: int = 8, stop: tuple[str, ...] = ()) -> Generate:
    return Generate("", JudgePrompt(FIXED, lead="Answer: ", prediction=text), max_tokens, stop)


class Bench:
    """A service over scripted judges, and what was counted."""

    def __init__(
        self, *, config: JudgeConfig = CONFIG, source: Any = None, second: SecondLevel | None = None, **caching: Any
    ) -> None:
        self.registry = CollectorRegistry()
        self.source = ScriptedJudges("scripted", "other") if source is None else source
        lru = SegmentedLru(1 << 20)
        verdicts = VerdictCache(
            lru, second, EngineTelemetry(self.registry), namespace=caching.get("namespace", "n"), max_pending_writes=64
        )
        self.service = JudgeService(
            self.source, config, verdicts, JudgeTelemetry(self.registry), default=config.default or "scripted"
        )

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"gradewire_judge_{name}", labels) or 0.0


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.service.close()


def held(judge: Any, count: int) -> tuple[asyncio.Event, asyncio.Future[None]]:
    """Holds the calls of a judge; the event is set once `count` of them are held."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    there = asyncio.Event()

    def hold() -> asyncio.Future[None]:
        if judge.running >= count:
            there.set()
        return asyncio.shield(gate)

    judge.gate = hold
    return there, gate


async def test_an_answer_is_computed_once_and_then_remembered_exactly(bench: Bench) -> None:
    third = 1 / 3
    bench.source.script.on_choose = lambda need: choice(need, (third, 1 - third), mass=0.123456789012345)
    cold = await bench.service.choose(choose())
    warm = await bench.service.choose(choose())
    assert (cold.source, warm.source) == (Source.COMPUTED, Source.MEMORY)
    assert warm.answer == cold.answer  # floats compared exactly
    assert isinstance(warm.answer, Choice)
    assert len(bench.source.script.asked) == 1
    assert (cold.timing.queue_s, cold.timing.inference_s) == (0.25, 0.5)
    assert (warm.timing.queue_s, warm.timing.inference_s) == (0.0, 0.0)
    assert bench.count("answers_total", kind="choose", source="computed") == 1
    assert bench.count("answers_total", kind="choose", source="memory") == 1


async def test_texts_are_remembered_with_all_that_belongs_to_them(bench: Bench) -> None:
    said = Generated("naïve — 猫", complete=False, prompt_tokens=7, generated_tokens=8, truncated=True)
    bench.source.script.on_generate = lambda _need: said
    assert (await bench.service.generate(generate())).answer == said
    assert (await bench.service.generate(generate())).answer == said
    assert len(bench.source.script.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        choose("a cat "),
        choose(options=("yes", "no", "maybe")),
        choose(options=("no", "yes")),
        choose(model="other"),
        Choose("", replace(choose().prompt, fixed=FIXED[:1]), ("yes", "no")),
        Choose("", replace(choose().prompt, lead="Answer: a", prediction=" cat"), ("yes", "no")),
        Choose("", replace(choose().prompt, tail=" "), ("yes", "no")),
        Choose("", replace(choose().prompt, opening="Verdict"), ("yes", "no")),
        Choose("", replace(choose().prompt, fixed=(Turn(Role.USER, "Grade."), *FIXED[1:])), ("yes", "no")),
        generate(),
        generate(max_tokens=9),
        generate(stop=("\n",)),
    ],
)
async def test_whatever_decides_an_answer_is_part_of_its_name(bench: Bench, other: Choose | Generate) -> None:
    await bench.service.choose(choose())
    await bench.service.generate(generate("another text"))
    ask: Any = bench.service.choose if isinstance(other, Choose) else bench.service.generate
    assert (await ask(other)).source is Source.COMPUTED


async def test_a_name_and_its_pin_are_the_same_judge(bench: Bench) -> None:
    digest = judge_status("scripted").digest
    await bench.service.choose(choose())
    for model in ("scripted", f"scripted@{digest}", f"@{digest}"):
        assert (await bench.service.choose(choose(model=model))).source is Source.MEMORY
    assert bench.source.opened == ["scripted"]


async def test_equal_needs_at_the_same_time_are_asked_once(bench: Bench) -> None:
    await bench.service.load()
    there, gate = held(bench.source.known["scripted"], 1)
    tasks = [asyncio.create_task(bench.service.choose(choose())) for _ in range(10)]
    await there.wait()
    gate.set_result(None)
    replies = await asyncio.gather(*tasks)
    assert len(bench.source.script.asked) == 1
    assert len({reply.answer for reply in replies}) == 1
    assert sorted(reply.source for reply in replies) == [Source.JOINED] * 9 + [Source.COMPUTED]


async def test_one_who_leaves_takes_nothing_from_those_who_stay(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    there, gate = held(judge, 1)
    first, second = (asyncio.create_task(bench.service.choose(choose())) for _ in range(2))
    await there.wait()
    first.cancel()
    await asyncio.wait((first,))
    gate.set_result(None)
    assert isinstance((await second).answer, Choice)
    assert judge.cancelled == 0


async def test_the_last_one_who_leaves_ends_the_work(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    there, gate = held(judge, 1)
    tasks = [asyncio.create_task(bench.service.choose(choose())) for _ in range(3)]
    await there.wait()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    while judge.running:  # noqa: ASYNC110 - the work is cancelled beside its callers
        await asyncio.sleep(0)
    assert judge.cancelled == 1
    gate.set_result(None)
    judge.gate = lambda: None
    assert (await bench.service.choose(choose())).source is Source.COMPUTED  # nothing half done was kept


async def test_a_deadline_ends_the_wait_and_not_the_work_of_those_with_more_time(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    _, gate = held(judge, 1)
    patient = asyncio.create_task(bench.service.choose(choose(), deadline_s=time.monotonic() + 60))
    late = await bench.service.choose(choose(), deadline_s=time.monotonic() + 0.02)
    assert isinstance(late.answer, Failure)
    assert late.answer.status is Status.TIMEOUT
    gate.set_result(None)
    assert isinstance((await patient).answer, Choice)
    assert bench.count("failures_total", status="timeout") == 1


async def test_who_comes_later_with_more_time_gets_it(bench: Bench) -> None:
    """The judge itself heeds the deadline of the first; work is begun anew for the second."""
    judge = bench.source.known["scripted"]
    asked: list[float | None] = []

    async def choose_by_then(need: Choose, *, deadline_s: float | None) -> Any:
        asked.append(deadline_s)
        if deadline_s is not None and deadline_s < 1e9:
            await asyncio.wait((first,))
            return Failure(Status.TIMEOUT, "too late"), Timing()
        return preferring("yes")(need), Timing()

    await bench.service.load()
    judge.choose = choose_by_then
    soon = time.monotonic() + 0.01
    first = asyncio.create_task(bench.service.choose(choose(), deadline_s=soon))
    await asyncio.sleep(0)
    second = asyncio.create_task(bench.service.choose(choose(), deadline_s=2e9))
    assert isinstance((await second).answer, Choice)
    assert isinstance((await first).answer, Failure)
    assert asked == [soon, 2e9]


async def test_a_full_queue_says_when_to_come_back(bench: Bench) -> None:
    there, gate = held(bench.source.known["scripted"], 3)
    tasks = [asyncio.create_task(bench.service.choose(choose(f"answer {i}"))) for i in range(3)]
    await there.wait()
    assert bench.count("queue_items") == 3
    refused = (await bench.service.choose(choose("one more"))).answer
    joined = asyncio.create_task(bench.service.choose(choose("answer 0")))  # needs no room
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert refused.retry_after_s is not None
    assert 1 <= refused.retry_after_s <= 60
    gate.set_result(None)
    assert all(isinstance(reply.answer, Choice) for reply in await asyncio.gather(*tasks, joined))
    assert isinstance((await bench.service.choose(choose("one more"))).answer, Choice)  # a refusal is not remembered


async def test_nothing_that_failed_is_kept(bench: Bench) -> None:
    away = bench.source.script.failure = Failure(Status.UNAVAILABLE, "the worker died", retry_after_s=2.0)
    assert (await bench.service.choose(choose())).answer == away
    bench.source.script.failure = None
    again = await bench.service.choose(choose())
    assert again.source is Source.COMPUTED
    assert isinstance(again.answer, Choice)


@pytest.mark.parametrize(
    "answer",
    [
        Choice((math.nan, 0.5), 0.9, 5),
        Choice((0.5, 0.6), 0.9, 5),
        Choice((1.5, -0.5), 0.9, 5),
        Choice((1.0,), 0.9, 5),
        Choice((0.5, 0.5), math.nan, 5),
        Choice((0.5, 0.5), 7.0, 5),
        Generated("yes", complete=True, prompt_tokens=1, generated_tokens=1),
    ],
)
async def test_nonsense_is_no_answer(bench: Bench, answer: Any) -> None:
    bench.source.script.on_choose = lambda _need: answer
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.INTERNAL
    bench.source.script.on_choose = preferring("yes")
    assert isinstance((await bench.service.choose(choose())).answer, Choice)


async def test_a_judge_that_raises_fails_the_need_alone_and_logs_no_text(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(need: Choose) -> Choice:
        raise RuntimeError(need)

    bench.source.script.on_choose = broken
    refused = (await bench.service.choose(choose("a secret answer"))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.INTERNAL
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_judge_is_opened_once_however_many_ask(bench: Bench) -> None:
    opening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    bench.source.opening = lambda: asyncio.shield(opening)
    tasks = [asyncio.create_task(bench.service.choose(choose(f"answer {i}"))) for i in range(3)]
    await asyncio.sleep(0)
    impatient = await bench.service.choose(choose(), deadline_s=time.monotonic() + 0.02)
    assert isinstance(impatient.answer, Failure)  # the fourth: there is room for three
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    late = await bench.service.choose(choose(), deadline_s=time.monotonic() + 0.02)
    assert isinstance(late.answer, Failure)
    assert late.answer.status is Status.TIMEOUT
    opening.set_result(None)
    assert [type(reply.answer) for reply in await asyncio.gather(*tasks[1:])] == [Choice] * 2
    assert bench.source.opened == ["scripted"]


async def test_a_judge_that_cannot_be_opened_says_why_and_is_tried_again_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(bench.service._shelf, "_clock", lambda: now)
    why = bench.source.failures["scripted"] = Failure(Status.MODEL_UNAVAILABLE, "broken: gradewire models build it")
    assert (await bench.service.choose(choose())).answer == why
    assert (await bench.service.choose(choose())).answer == why
    assert bench.source.opened == ["scripted"]  # not for every item anew
    assert bench.service.health() == JudgeHealth(configured=True, ready=False, trouble=why.message)
    bench.source.failures.clear()
    now += 10
    assert isinstance((await bench.service.choose(choose())).answer, Choice)
    assert bench.service.health() == JudgeHealth(configured=True, ready=True)


async def test_the_default_judge_is_tried_again_while_nobody_asks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who routes by health would send nobody any more, and it would stay down for ever."""
    monkeypatch.setattr(shelf, "_LOOK_AGAIN_S", 0.01)
    bench.source.failures["scripted"] = Failure(Status.UNAVAILABLE, "its server is away", retry_after_s=2.0)
    await bench.service.choose(choose())
    assert not bench.service.health().ready
    async with asyncio.timeout(10):
        while len(bench.source.opened) < 3:  # noqa: ASYNC110 - it happens by itself
            await asyncio.sleep(0.005)
        assert not bench.service.health().ready
        bench.source.failures.clear()
        while not bench.service.health().ready:  # noqa: ASYNC110 - it happens by itself
            await asyncio.sleep(0.005)
    assert len(bench.source.script.asked) == 0


async def test_unknown_judges_are_refused_and_none_is_remembered(bench: Bench) -> None:
    for name in ("nobody", "scripted@" + "0" * 64):
        refused = (await bench.service.choose(choose(model=name))).answer
        assert isinstance(refused, Failure)
    assert bench.source.opened == ["scripted"]
    unknown = bench.service.judge("nobody")
    assert isinstance(unknown, Failure)
    assert "scripted, other" in unknown.message


async def test_one_that_was_replaced_is_not_asked_in_the_others_name(bench: Bench) -> None:
    refused = (await bench.service.choose(choose(model="scripted@" + "0" * 64))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert bench.source.script.asked == []


async def test_without_a_judge_everything_says_how_to_get_one() -> None:
    bench = Bench(config=JudgeConfig(), source=NoJudges())
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.MODEL_UNAVAILABLE
    assert "judge_backend" in refused.message
    assert bench.service.judge("") == refused
    assert list(bench.service.judges()) == []
    assert bench.service.health() == JudgeHealth(configured=False, ready=False)
    await bench.service.close()


async def test_health_follows_the_judge_that_is_meant_by_default(bench: Bench) -> None:
    assert bench.service.health() == JudgeHealth(configured=True, ready=True)  # there to be loaded
    await bench.service.choose(choose())
    judge = bench.source.known["scripted"]
    judge.why = "its worker is being started again"
    assert bench.service.health() == JudgeHealth(configured=True, ready=False, trouble=judge.why)
    assert bench.count("up") == 0
    judge.why = ""
    assert bench.service.health().ready
    assert bench.count("up") == 1


@pytest.mark.parametrize(("named", "told"), [("", False), ("scripted", True)])
async def test_a_judge_that_is_not_built_troubles_only_who_wanted_it(*, named: str, told: bool) -> None:
    source = ScriptedJudges("scripted")
    missing = replace(judge_status("scripted", state="missing"), how_to_get="gradewire models build scripted")
    source.known["scripted"]._status = missing
    bench = Bench(config=JudgeConfig(default=named), source=source)
    health = bench.service.health()
    assert (health.configured, health.ready) == (True, False)
    assert ("gradewire models build scripted" in health.trouble) == told
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.MODEL_UNAVAILABLE
    assert "gradewire models build scripted" in refused.message
    await bench.service.close()


async def test_closing_tells_those_who_wait_and_closes_the_judges(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    there, _ = held(judge, 1)
    waiting = asyncio.create_task(bench.service.choose(choose()))
    await there.wait()
    await bench.service.close()
    answer = (await waiting).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.UNAVAILABLE
    assert judge.closed
    assert bench.source.closed
    late = (await bench.service.choose(choose())).answer
    assert isinstance(late, Failure)
    assert late.status is Status.UNAVAILABLE


@pytest.fixture
def open_disk(tmp_path: Path) -> Callable[[], Any]:
    config = CacheConfig(disk=DiskConfig(tmp_path, 1 << 22, 1 << 22, 1 << 22))

    async def opened() -> Any:
        return await open_stores(config, EngineTelemetry(CollectorRegistry()))

    return opened


async def asked_again(stores: Any, need: Choose | Generate, **bench: Any) -> tuple[Any, list[Any]]:
    """What a new process answers, and what it asked its judge."""
    fresh = Bench(second=stores.vectors, **bench)
    ask: Any = fresh.service.choose if isinstance(need, Choose) else fresh.service.generate
    reply = await ask(need)
    await fresh.service.close()
    return reply, fresh.source.script.asked


async def test_verdicts_outlive_the_process_and_stay_the_same(open_disk: Callable[[], Any]) -> None:
    stores = await open_disk()
    for need in (choose(), generate()):
        cold, _ = await asked_again(stores, need)
        warm, asked = await asked_again(stores, need)
        assert (cold.source, warm.source, asked) == (Source.COMPUTED, Source.DISK, [])
        assert warm.answer == cold.answer
    await stores.vectors.close()
    await stores.prepared.close()


async def test_servers_share_verdicts_over_redis(valkey: ValkeyServer) -> None:
    telemetry = EngineTelemetry(CollectorRegistry())
    stores = await open_stores(CacheConfig(redis=RedisConfig(url=valkey.url)), telemetry)
    cold, _ = await asked_again(stores, choose())
    warm, asked = await asked_again(stores, choose())
    assert (cold.source, warm.source, asked) == (Source.COMPUTED, Source.REDIS, [])
    assert warm.answer == cold.answer
    assert stores.vectors is not None
    await stores.vectors.close()
    await stores.prepared.close()


async def test_another_tenant_or_build_or_arithmetic_meets_no_verdict(open_disk: Callable[[], Any]) -> None:
    stores = await open_disk()
    await asked_again(stores, choose())
    rebuilt, other_class = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    rebuilt.known["scripted"]._status = judge_status("scripted", digest="1" * 64)
    other_class.known["scripted"]._status = replace(judge_status("scripted"), numeric_class="another")
    for bench in ({"namespace": "m"}, {"source": rebuilt}, {"source": other_class}):
        reply, asked = await asked_again(stores, choose(), **bench)
        assert reply.source is Source.COMPUTED
        assert len(asked) == 1
    await stores.vectors.close()
    await stores.prepared.close()


async def test_a_cut_answer_is_kept_in_this_process_only(open_disk: Callable[[], Any]) -> None:
    """Where it is cut depends on settings, which the next process may have others of."""
    stores = await open_disk()
    source = ScriptedJudges("scripted")
    source.script.on_choose = lambda need: choice(need, (1, 3), truncated=True)
    bench = Bench(source=source, second=stores.vectors)
    first = await bench.service.choose(choose())
    assert (await bench.service.choose(choose())).source is Source.MEMORY
    await bench.service.close()
    again, _ = await asked_again(stores, choose())
    assert again.source is Source.COMPUTED
    assert first.answer.truncated
    await stores.vectors.close()
    await stores.prepared.close()


async def test_a_damaged_verdict_is_asked_anew(open_disk: Callable[[], Any]) -> None:
    class Damaging:
        """Changes the last bit of what is read, behind the check of the store."""

        def __init__(self, store: Any) -> None:
            self._store = store

        async def read(self, keys: Any, dims: int, **kw: Any) -> list[bytes | None]:
            bodies = await self._store.read(keys, dims, **kw)
            return [None if body is None else body[:-3] + body[-2:] for body in bodies]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

    stores = await open_disk()
    await asked_again(stores, choose())
    damaged: Any = Damaging(stores.vectors)
    fresh = Bench(second=damaged)
    assert (await fresh.service.choose(choose())).source is Source.COMPUTED
    await fresh.service.close()
    await stores.vectors.close()
    await stores.prepared.close()


async def test_long_prompts_are_named_without_holding_the_loop(bench: Bench) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    bench.source.script.on_generate = saying("fine")
    await bench.service.generate(generate("word " * 400_000))
    ticking.cancel()
    assert ticks > 5  # others had their turns while 2 MB were read
