"""One worker for all of these: what it answers depends on the need alone, bit for bit."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.judges.local.judge import EmbeddedJudge

from .embedded_judge import ANSWERS, FIXED, OTHER, Observed, answers, choose, generate, judging

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[tuple[EmbeddedJudge, Observed]]:
    async with judging() as pair:
        yield pair


@pytest.fixture
def judge(opened: tuple[EmbeddedJudge, Observed]) -> EmbeddedJudge:
    return opened[0]


@pytest.fixture
def observed(opened: tuple[EmbeddedJudge, Observed]) -> Observed:
    opened[1].runs.clear()
    return opened[1]


async def test_alone_in_any_order_and_in_any_company_answers_are_the_same(judge: EmbeddedJudge) -> None:
    needs: list[Choose | Generate] = [choose(answer) for answer in ANSWERS[:5]]
    needs += [generate("Paris"), generate("a cat"), choose("Paris", fixed=OTHER)]
    alone = [(await answers(judge, [need]))[0] for need in needs]
    together = await answers(judge, needs)
    backwards = await answers(judge, needs[::-1])
    assert alone == together
    assert alone == backwards[::-1]
    assert len({answer.probabilities for answer in alone if isinstance(answer, Choice)}) == 6  # and differ by need


async def test_a_choice_is_a_distribution_over_its_options(judge: EmbeddedJudge) -> None:
    (choice,) = await answers(judge, [choose("Paris")])
    assert isinstance(choice, Choice)
    assert len(choice.probabilities) == 3
    assert sum(choice.probabilities) == pytest.approx(1.0, abs=1e-6)
    assert all(0.0 < probability < 1.0 for probability in choice.probabilities)
    assert choice.mass is not None
    assert 0.3 < choice.mass <= 1.0  # a rating of this form came before: even SmolLM2 goes on with a digit
    assert not choice.truncated


async def test_the_opening_decides_what_options_are_likely(judge: EmbeddedJudge) -> None:
    prompt = JudgePrompt((Turn(Role.SYSTEM, "Count."),), "Count to five.", opening="1 2 3 4")
    choice = (await judge.choose(Choose("", prompt, ("5", "9")), deadline_s=None)).answer
    assert isinstance(choice, Choice)
    assert choice.probabilities[0] > 0.95


async def test_a_kept_prompt_is_reused(judge: EmbeddedJudge, observed: Observed) -> None:
    await answers(judge, [choose("Paris")])
    observed.runs.clear()
    first, second = await answers(judge, [choose("Paris"), choose("Rome, or so")])
    prefilled = sum(run.prefill_tokens for run in observed.runs)
    reused = sum(run.reused_tokens for run in observed.runs)
    assert prefilled + reused == first.prompt_tokens + second.prompt_tokens
    assert reused > prefilled
    assert reused % 2 == 0


async def test_a_text_ends_at_its_limit(judge: EmbeddedJudge, observed: Observed) -> None:
    (text,) = await answers(judge, [generate("Paris", max_tokens=4)])
    assert isinstance(text, Generated)
    assert text.generated_tokens == 4
    assert not text.complete
    assert text.text == text.text.strip()
    assert sum(run.decode_tokens for run in observed.runs) == 3  # the first one comes with the prompt's last token


async def test_a_text_ends_at_a_stop_and_at_the_turns_end(judge: EmbeddedJudge) -> None:
    (free,) = await answers(judge, [generate("Paris", max_tokens=12)])
    stop = free.text[4:7]
    (stopped,) = await answers(judge, [generate("Paris", max_tokens=12, stop=(stop,))])
    assert stopped.text == free.text[: free.text.index(stop)].strip()
    assert stopped.complete
    assert stopped.generated_tokens < 12
    spoken = JudgePrompt((Turn(Role.SYSTEM, "Be brief."),), "Say only: yes", opening="Yes.")
    (ended,) = await answers(judge, [Generate("", spoken, 40)])
    assert ended.complete
    assert ended.generated_tokens < 40
    assert "<|im_end|>" not in ended.text


async def test_long_items_are_cut_at_the_prediction_and_say_so(judge: EmbeddedJudge) -> None:
    long, short = await answers(judge, [choose("word " * 5000, fixed=OTHER), choose("Paris", fixed=OTHER)])
    assert isinstance(long, Choice)
    assert long.truncated
    assert long.prompt_tokens <= judge.status.max_tokens
    assert short == (await answers(judge, [choose("Paris", fixed=OTHER)]))[0]


async def test_what_cannot_fit_or_be_told_apart_is_an_error_of_the_need(judge: EmbeddedJudge) -> None:
    prompt = JudgePrompt(FIXED, "reference " * 5000, "Paris")
    long = (await judge.choose(Choose("", prompt, ("1", "2")), deadline_s=None)).answer
    alike = (await judge.choose(Choose("", JudgePrompt(FIXED, "?"), ("1", "10")), deadline_s=None)).answer
    none = (await judge.generate(Generate("", JudgePrompt(FIXED, "?"), 0), deadline_s=None)).answer
    assert isinstance(long, Failure)
    assert long.status is Status.INVALID_INPUT
    assert "question and references" in long.message
    # Here no item would fit: the prompt file is at fault.
    full = JudgePrompt((Turn(Role.SYSTEM, "instruction " * 9000),), "?", "Paris")
    crowded = (await judge.choose(Choose("", full, ("1", "2")), deadline_s=None)).answer
    assert isinstance(crowded, Failure)
    assert crowded.status is Status.INVALID_PARAMETER
    assert crowded.message.startswith("prompt: an instruction")
    assert isinstance(alike, Failure)
    assert alike.status is Status.INVALID_PARAMETER
    assert isinstance(none, Failure)
    assert none.status is Status.INVALID_PARAMETER


async def test_a_cancelled_need_leaves_its_mates_alone(judge: EmbeddedJudge, observed: Observed) -> None:
    needs: list[Choose | Generate] = [choose(answer) for answer in ANSWERS]
    expected = await answers(judge, needs)
    observed.ran_once.clear()
    tasks = [asyncio.create_task(answers(judge, [need])) for need in needs]
    writing = asyncio.create_task(answers(judge, [generate("Paris", max_tokens=200)]))
    await observed.ran_once.wait()
    for task in (tasks[3], tasks[7], writing):
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each == [want] for each, want in zip(found, expected, strict=True)] == [
        at not in {3, 7} or not isinstance(found[at], asyncio.CancelledError) for at in range(8)
    ]
    assert isinstance(found[7], asyncio.CancelledError)
    written = sum(run.decode_tokens for run in observed.runs)
    await answers(judge, [choose("Paris")])
    assert sum(run.decode_tokens for run in observed.runs) == written


async def test_a_deadline_ends_the_wait_and_the_computation(judge: EmbeddedJudge, observed: Observed) -> None:
    begin_s = time.monotonic()
    late = await judge.generate(generate("Paris", max_tokens=500), deadline_s=begin_s + 0.3)
    assert isinstance(late.answer, Failure)
    assert late.answer.status is Status.TIMEOUT
    assert late.timing.inference_s > 0.0
    await answers(judge, [choose("Paris")])
    assert sum(run.decode_tokens for run in observed.runs) < 400
    observed.runs.clear()
    passed = (await judge.choose(choose("Paris"), deadline_s=begin_s)).answer
    assert isinstance(passed, Failure)
    assert passed.status is Status.TIMEOUT
    assert not observed.runs


async def test_a_megabyte_of_text_does_not_hold_the_loop(judge: EmbeddedJudge) -> None:
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            begin_s = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - begin_s)

    ticking = asyncio.create_task(tick())
    found = await answers(judge, [choose("x" * 1_000_000), choose("Paris")])
    ticking.cancel()
    assert found[0].truncated
    assert len(gaps) > 20  # it went on all the while


async def test_a_defect_leaves_nobody_waiting(judge: EmbeddedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    needs: list[Choose | Generate] = [choose("Paris"), choose("Rome"), generate("Paris")]
    expected = await answers(judge, needs)
    fresh = choose("Paris", fixed=(Turn(Role.SYSTEM, "Seen for the first time while the defect is there."),))
    with monkeypatch.context() as patch:
        patch.setattr(judge._queue, "computed", lambda _: 1 / 0)
        found = await answers(judge, [*needs, fresh])
    failed = [isinstance(each, Failure) and each.status is Status.INTERNAL for each in found]
    assert failed[-1]
    assert all(bad or answer == want for bad, answer, want in zip(failed, found, expected, strict=False))
    assert await answers(judge, needs) == expected
    assert isinstance((await answers(judge, [fresh]))[0], Choice)


async def test_status_says_what_it_is(judge: EmbeddedJudge) -> None:
    assert judge.status.kind == "judge"
    assert judge.status.state == "loaded"
    assert len(judge.status.digest) == 64
    assert judge.trouble() == ""
