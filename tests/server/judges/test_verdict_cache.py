"""Verdicts in the second level: kept as they were, for the very same need of the very same judge."""

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.server.judges.remote.remote_judges import eventually
from tests.server.judges.scripted_service import ScriptedService, choose, generate
from tests.support.judges.scripted import ScriptedJudges, choice, judge_status
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.backends import open_stores
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges.verdict_cache import answer_problem, canonical, decode_answer, encode_answer
from gradewire_server.settings.engine import CacheConfig, DiskConfig, RedisConfig
from gradewire_server.settings.judge import JudgeConfig
from gradewire_server.storage.cache import StorageTelemetry


@pytest.fixture
def open_disk(tmp_path: Path) -> Callable[[], Any]:
    config = CacheConfig(disk=DiskConfig(tmp_path, 1 << 22, 1 << 22, 1 << 22))

    async def opened() -> Any:
        return await open_stores(config, StorageTelemetry(CollectorRegistry()))

    return opened


async def asked_again(stores: Any, need: Choose | Generate, **bench: Any) -> tuple[Any, list[Any]]:
    """What a new process answers, and what it asked its judge."""
    fresh = ScriptedService(second=stores.vectors, **bench)
    ask: Any = fresh.service.choose if isinstance(need, Choose) else fresh.service.generate
    reply = await ask(need)
    await fresh.service.close()
    return reply, fresh.source.script.asked


async def test_verdicts_outlive_the_process_and_stay_the_same(open_disk: Callable[[], Any]) -> None:
    stores = await open_disk()
    for need in (choose(), generate()):
        cold, _ = await asked_again(stores, need)
        warm, asked = await asked_again(stores, need)
        assert (cold.source, warm.source, asked) == (AnswerSource.COMPUTED, AnswerSource.DISK, [])
        assert warm.answer == cold.answer
    await stores.vectors.close()
    await stores.prepared.close()


async def test_servers_share_verdicts_over_redis(valkey: ValkeyServer) -> None:
    telemetry = StorageTelemetry(CollectorRegistry())
    stores = await open_stores(CacheConfig(redis=RedisConfig(url=valkey.url)), telemetry)
    cold, _ = await asked_again(stores, choose())
    warm, asked = await asked_again(stores, choose())
    assert (cold.source, warm.source, asked) == (AnswerSource.COMPUTED, AnswerSource.REDIS, [])
    assert warm.answer == cold.answer
    assert stores.vectors is not None
    await stores.vectors.close()
    await stores.prepared.close()


async def test_another_tenant_or_build_or_arithmetic_meets_no_verdict(open_disk: Callable[[], Any]) -> None:
    stores = await open_disk()
    await asked_again(stores, choose())
    rebuilt, other_class = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    rebuilt.known["scripted"]._status = judge_status("scripted", digest="1" * 64)
    other_class.known["scripted"]._status = replace(judge_status("scripted"), precision="another")
    for bench in ({"namespace": "m"}, {"source": rebuilt}, {"source": other_class}):
        reply, asked = await asked_again(stores, choose(), **bench)
        assert reply.source is AnswerSource.COMPUTED
        assert len(asked) == 1
    await stores.vectors.close()
    await stores.prepared.close()


async def test_a_cut_answer_is_kept_in_this_process_only(open_disk: Callable[[], Any]) -> None:
    """Where it is cut depends on settings, which the next process may have others of."""
    stores = await open_disk()
    source = ScriptedJudges("scripted")
    source.script.on_choose = lambda need: choice(need, (1, 3), truncated=True)
    bench = ScriptedService(source=source, second=stores.vectors)
    first = await bench.service.choose(choose())
    assert (await bench.service.choose(choose())).source is AnswerSource.MEMORY
    await bench.service.close()
    again, _ = await asked_again(stores, choose())
    assert again.source is AnswerSource.COMPUTED
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
    fresh = ScriptedService(second=damaged)
    assert (await fresh.service.choose(choose())).source is AnswerSource.COMPUTED
    await fresh.service.close()
    await stores.vectors.close()
    await stores.prepared.close()


class Counting:
    """A store that has nothing, and counts the keys of each read."""

    source, available = AnswerSource.DISK, False

    def __init__(self, error: Exception | None = None) -> None:
        self.reads: list[int] = []
        self._error = error

    async def read(self, keys: Any, _dims: int, **_: Any) -> list[bytes | None]:
        self.reads.append(len(keys))
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        return [None] * len(keys)


async def test_needs_that_arrive_together_are_looked_up_together() -> None:
    store: Any = Counting()
    bench = ScriptedService(second=store, config=JudgeConfig(max_queue_items=20))
    needs = [choose(f"cat {number}") for number in range(9)]
    replies = await asyncio.gather(*(bench.service.choose(need) for need in needs))
    assert [reply.source for reply in replies] == [AnswerSource.COMPUTED] * 9
    await bench.service.choose(choose("another one"))
    assert (sum(store.reads), max(store.reads) > 1) == (10, True)
    gone = asyncio.create_task(bench.service.choose(choose("a third one")))
    await eventually(lambda: sum(store.reads) == 11)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert (await bench.service.choose(choose("a last one"))).source is AnswerSource.COMPUTED
    await bench.service.close()


async def test_a_store_that_raises_holds_up_nobody() -> None:
    store: Any = Counting(OSError("gone"))
    bench = ScriptedService(second=store)
    async with asyncio.timeout(20):
        assert (await bench.service.choose(choose())).source is AnswerSource.COMPUTED
    await bench.service.close()


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
COUNT = st.none() | st.integers(0, 2**32 - 2)
TURN = st.builds(Turn, st.sampled_from(Role), TEXT)
PROMPT = st.builds(JudgePrompt, st.lists(TURN, max_size=3).map(tuple), TEXT, TEXT, TEXT, TEXT)
NEED = st.one_of(
    st.builds(Choose, st.just(""), PROMPT, st.lists(TEXT, min_size=2, max_size=4, unique=True).map(tuple)),
    st.builds(Generate, st.just(""), PROMPT, st.integers(1, 99), st.lists(TEXT, max_size=2).map(tuple)),
)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=2, max_size=6))
    shares = tuple(weight / math.fsum(weights) for weight in weights)
    return Choice(shares, draw(st.none() | st.floats(0, 1)), draw(COUNT), draw(st.booleans()), draw(COUNT))


def need_of(answer: Choice | Generated) -> Choose | Generate:
    prompt = JudgePrompt((), "lead")
    if isinstance(answer, Choice):
        return Choose("", prompt, tuple(map(str, range(len(answer.probabilities)))))
    return Generate("", prompt, 9)


GENERATED = st.builds(Generated, TEXT, st.booleans(), COUNT, COUNT, st.booleans())
ANSWER = choices() | GENERATED


@given(ANSWER)
def test_an_answer_comes_back_bit_by_bit(answer: Choice | Generated) -> None:
    assert answer_problem(need_of(answer), answer) == ""
    assert decode_answer(need_of(answer), encode_answer(answer)) == answer


@given(st.binary(min_size=2, max_size=80))
def test_bytes_that_are_no_verdict_are_none_and_never_an_answer_that_cannot_be(body: bytes) -> None:
    for need in (
        need_of(Choice((0.5, 0.5), None, 1)),
        need_of(Generated("", complete=True, prompt_tokens=0, generated_tokens=0)),
    ):
        answer = decode_answer(need, body)
        assert answer is None or answer_problem(need, answer) == ""


@given(ANSWER, st.data())
def test_a_verdict_of_other_labels_is_none(answer: Choice | Generated, data: st.DataObject) -> None:
    other = data.draw(NEED)
    decoded = decode_answer(other, encode_answer(answer))
    assert decoded is None or answer_problem(other, decoded) == ""


def test_a_text_that_no_wire_can_carry_is_no_answer() -> None:
    broken = Generated("\ud800", complete=True, prompt_tokens=1, generated_tokens=1)
    assert answer_problem(need_of(broken), broken)


@given(NEED, NEED)
def test_only_equal_needs_have_equal_names(one: Choose | Generate, other: Choose | Generate) -> None:
    assert (canonical(one, "int8") == canonical(other, "int8")) == (one == other)
    assert canonical(one, "int8") != canonical(one, "q4")


@given(PROMPT, TEXT, TEXT)
def test_text_that_moves_from_one_field_to_the_next_makes_another_name(prompt: JudgePrompt, a: str, b: str) -> None:
    def named(**fields: str) -> str:
        return canonical(Generate("", replace(prompt, **fields), 5), "c")

    if a:
        assert named(lead=a, prediction=b) != named(lead="", prediction=a + b)
        assert named(tail=a, opening=b) != named(tail="", opening=a + b)


@given(st.lists(NEED, min_size=1, max_size=3))
def test_stored_verdicts_keep_their_names(needs: list[Choose | Generate]) -> None:
    """A name that is put together from parts is the list in JSON under which earlier versions stored the verdict."""
    for need in needs:
        prompt = need.prompt
        own = [need.options] if isinstance(need, Choose) else [need.max_tokens, need.stop]
        turns = [(turn.role.value, turn.text) for turn in prompt.fixed]
        seen = [[image.digest for image in prompt.images]] if prompt.images else []
        texts = (prompt.lead, prompt.prediction, prompt.tail, prompt.opening)
        assert canonical(need, "int8") == json.dumps((type(need).__name__, "int8", turns, *texts, own, *seen))
