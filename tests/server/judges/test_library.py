"""Judges by name: opened once, tried again, refused where unknown; and what health says of them."""

import asyncio
import time
from dataclasses import replace

import pytest
from tests.server.judges.bench import Bench, choose
from tests.support.judges.scripted import ScriptedJudges, judge_status

from gradewire_server.domain.judge import Choice
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges import library
from gradewire_server.judges.opening import NoJudges
from gradewire_server.judges.service import JudgeHealth
from gradewire_server.rpc.request_log import request_id
from gradewire_server.settings.judge import JudgeConfig


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
    monkeypatch.setattr(bench.service._library, "_clock", lambda: now)
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
    monkeypatch.setattr(library, "_LOOK_AGAIN_S", 0.01)
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
    unknown = bench.service.status("nobody")
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
    assert bench.service.status("") == refused
    assert list(bench.service.statuses()) == []
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


async def test_what_a_judge_does_later_is_not_logged_under_the_request_that_opened_it(bench: Bench) -> None:
    seen: list[str] = []

    async def opening() -> None:
        seen.append(request_id.get())

    bench.source.opening = lambda: asyncio.ensure_future(opening())
    token = request_id.set("first-call")
    try:
        assert isinstance((await bench.service.choose(choose())).answer, Choice)
    finally:
        request_id.reset(token)
    assert seen == [""]
