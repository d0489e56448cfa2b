"""Workers that die, hang, refuse or lose their server; and what happens to those who wait."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.judges.smollm2 import smollm2_repository

from gradewire_proto.wire_rules import Backoff
from gradewire_server import process
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose, Generate
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.local.judge import EmbeddedJudge, EmbeddedJudges
from gradewire_server.settings.judge import EmbeddedJudgeConfig

from .embedded_judge import ANSWERS, NAME, Observed, alive, answers, choose, generate, gone, judging, worker_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
NEEDS: list[Choose | Generate] = [*(choose(answer) for answer in ANSWERS), generate("Paris")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[tuple[EmbeddedJudge, Observed]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "RESTART_BACKOFF", Backoff(0.01, 30.0))
        async with judging(run_timeout_s=2.0, token_timeout_s=0.01, nice=7) as pair:
            yield pair


@pytest.fixture
def judge(opened: tuple[EmbeddedJudge, Observed]) -> EmbeddedJudge:
    return opened[0]


@pytest.fixture
def observed(opened: tuple[EmbeddedJudge, Observed]) -> Observed:
    opened[1].runs.clear()
    opened[1].restarts = 0
    opened[1].ran_once.clear()
    return opened[1]


async def test_signals_that_stop_a_server_are_not_for_its_worker(judge: EmbeddedJudge, observed: Observed) -> None:
    pid = worker_of(judge)
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    assert isinstance((await answers(judge, [choose("Paris")]))[0], Choice)
    assert observed.restarts == 0
    assert worker_of(judge) == pid


async def test_it_yields_to_what_has_to_be_quick(judge: EmbeddedJudge) -> None:
    assert os.getpriority(os.PRIO_PROCESS, worker_of(judge)) == os.getpriority(os.PRIO_PROCESS, 0) + 7


@pytest.mark.restarts
async def test_a_worker_that_is_killed_fails_its_run_and_no_other_and_comes_back(
    judge: EmbeddedJudge, observed: Observed
) -> None:
    expected = await answers(judge, NEEDS)
    observed.ran_once.clear()
    pid = worker_of(judge)
    asking = asyncio.create_task(answers(judge, NEEDS))
    await observed.ran_once.wait()
    os.kill(pid, signal.SIGKILL)
    found = await asking
    lost = [answer for answer in found if isinstance(answer, Failure)]
    assert lost
    assert all(failure.status is Status.UNAVAILABLE for failure in lost)
    assert all(failure.retry_after_s and failure.retry_after_s > 0.0 for failure in lost)
    assert "signal 9" in lost[0].message
    # Who waited for a later run got the answer of the next worker, the same to the last bit.
    answered = [pair for pair in zip(found, expected, strict=True) if not isinstance(pair[0], Failure)]
    assert len(answered) > 2
    assert all(answer == want for answer, want in answered)
    assert observed.restarts == 1
    assert judge.trouble() == ""
    assert worker_of(judge) != pid
    assert await answers(judge, NEEDS) == expected
    assert not alive(pid)


@pytest.mark.restarts
async def test_a_worker_that_hangs_is_ended_and_replaced(judge: EmbeddedJudge, observed: Observed) -> None:
    await answers(judge, NEEDS[:1])
    observed.runs.clear()
    expected = await answers(judge, NEEDS[:1])
    (run,) = observed.runs
    pid = worker_of(judge)
    os.kill(pid, signal.SIGSTOP)
    (failure,) = await answers(judge, NEEDS[:1])
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNAVAILABLE
    assert f"within {2.0 + 0.01 * run.prefill_tokens:g} s" in failure.message
    assert await answers(judge, NEEDS[:1]) == expected
    assert not alive(pid)
    assert observed.restarts == 1


@pytest.mark.restarts
async def test_a_worker_that_dies_idle_is_noticed_and_nobody_waits_for_one_that_cannot_come_back(
    tmp_path: Path, opened: object
) -> None:
    del opened  # which makes restarts quick
    repository = _copy(tmp_path)
    observed = Observed()
    judge = await EmbeddedJudges(EmbeddedJudgeConfig(repository, form="int8"), observed).open(NAME)
    try:
        expected = await answers(judge, NEEDS[:1])
        graph = repository / NAME / "int8" / "model.onnx"
        whole = graph.read_bytes()
        graph.write_bytes(b"not a graph")
        os.kill(worker_of(judge), signal.SIGKILL)
        await _until(lambda: bool(judge.trouble()))  # nobody has asked yet
        found = await answers(judge, NEEDS)
        assert all(isinstance(answer, Failure) and answer.status is Status.UNAVAILABLE for answer in found)
        assert all(answer.retry_after_s for answer in found)
        assert "cannot be started" in judge.trouble()
        assert observed.restarts >= 3
        graph.write_bytes(whole)
        await _until(lambda: not judge.trouble())
        assert await answers(judge, NEEDS[:1]) == expected
    finally:
        await judge.close()


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not true():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def test_closing_ends_the_worker_and_everybody_who_waits(judge: EmbeddedJudge, observed: Observed) -> None:
    pid = worker_of(judge)
    asking = asyncio.create_task(answers(judge, NEEDS))
    await observed.ran_once.wait()
    await judge.close()
    assert any(isinstance(answer, Failure) and answer.status is Status.UNAVAILABLE for answer in await asking)
    assert not alive(pid)
    (after,) = await answers(judge, [choose("Paris")])
    assert isinstance(after, Failure)
    assert after.status is Status.UNAVAILABLE


def _copy(tmp_path: Path) -> Path:
    """The judge in a repository of its own; its weights as links."""
    source, target = smollm2_repository() / NAME, tmp_path / NAME
    for path in source.rglob("*"):
        copy = target / path.relative_to(source)
        if path.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.stat().st_size > 10_000_000:
                os.link(path.resolve(), copy) if path.stat().st_dev == tmp_path.stat().st_dev else copy.symlink_to(path)
            else:
                shutil.copyfile(path, copy)
    return tmp_path


def _cut_weights(directory: Path) -> None:
    weights = directory / "int8" / "model.onnx.data"
    weights.unlink()
    weights.write_bytes(b"short")


def _other_graph(directory: Path) -> None:
    (directory / "int8" / "model.onnx").write_bytes(b"another graph")


@pytest.mark.parametrize("break_it", [_cut_weights, _other_graph])
async def test_a_broken_judge_is_not_opened(tmp_path: Path, break_it: Callable[[Path], None]) -> None:
    repository = _copy(tmp_path)
    break_it(repository / NAME)
    judges = EmbeddedJudges(EmbeddedJudgeConfig(repository, form="int8"), Observed())
    with pytest.raises(JudgeUnavailableError) as caught:
        await judges.open(NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    assert "gradewire models build" in caught.value.failure.message
    assert str(tmp_path) not in caught.value.failure.message


async def test_a_judge_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    judges = EmbeddedJudges(EmbeddedJudgeConfig(tmp_path), Observed())
    with pytest.raises(JudgeUnavailableError) as caught:
        await judges.open(NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    assert f"gradewire models build {NAME}" in caught.value.failure.message
    listed = {status.name: status for status in judges.listed()}
    assert listed[NAME].state == "missing"
    assert listed[NAME].how_to_get == f"gradewire models build {NAME}"


_SERVER = """
import asyncio, sys
from tests.server.judges.local.embedded_judge import choose, judging, worker_of
async def main():
    async with judging() as (judge, _):
        print(worker_of(judge), flush=True)
        while True:
            await judge.choose(choose("Paris"), deadline_s=None)
asyncio.run(main())
"""


async def test_a_worker_does_not_outlive_its_server() -> None:
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE)  # noqa: ASYNC220 - returns at once
    assert server.stdout is not None
    pid = int(await asyncio.to_thread(server.stdout.readline))
    server.kill()
    server.wait()
    server.stdout.close()
    assert await gone(pid)
