"""The judge service: asked once, remembered exactly, never believed blindly."""

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.bench import FIXED, Bench, choose, generate, held
from tests.server.judges.images.pictures import picture
from tests.support.judges.scripted import choice, judge_status, preferring, saying

from gradewire_server.domain.image import Image
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, Role, Turn
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.result import Failure, Status


async def test_an_answer_is_computed_once_and_then_remembered_exactly(bench: Bench) -> None:
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
        Choose("", replace(choose().prompt, images=(Image(data=picture()),)), ("yes", "no")),
    ],
)
async def test_whatever_decides_an_answer_is_part_of_its_name(bench: Bench, other: Choose | Generate) -> None:
    await bench.service.choose(choose())
    await bench.service.generate(generate("another text"))
    ask: Any = bench.service.choose if isinstance(other, Choose) else bench.service.generate
    assert (await ask(other)).source is AnswerSource.COMPUTED


async def test_a_name_and_its_pin_are_the_same_judge(bench: Bench) -> None:
    digest = judge_status("scripted").digest
    await bench.service.choose(choose())
    for model in ("scripted", f"scripted@{digest}", f"@{digest}"):
        assert (await bench.service.choose(choose(model=model))).source is AnswerSource.MEMORY
    assert bench.source.opened == ["scripted"]


async def test_nothing_that_failed_is_kept(bench: Bench) -> None:
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
