"""`gradewire triton`: the real server, started and stopped by commands."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradewire_models.triton.state import StateDirectory
from gradewire_models.triton.supervise import stop_detached

COMMAND = (sys.executable, "-c", "from gradewire.cli import main; main()", "triton")
ANY_PORTS = ("--grpc-port=0", "--http-port=0", "--metrics-port=0")
MODEL = "all-MiniLM-L6-v2"


def triton(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[str]:
    argument = f"--state={tmp_path / 'state'}"
    yield argument
    stop_detached(StateDirectory(tmp_path / "state"))


def test_up_status_and_down(state: str, minilm: Path) -> None:
    assert triton("status", state).returncode == 1
    up = triton("up", MODEL, state, "--detach", f"--repository={minilm}", *ANY_PORTS)
    assert up.returncode == 0, up.stderr
    grpc, http = up.stdout.split()[4], up.stdout.split()[6]
    with socket.create_connection(("127.0.0.1", int(grpc.rpartition(":")[2])), timeout=5):
        pass
    with urllib.request.urlopen(f"{http}/v2/models/{MODEL}/ready", timeout=5) as reply:  # noqa: S310 - our own address
        assert reply.status == 200
    assert triton("status", state).stdout == up.stdout

    again = triton("up", state, f"--repository={minilm}", *ANY_PORTS)
    assert again.returncode == 1
    assert "runs a Triton server" in again.stderr

    assert triton("down", state).returncode == 0
    assert triton("status", state).returncode == 1
    assert "no Triton server runs" in triton("down", state).stderr


def test_ctrl_c_ends_it_in_order(state: str, minilm: Path) -> None:
    command = [*COMMAND, "up", MODEL, state, f"--repository={minilm}", *ANY_PORTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Triton is ready on ")
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_the_end_of_the_server_is_an_error_with_its_last_words(state: str, minilm: Path) -> None:
    command = [*COMMAND, "up", MODEL, state, f"--repository={minilm}", *ANY_PORTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Triton is ready on ")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        started = time.monotonic()
        assert process.wait(40) == 1
        assert time.monotonic() - started < 30
        assert process.stderr is not None
        assert "ended by itself with exit code -9" in process.stderr.read()


def test_a_server_that_cannot_start_says_why_also_when_detached(state: str, minilm: Path) -> None:
    done = triton("up", "no-such-model", state, "--detach", f"--repository={minilm}", *ANY_PORTS)
    assert done.returncode == 1
    assert "no-such-model" in done.stderr
    assert triton("status", state).returncode == 1


def test_an_empty_repository_is_told_how_to_fill_it(state: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = triton("up", state, f"--repository={tmp_path / 'empty'}")
    assert done.returncode == 1
    assert "gradewire models build" in done.stderr
