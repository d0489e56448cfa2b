"""Judge items a second: over a real socket, from gradewire's own server to one that answers by a script."""

import argparse
import asyncio
import itertools
import sys
from pathlib import Path

import pytest
from benchmarks.gpu.judging import AT_A_TIME, JudgeChoice, JudgeServer, judged_per_s
from benchmarks.gpu.run import judge_of, main
from benchmarks.gpu.steps import Budget, Steps, run_step
from tests.benchmarks.gpu.test_gpu import MODELS, WITHOUT
from tests.support.fakes.odd_openai import Heard, OddServer, completion

TOPS = {"correct": -0.1, "incorrect": -2.5}
RIGHT = completion("correct", [TOPS], prompt_tokens=200, completion_tokens=2)
NO_LABEL = completion("perhaps", [{"perhaps": -0.1}], prompt_tokens=200, completion_tokens=2)


async def rated(minilm: Path, server: OddServer, *, deadline_s: float = 60.0) -> dict[str, object]:
    judge = JudgeServer(server.url, "m")
    return await asyncio.to_thread(judged_per_s, minilm, MODELS[0], judge, 0.1, deadline_s=deadline_s)


async def test_items_are_rated_so_many_at_a_time_and_failures_are_counted(minilm: Path) -> None:
    numbers = itertools.count()
    async with OddServer(owner="vllm") as server:

        def answer(_: Heard) -> bytes:
            number = next(numbers)
            if number == 0:
                server.gate.clear()  # all that come behind the first one have to meet
            return NO_LABEL if number % 3 == 1 else RIGHT

        async def open_gate() -> None:
            while len(server.heard) <= AT_A_TIME:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.02)
            assert len(server.heard) == 1 + AT_A_TIME
            server.gate.set()

        server.answers = [answer]
        row, _ = await asyncio.gather(rated(minilm, server), open_gate())
        assert (row["judge"], row["metric"], row["items at a time"]) == ("m", "lave", AT_A_TIME)
        assert isinstance(row["items"], int)
        assert isinstance(row["failed"], int)
        assert row["items"] > 0
        assert row["failed"] > 0
        assert row["items"] + row["failed"] == len(server.heard) - 1
        assert row["why"] == f"{row['failed']} UNPARSABLE"
        per_s = row["items/s"]
        assert isinstance(per_s, float)
        assert row["tokens read/s"] == pytest.approx(200 * per_s, rel=0.01, abs=1)
        assert row["tokens written/s"] == pytest.approx(2 * per_s, rel=0.01, abs=1)


async def test_tokens_that_the_server_does_not_count_are_not_told(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[completion("correct", [TOPS])]) as server:
        row = await rated(minilm, server)
    assert (row["tokens read/s"], row["tokens written/s"], row["failed"]) == ("not told", "not told", 0)


async def test_a_judge_that_does_not_answer_is_waited_for_until_the_deadline(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT]) as server:
        server.gate.clear()
        with pytest.raises(RuntimeError, match=r"the judge rates nothing: (TIMEOUT|UNAVAILABLE)"):
            await rated(minilm, server, deadline_s=1.0)


async def test_a_judge_that_rates_one_item_only_is_told(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT, NO_LABEL]) as server:
        with pytest.raises(RuntimeError, match=r"then none: \d+ UNPARSABLE"):
            await rated(minilm, server)


async def test_the_step_asks_the_server_that_was_named(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT]) as server:
        steps = Steps(WITHOUT, minilm, MODELS, Budget(0.1, 0), JudgeChoice(JudgeServer(server.url, "m")))
        rows, why = await asyncio.to_thread(run_step, steps.judge)
    assert why == ""
    assert [row["judge"] for row in rows] == ["m"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--judge-url", "http://127.0.0.1:1/v1"], "--judge-url and --judge-model belong together"),
        (["--judge-model", "m"], "--judge-url and --judge-model belong together"),
        (["--judge-url", "u", "--judge-model", "m", "--judge-weights", "."], "does not go with --judge-url"),
        (["--judge-weights", "nowhere"], "nowhere is no directory"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    given: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.sh", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_options_name_a_judge(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    given = argparse.Namespace(judge_url="u", judge_model="m", judge_weights=None)
    assert judge_of(parser, given) == JudgeChoice(JudgeServer("u", "m"))
    given = argparse.Namespace(judge_url=None, judge_model=None, judge_weights=tmp_path)
    assert judge_of(parser, given) == JudgeChoice(weights=tmp_path)


def test_without_httpx2_the_step_says_what_to_install(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    steps = Steps(WITHOUT, minilm, MODELS, Budget(0.1, 0), JudgeChoice(JudgeServer("u", "m")))
    assert "pip install 'gradewire[judge]'" in run_step(steps.judge)[1]
