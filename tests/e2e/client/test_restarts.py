"""A training loop, and every other call, outlast a server that is killed and started again."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.server_process import ServerProcess, lasting_port

from gradewire import Client, ScoreReport

ROWS: list[dict[str, Any]] = [
    {"id": str(number), "references": ["a cat", f"{number} cats"], "prediction": f"{number % 7} small kittens"}
    for number in range(50)
]
METRICS = "smile,exact_match"
# Submissions that are answered between a start and the next kill, so that each kill finds some in work.
_ANSWERED = 30


def scores(report: ScoreReport) -> list[float | None]:
    return [result.score for item in report for result in item.scores.values()]


@pytest.fixture
def mortal(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    """A server that comes back at the same port."""
    settings = {"port": lasting_port(), "model_repository": minilm, "judge_backend": "none", "drain_s": 0}
    with ServerProcess(tmp_path, **settings) as server:
        yield server


def restart(server: ServerProcess) -> None:
    server.kill()
    server.start()
    server.wait_until_serving()


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.hostile)])
@pytest.mark.timeout(300)
def test_a_training_loop_loses_no_future_to_restarts(mortal: ServerProcess, kills: int) -> None:
    futures: list[Future[ScoreReport]] = []
    answered = threading.Semaphore(0)
    over = threading.Event()

    def kill_and_start() -> None:
        try:
            for _ in range(kills):
                for _ in range(_ANSWERED):
                    assert answered.acquire(timeout=60), "nothing is answered after a restart"
                restart(mortal)
        finally:
            over.set()

    with Client(mortal.address) as client, ThreadPoolExecutor(1) as killer:
        undisturbed = [scores(client.score([row], METRICS)) for row in ROWS]
        killed = killer.submit(kill_and_start)
        while not over.is_set():
            row = ROWS[len(futures) % len(ROWS)]
            futures.append(client.submit([row], METRICS, callback=lambda _: answered.release()))
            time.sleep(0.003)
        killed.result()
        assert client.flush(120)
    assert len(futures) > kills * _ANSWERED
    assert [future.exception(0) for future in futures] == [None] * len(futures)
    for number, future in enumerate(futures):
        assert scores(future.result(0)) == pytest.approx(undisturbed[number % len(ROWS)], abs=2e-4)


def test_every_call_that_is_made_meanwhile_is_answered(mortal: ServerProcess) -> None:
    def slow_rows() -> Iterator[dict[str, Any]]:
        for position, row in enumerate(ROWS):
            if position == len(ROWS) // 2:
                killed.wait(60)
            yield row

    killed = threading.Event()
    with Client(mortal.address) as client, ThreadPoolExecutor(4) as others:
        undisturbed = scores(client.score(ROWS, METRICS))
        stream = others.submit(lambda: sorted(client.score_stream(slow_rows(), METRICS), key=lambda item: item.index))
        mortal.kill()
        killed.set()
        batch = others.submit(client.score, ROWS * 10, METRICS)
        listed = others.submit(client.models)
        prepared = others.submit(client.prepare, ROWS, METRICS)
        mortal.start()
        mortal.wait_until_serving()
        assert scores(batch.result(60)) == pytest.approx(undisturbed * 10, abs=2e-4)
        streamed = [result.score for item in stream.result(60) for result in item.scores.values()]
        assert streamed == pytest.approx(undisturbed, abs=2e-4)
        assert listed.result(60).models
        assert prepared.result(60).failures == ()


@pytest.mark.hostile
def test_the_command_says_that_it_waits_and_goes_on(mortal: ServerProcess, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    rows = [row | {"id": str(number)} for number, row in enumerate(ROWS * 20)]
    given = [json.dumps(row) + "\n" for row in rows]
    arguments = ["score", "-", "--server", mortal.address, "--metrics", METRICS, "--out", out]
    command = [str(argument) for argument in (Path(sys.executable).with_name("gradewire"), *arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdin is not None
        assert run.stderr is not None
        run.stdin.writelines(given[:600])
        run.stdin.flush()
        while not (out.exists() and out.stat().st_size):
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.005)
        mortal.kill()
        run.stdin.writelines(given[600:])
        run.stdin.close()
        said = ""
        while "retrying until" not in said:
            said = run.stderr.readline()
            assert said, "it ended instead"
        mortal.start()
        mortal.wait_until_serving()
        rest = run.stderr.read()
        assert run.wait(60) == 0, rest
    assert mortal.address in said
    assert "server answers again" in rest
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in results] == [row["id"] for row in rows]
    assert {result["status"] for row in results for result in row["scores"].values()} == {"OK"}
