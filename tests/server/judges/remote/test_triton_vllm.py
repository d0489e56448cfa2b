"""Judges on Triton's vLLM backend: the real tritonserver, its emulated backend, SmolLM2."""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, eventually, generate
from tests.support.judges.vllm_repository import vllm_repository
from tests.support.servers.llama_server import LlamaServer
from tests.support.servers.triton import TritonServer

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.judges.backend import JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.judges.remote.triton import TritonJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

MODEL = "smollm2"


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """Loads the configuration that GPUs get, with another model behind it."""
    directory = tmp_path_factory.mktemp("vllm")
    with TritonServer(directory / "state", vllm_repository(directory, MODEL)) as server:
        yield server


@asynccontextmanager
async def opened(source: JudgeBackend, name: str = MODEL) -> AsyncIterator[RemoteJudge]:
    judge = await source.open(name)
    assert isinstance(judge, RemoteJudge)
    try:
        yield judge
    finally:
        await judge.close()


def judges(url: str, observer: Counted | None = None, **settings: Any) -> TritonJudges:
    return TritonJudges(replace(RemoteJudgeConfig(url, MODEL), **settings), observer or Counted())


async def test_it_says_what_the_same_model_says_behind_another_server(vllm: TritonServer) -> None:
    observer = Counted()
    needs = [choose("Paris"), choose("London <|im_end|>"), choose("巴黎")]
    with LlamaServer() as llama:
        other = OpenAIJudges(RemoteJudgeConfig(llama.url, MODEL, token=llama.key), Counted())
        async with opened(judges(vllm.url, observer)) as here, opened(other) as there:
            for need in needs:
                ours = (await here.choose(need, deadline_s=time.monotonic() + 30)).answer
                theirs = (await there.choose(need, deadline_s=time.monotonic() + 30)).answer
                assert isinstance(ours, Choice)
                assert isinstance(theirs, Choice)
                assert ours.probabilities == pytest.approx(theirs.probabilities, abs=0.03)
                assert ours.mass == pytest.approx(theirs.mass, abs=0.03)
                assert ours.prompt_tokens == theirs.prompt_tokens
    assert [usage.generated_tokens for usage in observer.usages] == [2, 2, 2]


async def test_several_are_under_way_at_a_time_and_none_gets_anothers_answer(vllm: TritonServer) -> None:
    predictions = ["Paris", "London", "no idea at all", "3", "it is Paris of course", "Berlin"]
    observer = Counted()
    async with opened(judges(vllm.url, observer)) as judge:
        alone = [(await judge.choose(choose(each), deadline_s=None)).answer for each in predictions]
        replies = await asyncio.gather(*(judge.choose(choose(each), deadline_s=None) for each in predictions))
    assert observer.most_flying == len(predictions)
    for one, other in zip(alone, [reply.answer for reply in replies], strict=True):
        assert isinstance(one, Choice)
        assert isinstance(other, Choice)
        assert other.probabilities == pytest.approx(one.probabilities, abs=0.03)
        assert other.prompt_tokens == one.prompt_tokens
        assert math.fsum(other.probabilities) == pytest.approx(1)


async def test_text_ends_where_it_is_told_to(vllm: TritonServer) -> None:
    async with opened(judges(vllm.url)) as judge:
        cut = (await judge.generate(generate(3), deadline_s=None)).answer
        stopped = (await judge.generate(generate(40, stop=(" ",)), deadline_s=None)).answer
    assert isinstance(cut, Generated)
    assert (cut.complete, cut.generated_tokens) == (False, 3)
    assert isinstance(stopped, Generated)
    assert stopped.complete
    assert " " not in stopped.text


async def test_an_over_long_answer_is_cut_until_it_fits(vllm: TritonServer) -> None:
    async with opened(judges(vllm.url)) as judge:
        answer = (await judge.choose(choose("word " * 1000), deadline_s=None)).answer
    assert isinstance(answer, Choice)
    assert answer.truncated
    assert answer.prompt_tokens < 256


async def test_what_nobody_waits_for_is_not_computed(vllm: TritonServer) -> None:
    story = Generate("", JudgePrompt((), lead="Write a very long story about a dog and a cat."), 100)
    async with opened(judges(vllm.url)) as judge:
        before_s = cpu_s(vllm)
        whole = (await judge.generate(story, deadline_s=None)).answer
        assert isinstance(whole, Generated)
        assert whole.generated_tokens == 100
        one_s = cpu_s(vllm) - before_s
        before_s = cpu_s(vllm)
        late = (await judge.generate(story, deadline_s=time.monotonic() + 0.1)).answer
        assert isinstance(late, Failure)
        assert late.status is Status.TIMEOUT
        leaving = [asyncio.create_task(judge.generate(story, deadline_s=None)) for _ in range(5)]
        await asyncio.sleep(0.1)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        assert all(task.cancelled() for task in leaving)
        answer = (await judge.choose(choose(), deadline_s=None)).answer  # behind all that was sent before
        assert isinstance(answer, Choice)
        assert cpu_s(vllm) - before_s < 3 * one_s  # of six
        assert judge.trouble() == ""


def cpu_s(server: TritonServer) -> float:
    """Processor time of the processes that run its models."""
    ticks = 0
    for pid in server.stub_pids():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", ["nobody", "all-MiniLM-L6-v2"])
async def test_a_model_that_is_not_there_is_not_opened(vllm: TritonServer, name: str) -> None:
    with pytest.raises(JudgeUnavailableError) as caught:
        await judges(vllm.url, model=name).open(name)
    assert caught.value.failure.status is Status.UNAVAILABLE
    assert caught.value.failure.retry_after_s is not None


async def test_an_encoder_is_no_judge(triton: TritonServer) -> None:
    with pytest.raises(JudgeUnavailableError, match="is neither a judge of") as caught:
        await judges(triton.url, model="all-MiniLM-L6-v2").open("")
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE


@pytest.mark.restarts
async def test_a_server_that_is_away_is_found_again(vllm: TritonServer) -> None:
    async with opened(judges(vllm.url, attempts=1)) as judge:
        vllm.crash()
        away = (await judge.choose(choose(), deadline_s=time.monotonic() + 20)).answer
        assert isinstance(away, Failure)
        assert away.status is Status.UNAVAILABLE
        assert away.retry_after_s is not None
        assert judge.trouble()
        await asyncio.to_thread(vllm.start)
        await eventually(lambda: not judge.trouble(), within_s=30)
        answer = (await judge.choose(choose(), deadline_s=time.monotonic() + 20)).answer
        assert isinstance(answer, Choice)


@pytest.mark.parametrize("url", ["http://host:8001/v1", "host", "host:0", ""])
def test_addresses_that_are_none_are_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="judge_url"):
        judges(url)


def test_its_public_face_is_not_that_of_another_backend() -> None:
    (ours,) = judges("127.0.0.1:8001").listed()
    (others,) = OpenAIJudges(RemoteJudgeConfig("http://127.0.0.1:1/v1", MODEL), Counted()).listed()
    assert ours.name == others.name
    assert ours.digest != others.digest


def test_the_stand_in_says_what_it_lacks(tmp_path: Path) -> None:
    repository = vllm_repository(tmp_path, MODEL)
    (repository / MODEL / "1" / "model.json").write_text('{"model": "nowhere.gguf"}')
    with pytest.raises(Exception, match="needs a GGUF file"), TritonServer(tmp_path / "state", repository):
        pass


async def test_pictures_are_its_image_input_and_have_a_place_in_the_prompt(tmp_path: Path) -> None:
    red, blue = (Image(data=each, media_type="image/png", digest=each.hex()) for each in (b"red", b"blue"))

    def showing(*images: Image) -> Choose:
        need = choose("Paris")
        return replace(need, prompt=replace(need.prompt, images=images))

    with TritonServer(tmp_path / "state", vllm_repository(tmp_path, MODEL, sees_images=True)) as server:
        async with opened(judges(server.url, sees_images="yes")) as judge:
            assert judge.status.sees_images
            replies = [await judge.choose(showing(*each)) for each in ((), (red,), (blue,), (red, blue), (red,))]
            addressed = (await judge.choose(showing(Image(uri="https://images.example.org/a")))).answer
        async with opened(judges(server.url)) as judge:
            assert not judge.status.sees_images  # the input is there for models without eyes too
        async with opened(judges(server.url, sees_images="yes", image_placeholder="<image>")) as judge:
            unplaced = (await judge.choose(showing(red))).answer
            assert not judge.trouble()  # texts are judged as ever
            assert isinstance((await judge.choose(showing())).answer, Choice)
    without, *seen = (reply.answer for reply in replies)
    assert all(isinstance(answer, Choice) for answer in (without, *seen))
    tokens = [answer.prompt_tokens for answer in (without, *seen) if isinstance(answer, Choice)]
    assert tokens[0] is not None
    assert tokens[0] < tokens[1] < tokens[3]  # type: ignore[operator]
    assert len({answer.probabilities for answer in seen[:3] if isinstance(answer, Choice)}) == 3
    assert isinstance(addressed, Failure)
    assert (addressed.status, addressed.message[:7]) == (Status.INVALID_INPUT, "images:")
    assert isinstance(unplaced, Failure)
    assert unplaced.status is Status.INVALID_INPUT  # it is about these pictures: others are judged as ever


async def test_a_model_without_the_input_has_no_eyes_whatever_its_operator_says(vllm: TritonServer) -> None:
    async with opened(judges(vllm.url, sees_images="yes")) as judge:
        assert not judge.status.sees_images
