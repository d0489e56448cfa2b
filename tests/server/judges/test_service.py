"""Judges by name: opened once, tried again, refused where unknown; and what health says of them."""

import asyncio
import math
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.judges.pictures import picture
from tests.server.judges.scripted_service import FIXED, ScriptedService, choose, generate, held
from tests.support.judges.scripted import ScriptedJudges, choice, judge_status, preferring, saying

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, Role, Turn
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges import service
from gradewire_server.judges.factory import NoJudges
from gradewire_server.judges.service import JudgeHealth
from gradewire_server.rpc.log import request_id
from gradewire_server.settings.judge import JudgeConfig


async def test_a_judge_is_opened_once_however_many_ask(bench: ScriptedService) -> None:
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
    bench: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: now))
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
    bench: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who routes by health would send nobody any more, and it would stay down for ever."""
    monkeypatch.setattr(service, "_REOPEN_DEFAULT_S", 0.01)
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


async def test_unknown_judges_are_refused_and_none_is_remembered(bench: ScriptedService) -> None:
    for name in ("nobody", "scripted@" + "0" * 64):
        refused = (await bench.service.choose(choose(model=name))).answer
        assert isinstance(refused, Failure)
    assert bench.source.opened == ["scripted"]
    unknown = bench.service.status("nobody")
    assert isinstance(unknown, Failure)
    assert "scripted, other" in unknown.message


async def test_one_that_was_replaced_is_not_asked_in_the_others_name(bench: ScriptedService) -> None:
    refused = (await bench.service.choose(choose(model="scripted@" + "0" * 64))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert bench.source.script.asked == []


async def test_without_a_judge_everything_says_how_to_get_one() -> None:
    bench = ScriptedService(config=JudgeConfig(), source=NoJudges())
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.MODEL_UNAVAILABLE
    assert "judge_backend" in refused.message
    assert bench.service.status("") == refused
    assert list(bench.service.statuses()) == []
    assert bench.service.health() == JudgeHealth(configured=False, ready=False)
    await bench.service.close()


async def test_health_follows_the_judge_that_is_meant_by_default(bench: ScriptedService) -> None:
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
    bench = ScriptedService(config=JudgeConfig(default=named), source=source)
    health = bench.service.health()
    assert (health.configured, health.ready) == (True, False)
    assert ("gradewire models build scripted" in health.trouble) == told
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.MODEL_UNAVAILABLE
    assert "gradewire models build scripted" in refused.message
    await bench.service.close()


async def test_what_a_judge_does_later_is_not_logged_under_the_request_that_opened_it(bench: ScriptedService) -> None:
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


async def test_an_answer_is_computed_once_and_then_remembered_exactly(bench: ScriptedService) -> None:
    third = 1 / 3
    bench.source.script.on_choose = lambda need: choice(need, (third, 1 - third), mass=0.123456789012345)
    cold = await bench.service.choose(choose())
    warm = await bench.service.choose(choose())
    assert (cold.source, warm.source) == (AnswerSource.COMPUTED, AnswerSource.MEMORY)
    assert warm.answer == cold.answer  # floats compared exactly
    assert isinstance(warm.answer, Choice)
    assert len(bench.source.script.asked) == 1
    assert (cold.timing.queue_s, cold.timing.inference_s) == (0.25, 0.5)
    assert (warm.timing.queue_s, warm.timing.inference_s) == (0.0, 0.0)
    assert bench.count("answers_total", kind="choose", source="computed") == 1
    assert bench.count("answers_total", kind="choose", source="memory") == 1


async def test_texts_are_remembered_with_all_that_belongs_to_them(bench: ScriptedService) -> None:
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
        Choose("", replace(choose().prompt, images=(Image(data=picture()),)), ("yes", "no")),
    ],
)
async def test_whatever_decides_an_answer_is_part_of_its_name(bench: ScriptedService, other: Choose | Generate) -> None:
    await bench.service.choose(choose())
    await bench.service.generate(generate("another text"))
    ask: Any = bench.service.choose if isinstance(other, Choose) else bench.service.generate
    assert (await ask(other)).source is AnswerSource.COMPUTED


async def test_a_name_and_its_pin_are_the_same_judge(bench: ScriptedService) -> None:
    digest = judge_status("scripted").digest
    await bench.service.choose(choose())
    for model in ("scripted", f"scripted@{digest}", f"@{digest}"):
        assert (await bench.service.choose(choose(model=model))).source is AnswerSource.MEMORY
    assert bench.source.opened == ["scripted"]


async def test_nothing_that_failed_is_kept(bench: ScriptedService) -> None:
    away = bench.source.script.failure = Failure(Status.UNAVAILABLE, "the worker died", retry_after_s=2.0)
    assert (await bench.service.choose(choose())).answer == away
    bench.source.script.failure = None
    again = await bench.service.choose(choose())
    assert again.source is AnswerSource.COMPUTED
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
async def test_nonsense_is_no_answer(bench: ScriptedService, answer: Any) -> None:
    bench.source.script.on_choose = lambda _need: answer
    refused = (await bench.service.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.INTERNAL
    bench.source.script.on_choose = preferring("yes")
    assert isinstance((await bench.service.choose(choose())).answer, Choice)


async def test_a_judge_that_raises_fails_the_need_alone_and_logs_no_text(
    bench: ScriptedService, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(need: Choose) -> Choice:
        raise RuntimeError(need)

    bench.source.script.on_choose = broken
    refused = (await bench.service.choose(choose("a secret answer"))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.INTERNAL
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_closing_tells_those_who_wait_and_closes_the_judges(bench: ScriptedService) -> None:
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


async def test_long_prompts_are_named_without_holding_the_loop(bench: ScriptedService) -> None:
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
