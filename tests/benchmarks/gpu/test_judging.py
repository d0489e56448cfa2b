"""Judges on the machine that is measured: vLLM found, started, waited for and ended; a program stands for it."""

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
from benchmarks.common.ports import free_port
from benchmarks.gpu import judging, vllm_servers
from benchmarks.gpu.judge_sizes import LARGE, SMALL
from benchmarks.gpu.judging import JudgeChoice, judged, lave, plainly_asked
from benchmarks.gpu.run import judge_of, main
from benchmarks.gpu.step_processes import NotRunError, Row
from benchmarks.gpu.vllm_servers import DRAWN_MODELS, JudgeServer, vllm_command, vllm_started, write_model
from tests.benchmarks.gpu.test_gpu import bench
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply
from tokenizers import Tokenizer

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
    files = sorted(os.listdir(sys.argv[2]))
    with open({told!r}, "a") as file:
        pids = [os.getpid(), engine.pid]
        print(json.dumps(dict(arguments=sys.argv[1:], pids=pids, set=given, files=files)), file=file)
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


def starts(told: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.read_text().splitlines()]


def check_start_with_drawn_weights(ran: dict[str, Any]) -> None:
    assert ran["arguments"][0] == "serve"
    assert ran["arguments"][ran["arguments"].index("--load-format") + 1] == "dummy"
    assert "--enforce-eager" in ran["arguments"]
    assert "" not in ran["arguments"]
    assert ran["files"] == ["config.json", "tokenizer.json", "tokenizer_config.json"]
    assert ran["set"] == {"HF_HUB_OFFLINE": "1", "PYTHONPATH": "/of/the/user"}


@pytest.mark.hostile  # seconds of two servers; of two models below, one does not start
def test_two_drawn_models_are_served_at_once_rate_items_and_are_ended(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = answering(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / '.gpu-pack' / 'site'}:/of/the/user")
    monkeypatch.setattr(judging, "TINY_MODELS", DRAWN_MODELS)
    rows = list(lave(bench(minilm, rehearsal=True, seconds=0.1), JudgeChoice()))
    assert [(row["judge"], row["client"], row["at a time"], row["failed"]) for row in rows] == [
        ("1.5 B", "gradewire, `lave`", 1, 0),
        ("1.5 B", "plain", 1, 0),
        ("7 B", "gradewire, `lave`", 1, 0),
        ("7 B", "plain", 1, 0),
    ]
    assert all(row["items/s"] > 0 for row in rows)
    ran = starts(told)
    assert len(ran) == 2
    for each in ran:
        check_start_with_drawn_weights(each)
    wait_until_gone([pid for each in ran for pid in each["pids"]])


def test_a_model_of_the_user_is_served_alone(minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = answering(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    weights = tmp_path / "my-judge"
    weights.mkdir()
    rows = list(lave(bench(minilm, rehearsal=True, seconds=0.1), JudgeChoice(weights=weights)))
    assert [(row["judge"], row["failed"]) for row in rows] == [("my-judge", 0), ("my-judge", 0)]
    (ran,) = starts(told)
    assert ran["arguments"][:4] == ["serve", str(weights), "--host", "127.0.0.1"]
    assert "--load-format" not in ran["arguments"]
    wait_until_gone(ran["pids"])


def test_a_judge_that_does_not_start_leaves_the_other_ones_values(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = answering(tmp_path)
    works = (tmp_path / "vllm").rename(tmp_path / "works")
    script = f"case $(cat $2/config.json) in *28672*|*3584*) echo no memory; exit 4 ;; *) exec {works} $@ ;; esac"
    put(tmp_path, f"#!/bin/sh\n{script}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / '.gpu-pack' / 'site'}:/of/the/user")
    monkeypatch.setattr(judging, "TINY_MODELS", DRAWN_MODELS)
    rows: list[Row] = []
    with pytest.raises(RuntimeError, match=r"^7 B: vLLM stopped with exit status 4: no memory"):
        rows.extend(lave(bench(minilm, rehearsal=True, seconds=0.1), JudgeChoice()))  # keeps what came before
    assert [(row["judge"], row["client"], row["at a time"], row["failed"]) for row in rows] == [
        ("1.5 B", "gradewire, `lave`", 1, 0),
        ("1.5 B", "plain", 1, 0),
    ]
    assert all(row["items/s"] > 0 for row in rows)
    (ran,) = starts(told)
    check_start_with_drawn_weights(ran)
    wait_until_gone(ran["pids"])


@pytest.mark.parametrize("model", DRAWN_MODELS, ids=lambda model: str(model.name))
def test_a_drawn_model_is_described_as_qwen_with_a_tokenizer_of_an_encoder(
    model: vllm_servers.DrawnModel, minilm: Path, tmp_path: Path
) -> None:
    write_model(model, bench(minilm).cpu.tokenizer_path, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["hidden_size"] == {SMALL: 1536, LARGE: 3584}[model.sizes]
    assert config["tie_word_embeddings"] == (model.sizes == SMALL)
    # As much as 256 prompts of 600 tokens need, without their common beginning twice: two bytes for keys and values.
    token_bytes = 2 * 2 * model.sizes.layers * model.sizes.kv_heads * model.sizes.head_dim
    assert model.cache_gib * (1 << 30) > 256 * 600 * token_bytes
    words = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert len(words.encode("word " * 1_000).ids) > 1_000  # an encoder's own tokenizer would cut it
    assert words.get_vocab_size() < config["vocab_size"]
    assert config["eos_token_id"] == words.token_to_id("[SEP]")
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert words.token_to_id(settings["pad_token"]) is not None
    assert "message['content']" in settings["chat_template"]


def test_a_run_that_is_ended_ends_it(tmp_path: Path) -> None:
    told = answering(tmp_path)
    program = (
        "import sys, time; from pathlib import Path; from benchmarks.gpu.step_processes import exit_on_sigterm\n"
        "from benchmarks.gpu.vllm_servers import vllm_started\n"
        "exit_on_sigterm()\n"
        "with vllm_started([sys.argv[1], 'serve'], Path('.')) as vllm:\n"
        "    vllm.wait(60); print('up', flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "vllm")]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        pids = starts(told)[0]["pids"]
        assert all(map(is_running, pids))
        run.terminate()
        assert run.wait(60) == 128 + signal.SIGTERM
    wait_until_gone(pids)


def test_one_that_ends_says_what_it_said(tmp_path: Path) -> None:
    command = put(tmp_path, "#!/bin/sh\necho CUDA out of memory\nexit 3\n")
    with (
        pytest.raises(RuntimeError, match="vLLM stopped with exit status 3: CUDA out of memory"),
        vllm_started([str(command)], tmp_path) as vllm,
    ):
        vllm.wait(60)


def test_one_that_is_never_healthy_is_not_waited_for_longer(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    command = put(tmp_path, f"#!/bin/sh\necho loading weights\necho $$ > {told}\nexec sleep 600\n")
    with (
        pytest.raises(RuntimeError, match=r"not healthy after 1 s: loading weights"),
        vllm_started([str(command)], tmp_path) as vllm,
    ):
        vllm.wait(1.0)
    wait_until_gone([int(told.read_text())])


def test_without_vllm_the_step_says_what_to_give(minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vllm_command() == []
    with pytest.raises(NotRunError, match=r"vLLM is not installed\. .*--judge-url URL and --judge-model NAME"):
        list(lave(bench(minilm), JudgeChoice()))
    command = put(tmp_path, "")
    assert vllm_command() == [str(command), "serve"]
    with pytest.raises(NotRunError, match="there is no GPU"):
        list(lave(bench(minilm), JudgeChoice()))


def test_the_packs_vllm_comes_first_and_sees_only_its_own_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "vllm" / "entrypoints").mkdir(parents=True)
    monkeypatch.setattr(vllm_servers, "_PACKED_SITE", tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:/of/the/user")
    put(tmp_path, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vllm_command() == [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]
    assert vllm_servers._environment()["PYTHONPATH"] == f"{tmp_path / 'site'}:/of/the/user"


def test_a_module_of_this_python_is_as_good_as_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert vllm_command() == [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]


TOPS = {"correct": -0.1, "incorrect": -2.5}
RIGHT = completion("correct", [TOPS], prompt_tokens=200, completion_tokens=2)
NO_LABEL = completion("perhaps", [{"perhaps": -0.1}], prompt_tokens=200, completion_tokens=2)


async def rated(minilm: Path, server: OddServer, *, at_a_time: int = 8, deadline_s: float = 60.0) -> Row:
    judge = JudgeServer(server.url, "m")
    found = await asyncio.to_thread(lambda: list(judged(bench(minilm), judge, 0.1, [at_a_time], deadline_s=deadline_s)))
    return found[0]


async def test_items_are_rated_so_many_at_a_time_and_failures_are_counted(minilm: Path) -> None:
    numbers = itertools.count()
    at_a_time = 64
    async with OddServer(owner="vllm") as server:

        def answer(_: Heard) -> bytes:
            number = next(numbers)
            if number == 0:
                server.gate.clear()  # all that come behind the first one have to meet
            return NO_LABEL if number % 3 == 1 else RIGHT

        async def open_gate() -> None:
            while len(server.heard) <= at_a_time:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.02)
            assert len(server.heard) == 1 + at_a_time
            server.gate.set()

        server.answers = [answer]
        row, _ = await asyncio.gather(rated(minilm, server, at_a_time=at_a_time), open_gate())
        assert row["at a time"] == at_a_time
        assert row["items"] > 0
        assert row["failed"] > 0
        assert row["items"] + row["failed"] == len(server.heard) - 1
        assert row["why"] == f"{row['failed']} UNPARSABLE"
        assert row["tokens read/s"] == pytest.approx(200 * row["items/s"], rel=0.01, abs=1)
        assert row["tokens written/s"] == pytest.approx(2 * row["items/s"], rel=0.01, abs=1)


async def test_a_judge_that_does_not_answer_is_waited_for_until_the_deadline(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT]) as server:
        server.gate.clear()
        with pytest.raises(RuntimeError, match=r"the judge did not rate an item: (TIMEOUT|UNAVAILABLE)"):
            await rated(minilm, server, deadline_s=1.0)


async def test_a_judge_that_rates_one_item_only_is_told(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[RIGHT, NO_LABEL]) as server:
        with pytest.raises(RuntimeError, match=r"rated only the first item: \d+ UNPARSABLE"):
            await rated(minilm, server)


async def test_the_step_asks_the_server_that_was_named_whose_tokens_are_told_if_it_counts_them(minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[completion("correct", [TOPS])]) as server:
        choice = JudgeChoice(JudgeServer(server.url, "m"))
        rows = await asyncio.to_thread(lambda: list(lave(bench(minilm), choice)))
    assert [(row["judge"], row["client"], row["at a time"]) for row in rows] == [
        ("m", client, load) for client in ("gradewire, `lave`", "plain") for load in (1, 64, 256)
    ]
    assert {(row["tokens read/s"], row["tokens written/s"], row["failed"]) for row in rows} == {
        ("not told", "not told", 0)
    }


async def test_a_plain_client_asks_for_one_token_of_prompts_with_a_common_beginning() -> None:
    async with OddServer(owner="vllm", answers=[RIGHT]) as server:
        judge = JudgeServer(server.url, "m")
        row = await asyncio.to_thread(plainly_asked, judge, 4, 0.1)
        bodies = [heard.body for heard in server.heard]
    assert (row["items"], row["failed"]) == (len(bodies), 0)
    assert len(bodies) >= 4
    assert {(body["model"], body["max_tokens"], body["top_logprobs"]) for body in bodies} == {("m", 1, 20)}
    first, own = zip(*([message["content"] for message in body["messages"]] for body in bodies), strict=True)
    assert len(set(first)) == 1
    assert len(set(own)) == len(own)


def test_a_plain_client_counts_calls_that_do_not_reach_a_server() -> None:
    row = plainly_asked(JudgeServer(f"http://127.0.0.1:{free_port()}/v1", "m"), 2, 0.05)
    assert row["items"] == 0
    assert row["failed"] >= 2
    assert row["why"] == f"{row['failed']} ConnectError"


async def test_a_plain_client_counts_what_the_server_refuses() -> None:
    async with OddServer(owner="vllm", answers=[reply(429)]) as server:
        row = await asyncio.to_thread(plainly_asked, JudgeServer(server.url, "m"), 2, 0.05)
    assert row["items"] == 0
    assert row["failed"] >= 2
    assert row["why"] == f"{row['failed']} HTTP 429"


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
    with pytest.raises(NotRunError, match=r"pip install 'gradewire\[judge\]'"):
        list(lave(bench(minilm), JudgeChoice(JudgeServer("u", "m"))))
