"""`gradewire triton`: the real server, started and stopped by commands."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradewire_cli.group import gradewire
from gradewire_triton.cli import stop_detached
from gradewire_triton.state import Addresses, StateDirectory

COMMAND = (sys.executable, "-c", "from gradewire_cli import main; main()", "triton")
ANY_PORTS = ("--grpc-port=0", "--http-port=0", "--metrics-port=0")
MODEL = "all-MiniLM-L6-v2"


def detach(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "up", "--detach", *arguments, *ANY_PORTS]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def triton(*arguments: str) -> Result:
    return CliRunner().invoke(gradewire, ["triton", *arguments])


@pytest.fixture
def state(tmp_path: Path) -> Iterator[str]:
    argument = f"--state={tmp_path / 'state'}"
    yield argument
    stop_detached(StateDirectory(tmp_path / "state"))


def test_up_status_and_down(state: str, minilm: Path) -> None:
    assert triton("status", state).exit_code == 3
    up = detach(MODEL, state, f"--model-repository={minilm}")
    assert up.returncode == 0, up.stderr
    grpc, http = up.stdout.split()[4], up.stdout.split()[6]
    with socket.create_connection(("127.0.0.1", int(grpc.rpartition(":")[2])), timeout=5):
        pass
    with urllib.request.urlopen(f"{http}/v2/models/{MODEL}/ready", timeout=5) as reply:  # noqa: S310 - our own address
        assert reply.status == 200
    assert triton("status", state).stdout == up.stdout

    again = triton("up", state, f"--model-repository={minilm}", *ANY_PORTS)
    assert again.exit_code == 1
    assert "runs a Triton server" in again.stderr

    assert triton("down", state).exit_code == 0
    assert triton("status", state).exit_code == 3
    assert "no Triton server runs" in triton("down", state).stderr


def test_status_says_what_does_not_answer(state: str, tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "state")
    with socket.create_server(("127.0.0.1", 0)) as silent, directory.hold():
        http = f"http://127.0.0.1:{silent.getsockname()[1]}"
        directory.announce(Addresses(grpc="127.0.0.1:1", http=http, metrics=http, log="its.log"))
        status = triton("status", state)
    assert status.exit_code == 3
    assert f"{http}/v2/health/ready does not answer within 3 s" in status.stderr
    assert "its log: its.log" in status.stderr


@pytest.fixture
def foreground(state: str, minilm: Path) -> Iterator[subprocess.Popen[str]]:
    """`gradewire triton up`, ready."""
    command = [*COMMAND, "up", MODEL, state, f"--model-repository={minilm}", *ANY_PORTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Triton is ready on ")
            yield process
        finally:
            process.kill()


def test_ctrl_c_ends_it_in_order(foreground: subprocess.Popen[str]) -> None:
    foreground.send_signal(signal.SIGINT)
    assert foreground.wait(40) == 0
    assert foreground.stderr is not None
    assert foreground.stderr.read() == ""


def test_the_end_of_the_server_is_an_error_with_its_last_words(foreground: subprocess.Popen[str]) -> None:
    threads = Path(f"/proc/{foreground.pid}/task").iterdir()
    (server,) = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
    os.kill(server, signal.SIGKILL)
    assert foreground.wait(40) == 1
    assert foreground.stderr is not None
    assert "stopped unexpectedly with exit code -9" in foreground.stderr.read()


def test_a_server_that_cannot_start_says_why_also_when_detached(state: str, minilm: Path) -> None:
    done = detach("no-such-model", state, f"--model-repository={minilm}")
    assert done.returncode == 1
    assert "no-such-model" in done.stderr
    assert triton("status", state).exit_code == 3


def test_an_empty_repository_is_told_how_to_fill_it(state: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = triton("up", state, f"--model-repository={tmp_path / 'empty'}")
    assert done.exit_code == 1
    assert "gradewire models build" in done.stderr
