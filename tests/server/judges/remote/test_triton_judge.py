"""A built judge in the real tritonserver against the same judge in this server's worker."""

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.server.judges.local.embedded_judge import ANSWERS, NAME, OTHER, choose, generate, judging
from tests.server.judges.remote.remote_judges import Counted
from tests.support.judges.smollm2 import smollm2_repository
from tests.support.servers.triton import TritonServer

from gradewire_models.judges.cores import wire
from gradewire_models.judges.repository import load_judge
from gradewire_models.repository.config import ServedModel
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.local.judge import EmbeddedJudge
from gradewire_server.judges.remote import triton_judge
from gradewire_server.judges.remote.errors import RemoteError
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.triton import TritonJudges
from gradewire_server.judges.remote.triton_judge import JudgeFacts
from gradewire_server.settings.judge import RemoteJudgeConfig


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2, with its weights as a hard link, so that a test may change the small files."""
    target = tmp_path_factory.mktemp("judges")
    for path in (smollm2_repository() / NAME).rglob("*"):
        copy = target / path.relative_to(smollm2_repository())
        if path.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            same_disk = path.stat().st_dev == target.stat().st_dev
            # ONNX Runtime reads no weights behind a symbolic link.
            os.link(path, copy) if path.suffix == ".data" and same_disk else shutil.copyfile(path, copy)
    return target


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[TritonServer]:
    directory = tmp_path_factory.mktemp("triton")
    (directory / "models").mkdir()
    with TritonServer(directory / "state", directory / "models", models=(NAME,), judges=repository) as server:
        yield server


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[RemoteJudge]:
    judge = await TritonJudges(RemoteJudgeConfig(url, NAME, **settings), Counted()).open(NAME)
    try:
        yield judge
    finally:
        await judge.close()


async def both(
    here: EmbeddedJudge, there: RemoteJudge, needs: list[Choose | Generate]
) -> list[tuple[Choice | Generated | Failure, Choice | Generated | Failure]]:
    ours = await asyncio.gather(*(here.answer(need) for need in needs))
    theirs = await asyncio.gather(*(there.answer(need) for need in needs))
    return [(one.answer, other.answer) for one, other in zip(ours, theirs, strict=True)]


async def test_choices_are_those_of_the_embedded_judge(triton: TritonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_judge, "_LIMITS", replace(triton_judge._LIMITS, max_item_tokens=300))
    needs: list[Choose | Generate] = [choose(answer) for answer in (*ANSWERS, "word " * 400)]
    needs += [choose(answer, fixed=OTHER) for answer in ANSWERS[:4]] + [choose("alone", fixed=())]
    async with judging(max_item_tokens=300) as (here, _), opened(triton.url) as there:
        pairs = await both(here, there, needs)
    for one, other in pairs:
        assert isinstance(one, Choice)
        assert isinstance(other, Choice)
        # NumPy 1 in Triton's environment rounds exponentials differently in the last bit.
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-12)
        assert other.mass == pytest.approx(one.mass, abs=1e-12)
        assert (other.prompt_tokens, other.truncated) == (one.prompt_tokens, one.truncated)
    assert [one.truncated for one, _ in pairs if isinstance(one, Choice)].count(True) == 1
    assert len({one.probabilities for one, _ in pairs if isinstance(one, Choice)}) == len(needs)


async def test_texts_are_those_of_the_embedded_judge_and_end_where_they_should(triton: TritonServer) -> None:
    needs: list[Choose | Generate] = [generate(answer, max_tokens=8) for answer in ANSWERS[:3]]
    needs.append(generate("Paris", max_tokens=40, stop=(" ",)))
    async with judging(max_item_tokens=2048) as (here, _), opened(triton.url) as there:
        pairs = await both(here, there, needs)
    assert all(isinstance(one, Generated) and one == other for one, other in pairs)
    stopped = pairs[-1][1]
    assert isinstance(stopped, Generated)
    assert stopped.complete
    assert stopped.generated_tokens is not None
    assert stopped.generated_tokens < 40


async def test_labels_and_limits_are_judged_like_the_embedded_judges(triton: TritonServer) -> None:
    prompt = choose("Paris").prompt
    options = [("yes", "yesterday"), ("A", "a"), ("alpha", "alphabetical"), ("1", "1"), ("1",)]
    needs: list[Choose | Generate] = [Choose("", prompt, each) for each in options]
    needs.append(generate("Paris", max_tokens=0))
    async with judging(max_item_tokens=2048) as (here, _), opened(triton.url) as there:
        pairs = await both(here, there, needs)
    choices = [(one, other) for one, other in pairs if isinstance(one, Choice) and isinstance(other, Choice)]
    assert len(choices) >= 2
    for one, other in choices:
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-12)
    failures = [(one, other) for one, other in pairs if isinstance(one, Failure)]
    assert [one for one, _ in failures] == [other for _, other in failures]
    assert len(choices) + len(failures) == len(needs)
    assert isinstance(pairs[-1][1], Failure)
    assert pairs[-1][1].status is Status.INVALID_PARAMETER


async def test_digest_and_precision_are_the_embedded_judges_so_that_verdicts_are_shared(triton: TritonServer) -> None:
    async with judging() as (here, _), opened(triton.url) as there:
        ours, theirs = here.status, there.status
    assert (theirs.digest, theirs.precision, theirs.licence) == (ours.digest, ours.precision, ours.licence)
    assert theirs.max_tokens == ours.max_tokens
    assert theirs.remarks == (*ours.remarks, "Runs in Triton.")
    assert not theirs.sees_images


async def test_questions_that_wait_share_a_batch(triton: TritonServer) -> None:
    before = triton.statistics(NAME)
    async with opened(triton.url) as judge:
        await asyncio.gather(*(judge.choose(choose(f"answer {number}"), deadline_s=None) for number in range(24)))
    triton.wait_for_inference_count(NAME, int(before["inference_count"]) + 24)
    after = triton.statistics(NAME)
    assert int(after["execution_count"]) - int(before["execution_count"]) <= 12


async def test_what_does_not_fit_fails_alone(triton: TritonServer) -> None:
    long = JudgePrompt((), "question " * 4000, "Paris", opening="Rating:")
    needs = [choose("Paris"), Choose("", long, ("1", "2")), Choose("", choose("Paris").prompt, ("1", "1"))]
    async with opened(triton.url, max_prompt_characters=100_000) as judge:
        good, bad, same = [(await judge.choose(need, deadline_s=None)).answer for need in needs]
        assert judge.trouble() == ""
    assert isinstance(good, Choice)
    assert isinstance(bad, Failure)
    assert bad.status is Status.INVALID_INPUT
    assert isinstance(same, Failure)
    assert same.status is Status.INVALID_PARAMETER


async def test_cancelled_and_late_questions_leave_no_trouble(triton: TritonServer) -> None:
    async with opened(triton.url) as judge:
        leaving = [
            asyncio.create_task(judge.choose(choose(f"leaving {number}"), deadline_s=None)) for number in range(9)
        ]
        await asyncio.sleep(0.02)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        late = (await judge.choose(choose("late"), deadline_s=time.monotonic())).answer
        assert isinstance(late, Failure)
        assert late.status is Status.TIMEOUT
        assert isinstance((await judge.choose(choose("Paris"), deadline_s=None)).answer, Choice)
        assert judge.trouble() == ""


@pytest.mark.restarts
async def test_another_judge_in_its_place_answers_nobody_who_asked_the_first(
    triton: TritonServer, repository: Path
) -> None:
    path = repository / NAME / "config.pbtxt"
    first = path.read_text()
    digest = load_judge(repository, NAME).digests["int8"]
    async with opened(triton.url) as judge:
        assert isinstance((await judge.choose(choose("Paris"), deadline_s=None)).answer, Choice)
        path.write_text(first.replace(digest, "0" * 64))
        try:
            await asyncio.to_thread(triton.load, NAME)
            refused = (await judge.choose(choose("Paris"), deadline_s=None)).answer
            with pytest.raises(RemoteError, match="a different digest"):
                await judge._server.probe()
        finally:
            path.write_text(first)
            await asyncio.to_thread(triton.load, NAME)
        await judge._server.probe()  # the first judge is back
    assert isinstance(refused, Failure)
    assert refused.status is Status.MODEL_UNAVAILABLE
    assert "a different digest. Restart the server" in refused.message


@pytest.mark.restarts
async def test_a_judge_whose_process_died_is_loaded_again(triton: TritonServer) -> None:
    async with opened(triton.url) as judge:
        first = (await judge.choose(choose("Paris"), deadline_s=None)).answer
        triton.kill_stubs()
        lost = (await judge.choose(choose("Paris"), deadline_s=None)).answer
        assert isinstance(lost, Failure)
        assert lost.status is Status.UNAVAILABLE
        assert triton.is_model_ready(NAME)  # what Triton says is no proof
        give_up_s = time.monotonic() + 60
        while judge.trouble():
            assert time.monotonic() < give_up_s, judge.trouble()
            await asyncio.sleep(0.2)
        assert (await judge.choose(choose("Paris"), deadline_s=None)).answer == first


@pytest.mark.restarts
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('key: "gradewire.protocol"\n  value {\n    string_value: "1"', '"1"', '"2"'), "a different version"),
        (('key: "gradewire.eos_ids"', "eos_ids", "eos"), "config.pbtxt in Triton is damaged"),
    ],
)
async def test_a_description_that_this_server_cannot_read_opens_no_judge(
    triton: TritonServer, repository: Path, change: tuple[str, str, str], said: str
) -> None:
    path = repository / NAME / "config.pbtxt"
    first = path.read_text()
    at, old, new = change
    assert at in first
    path.write_text(first.replace(at, at.replace(old, new)))
    try:
        await asyncio.to_thread(triton.load, NAME)
        with pytest.raises(JudgeUnavailableError, match=re.escape(said)) as caught:
            await TritonJudges(RemoteJudgeConfig(triton.url, NAME), Counted()).open(NAME)
    finally:
        path.write_text(first)
        await asyncio.to_thread(triton.load, NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE


def test_a_model_that_is_no_judge_has_no_facts() -> None:
    other = ServedModel(0, {}, {"kind": "encoder"}, 1, frozenset(), "")
    assert JudgeFacts.of(other) is None
    with pytest.raises(RemoteError):
        JudgeFacts.of(
            ServedModel(0, {}, {"kind": "judge", "protocol": wire.PROTOCOL, "digest": "x"}, 1, frozenset(), "")
        )
