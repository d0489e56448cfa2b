"""vLLM on the machine that is measured: found, started, waited for and ended; a program stands for it."""

import argparse
import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.gpu.judging import AT_A_TIME, JudgeChoice, JudgeServer, judged_per_s, vllm_command, vllm_serving
from benchmarks.gpu.run import judge_of, main
from benchmarks.gpu.steps import Budget, Steps, run_step
from tests.benchmarks.gpu.test_gpu import MODELS, WITHOUT
from tests.support.fakes.odd_openai import Heard, OddServer, completion

ROOT = Path(__file__).parents[3]
# It has a process of its own, as vLLM has for its engine, and is not healthy when it is asked first.
ANSWERS = """#!{python}
import asyncio, json, os, subprocess, sys
sys.path.insert(0, {root!r})
from tests.support.fakes.odd_openai import OddServer, completion, reply

async def serve():
    engine = subprocess.Popen(["sleep", "600"])
    names = ("HF_HUB_OFFLINE", "PYTHONPATH")
    given = {{name: os.environ[name] for name in names}}
    with open({told!r}, "w") as file:
        json.dump(dict(arguments=sys.argv[1:], pids=[os.getpid(), engine.pid], set=given), file)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    right = completion("correct", [{{"correct": -0.1, "incorrect": -2.5}}], prompt_tokens=200, completion_tokens=2)
    async with OddServer(owner="vllm", models=reply(503), answers=[right], port=port) as server:
        while server.listed < 2:
            await asyncio.sleep(0.05)
        server.models = reply(200, dict(data=[dict(id="judge", owned_by="vllm")]))
        await asyncio.Event().wait()

asyncio.run(serve())
"""


def put(directory: Path, content: str) -> Path:
    command = directory / "vllm"
    command.write_text(content)
    command.chmod(0o755)
    return command


def answering(directory: Path) -> Path:
    told = directory / "told.json"
    put(directory, ANSWERS.format(python=sys.executable, root=str(ROOT), told=str(told)))
    return told


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pids: list[int]) -> None:
    give_up_s = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < give_up_s, "what vLLM had started still runs"
        time.sleep(0.05)


def steps(minilm: Path, choice: JudgeChoice, *, left_s: float = 500.0) -> Steps:
    return Steps(WITHOUT, minilm, MODELS, Budget(0.1, time.monotonic() + left_s), choice)


def test_a_model_is_served_rates_items_and_is_ended(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = answering(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / '.gpu-pack' / 'site'}:/of/the/user")
    rows, why = run_step(steps(minilm, JudgeChoice(weights=tmp_path)).judge)
    assert why == ""
    ((judge, failed),) = [(row["judge"], row["failed"]) for row in rows]
    assert (judge, failed) == ("judge", 0)
    ran: dict[str, Any] = json.loads(told.read_text())
    assert ran["arguments"][:4] == ["serve", str(tmp_path), "--host", "127.0.0.1"]
    assert ran["set"] == {"HF_HUB_OFFLINE": "1", "PYTHONPATH": "/of/the/user"}
    wait_until_gone(ran["pids"])


def test_a_run_that_is_ended_ends_it(tmp_path: Path) -> None:
    told = answering(tmp_path)
    program = (
        "import sys, time; from pathlib import Path; from benchmarks.gpu.run import exit_on_sigterm\n"
        "from benchmarks.gpu.judging import vllm_serving\n"
        "exit_on_sigterm()\n"
        "with vllm_serving([sys.argv[1], 'serve'], Path('.')): print('up', flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "vllm")]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        pids = json.loads(told.read_text())["pids"]
        assert all(map(is_running, pids))
        run.terminate()
        assert run.wait(60) == 128 + signal.SIGTERM
    wait_until_gone(pids)


def test_one_that_ends_says_what_it_said(tmp_path: Path) -> None:
    command = put(tmp_path, "#!/bin/sh\necho CUDA out of memory\nexit 3\n")
    with (
        pytest.raises(RuntimeError, match="vLLM stopped with exit status 3: CUDA out of memory"),
        vllm_serving([str(command)], tmp_path),
    ):
        pass


def test_one_that_is_never_healthy_is_not_waited_for_longer(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    command = put(tmp_path, f"#!/bin/sh\necho loading weights\necho $$ > {told}\nexec sleep 600\n")
    with (
        pytest.raises(RuntimeError, match=r"not healthy after 1 s: loading weights"),
        vllm_serving([str(command)], tmp_path, start_s=1.0),
    ):
        pass
    wait_until_gone([int(told.read_text())])


def test_without_an_option_or_vllm_the_step_says_what_to_give(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vllm_command() == []
    whys = [run_step(steps(minilm, choice).judge)[1] for choice in (JudgeChoice(), JudgeChoice(weights=tmp_path))]
    for why in whys:
        assert why.startswith("not run: ")
        assert "--judge-url URL and --judge-model NAME" in why
    assert "or --judge-weights DIR for this machine's vLLM (vLLM is not installed)" in whys[0]
    assert "neither the command nor the module vllm is installed" in whys[1]
    command = put(tmp_path, "")
    assert vllm_command() == [str(command), "serve"]
    assert "(vLLM is installed)" in run_step(steps(minilm, JudgeChoice()).judge)[1]
    no_time = run_step(steps(minilm, JudgeChoice(weights=tmp_path), left_s=60.0).judge)[1]
    assert no_time == "not run: no time is left to start vLLM. Use fewer --seconds"


def test_a_module_of_this_python_is_as_good_as_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert vllm_command() == [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]


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
        with pytest.raises(RuntimeError, match=r"the judge did not rate an item: (TIMEOUT|UNAVAILABLE)"):
            await rated(minilm, server, deadline_s=1.0)


async def test_a_judge_that_rates_one_item_only_is_told(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT, NO_LABEL]) as server:
        with pytest.raises(RuntimeError, match=r"rated only the first item: \d+ UNPARSABLE"):
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
        (["--judge-url", "http://127.0.0.1:1/v1"], "give --judge-url and --judge-model together"),
        (["--judge-model", "m"], "give --judge-url and --judge-model together"),
        (
            ["--judge-url", "u", "--judge-model", "m", "--judge-weights", "."],
            "use either --judge-weights, which starts vLLM here, or --judge-url",
        ),
        (["--judge-weights", "nowhere"], "nowhere is not a directory"),
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
