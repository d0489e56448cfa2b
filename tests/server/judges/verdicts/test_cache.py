"""Verdicts in the second level: kept as they were, for the very same need of the very same judge."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.bench import Bench, choose, generate
from tests.support.judges.scripted import ScriptedJudges, choice, judge_status
from tests.support.servers.valkey import ValkeyServer

from gradewire_server.domain.judge import Choose, Generate
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.settings.cache import CacheConfig, DiskConfig, RedisConfig
from gradewire_server.storage.opening import open_stores
from gradewire_server.storage.telemetry import StorageTelemetry


@pytest.fixture
def open_disk(tmp_path: Path) -> Callable[[], Any]:
    config = CacheConfig(disk=DiskConfig(tmp_path, 1 << 22, 1 << 22, 1 << 22))

    async def opened() -> Any:
        return await open_stores(config, StorageTelemetry(CollectorRegistry()))

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
    bench = Bench(source=source, second=stores.vectors)
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
    fresh = Bench(second=damaged)
    assert (await fresh.service.choose(choose())).source is AnswerSource.COMPUTED
    await fresh.service.close()
    await stores.vectors.close()
    await stores.prepared.close()
