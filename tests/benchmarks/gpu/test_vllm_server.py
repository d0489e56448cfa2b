"""vLLM on the machine that is measured: found, started, waited for and ended; a program stands for it."""

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
from benchmarks.gpu.judging import JudgeChoice
from benchmarks.gpu.steps import Budget, Steps, run_step
from benchmarks.gpu.vllm_server import vllm_command, vllm_serving
from tests.benchmarks.gpu.test_gpu import MODELS, WITHOUT

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
        "from benchmarks.gpu.vllm_server import vllm_serving\n"
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
        pytest.raises(RuntimeError, match="vLLM ended with 3: CUDA out of memory"),
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
    assert "or --judge-weights DIR for the vLLM of this machine (vLLM is not here)" in whys[0]
    assert "neither the command nor a module vllm" in whys[1]
    command = put(tmp_path, "")
    assert vllm_command() == [str(command), "serve"]
    assert "(vLLM is here)" in run_step(steps(minilm, JudgeChoice()).judge)[1]
    no_time = run_step(steps(minilm, JudgeChoice(weights=tmp_path), left_s=60.0).judge)[1]
    assert no_time == "not run: no time is left to start vLLM: give fewer --seconds"


def test_a_module_of_this_python_is_as_good_as_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert vllm_command() == [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]
