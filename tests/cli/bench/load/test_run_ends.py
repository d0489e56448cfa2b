"""`gradewire bench load` where something ends the run: the user, the server, or the client itself."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from tests.cli.bench.load.conftest import going, metrics_page
from tests.cli.conftest import Command
from tests.client.small_server import Fault, SmallServer, run_small_server

from gradewire_cli.bench.load.calls import poisson
from gradewire_cli.results.manifest import read_manifest

# Calls of the first step of 0.3 s at 40 calls a second.
CALLS = len(poisson(40, 0.3, seed=4))


def test_ctrl_c_keeps_what_was_measured_and_says_that_it_is_partial(server: SmallServer, tmp_path: Path) -> None:
    out = tmp_path / "load.json"
    arguments = ["--rate", "50", "--duration", "60", "--metrics", "exact_match", "--slo-s", "30", "--json", str(out)]
    server.script.requests.clear()
    program = "import sys; from gradewire_cli import main; sys.argv[0] = 'gradewire'; main()"
    run = subprocess.Popen(
        [sys.executable, "-c", program, "bench", "load", "--server", server.address, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline_s = time.monotonic() + 30
        while len(server.script.requests) < 20 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        # As a terminal does: all processes of the group hear it.
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 130, output
    assert "PARTIAL" in output
    assert "Traceback" not in output
    document = json.loads(out.read_text())
    assert document["partial"]
    assert 10 < document["steps"][0]["scored_calls"] < 3000


def test_a_server_that_goes_away_is_no_knee(command: Command, server: SmallServer, tmp_path: Path) -> None:
    out = tmp_path / "load.json"
    step = ("--duration", "0.3", "--seed", "4", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
    server.script.requests.clear()

    def leave() -> None:
        server.script.faults += [Fault(grpc.StatusCode.UNAVAILABLE)] * 10_000

    with going(lambda: len(server.script.requests) >= 5, leave):
        done = command("bench", "load", "--server", server.address, "--start-rate", "40", *step, "--json", out)
    server.script.faults.clear()
    assert done.exit_code == 4, done.output
    assert "became unavailable" in done.output
    document = json.loads(out.read_text())
    assert document["knee"]["lost"]
    # The server may have gone in the middle of a step, which misses then.
    assert document["steps"][-1]["outcome"] == "lost"


def test_a_server_that_dies_with_its_page_of_metrics_is_no_result_and_keeps_what_was_measured(
    command: Command, tmp_path: Path
) -> None:
    out, html = tmp_path / "load.json", tmp_path / "load.html"
    step = ("--duration", "0.3", "--seed", "4", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
    with ExitStack() as stack:
        own = stack.enter_context(run_small_server())
        url = stack.enter_context(metrics_page())
        at = ("--server", own.address, "--metrics-url", f"{url}?token=SECRET", "--start-rate", "40")
        with going(lambda: len(own.script.requests) > CALLS + 2, stack.close):
            done = command("bench", "load", *at, *step, "--json", out, "--html", html)
    assert done.exit_code == 4, done.output
    told = " ".join(done.output.split())
    assert "NO RESULT: the server kept up with" in told
    assert "then became unavailable" in told
    assert "the server's metrics page became unreadable" in told
    document = json.loads(out.read_text())
    assert document["knee"]["lost"]
    first, *_, last = document["steps"]
    assert (first["outcome"], last["outcome"]) == ("holds", "lost")
    assert first["server_cpu_s_per_item"] == pytest.approx(1 / CALLS)
    assert last["server_after"] is None
    assert url in document["metrics_page_unread"]
    assert "SECRET" not in done.output + out.read_text() + html.read_text()
    manifest = read_manifest(tmp_path / "load.json.manifest.json")
    assert manifest.results["calls_by_code"]["UNAVAILABLE"] > 0


def test_a_page_of_metrics_that_was_never_there_is_said_before_anything_is_sent(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    server.script.requests.clear()
    at = ("--server", server.address, "--metrics-url", "http://127.0.0.1:1/metrics", "--metrics", "exact_match")
    done = command("bench", "load", "--mix", "repeats", *at, "--json", tmp_path / "load.json")
    assert done.exit_code == 2
    assert "--metrics-url http://127.0.0.1:1/metrics" in done.output
    assert not [item for request in server.script.requests for item in request.items]
    assert not (tmp_path / "load.json").exists()


def test_what_was_measured_is_written_when_the_client_breaks(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    out = tmp_path / "load.json"
    step = ("--duration", "0.3", "--seed", "4", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
    at = ("--server", server.address, "--start-rate", "40")
    server.script.requests.clear()
    others = multiprocessing.active_children()  # of fixtures that later tests share

    def kill() -> None:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()

    with going(lambda: len(server.script.requests) > CALLS + 2, kill):
        done = command("bench", "load", *at, *step, "--json", out)
    assert done.exit_code == 2, done.output
    assert "PARTIAL: the run failed (a client process ended early, so its counts are lost)" in done.output
    document = json.loads(out.read_text())
    assert (document["partial"], document["error"]) == (True, "a client process ended early, so its counts are lost")
    assert document["steps"][0]["scored_calls"] == CALLS
    manifest = read_manifest(tmp_path / "load.json.manifest.json")
    assert manifest.results["partial"]
    assert manifest.counts.rows >= CALLS


def test_a_server_that_is_not_there_is_told_in_one_line(command: Command) -> None:
    done = command("bench", "load", "--server", "127.0.0.1:1", "--wait-s", "0.3")
    assert done.exit_code == 3
    assert "127.0.0.1:1" in done.output
