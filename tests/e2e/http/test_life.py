"""The gateway's life as a child of its server: started again where it is lost, ended with it, and the same by hand."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.servers.gateway import SCORE
from tests.support.servers.server_process import ServerProcess

ASKED = {"items": [{"references": ["a"], "prediction": "a"}], "metrics": [{"exactMatch": {}}]}


def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """What `condition` gives once it is true."""
    give_up_s = time.monotonic() + timeout_s
    while time.monotonic() < give_up_s:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError


def gateways(server: ServerProcess) -> list[int]:
    """Process ids of all gateways so far."""
    events = [str(line["event"]) for line in server.log()]
    return [int(event.rpartition(" ")[2]) for event in events if event.startswith("the HTTP gateway runs as process")]


def alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def settings(minilm: Path) -> dict[str, Any]:
    return {"model_repository": minilm, "judge_backend": "none", "http_api_port": 0, "auth_tokens": "right"}


def test_a_gateway_that_dies_is_started_again_on_the_same_port(tmp_path: Path, settings: dict[str, Any]) -> None:
    with ServerProcess(tmp_path, **settings) as server:
        first = until(lambda: gateways(server))[0]
        headers = {"authorization": "Bearer right"}
        assert httpx2.post(f"{server.api}{SCORE}", json=ASKED, headers=headers, trust_env=False).status_code == 200
        os.kill(first, signal.SIGKILL)
        # It waits in the queue of the listening socket until another gateway takes it.
        reply = httpx2.post(f"{server.api}{SCORE}", json=ASKED, headers=headers, trust_env=False, timeout=60)
        assert reply.status_code == 200
        second = until(lambda: gateways(server)[1:])[0]
        assert second != first
        assert not alive(first)
        assert any("ended with signal 9" in line["event"] for line in server.log())
        assert server.samples()["gradewire_gateway_restarts_total"] == 1
        until(lambda: server.http("/healthz")[1]["degraded"] == [])
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert not alive(second)


def test_a_gateway_ends_with_a_server_that_is_killed(tmp_path: Path, settings: dict[str, Any]) -> None:
    with ServerProcess(tmp_path, **settings) as server:
        pid = until(lambda: gateways(server))[0]
        server.kill()
        until(lambda: not alive(pid))


def test_a_port_that_is_taken_is_told_at_start(tmp_path: Path, settings: dict[str, Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ServerProcess(tmp_path, **settings | {"http_api_port": taken.getsockname()[1]})
        server.start()
        try:
            assert server.wait() == 1
        finally:
            server.kill()
    assert "--http-api-port" in server.log_text()


def test_a_request_stands_in_both_logs_with_the_host_that_asks(http_server: ServerProcess) -> None:
    def lines() -> dict[str, dict[str, Any]]:
        return {line["event"]: line for line in http_server.log() if line.get("request_id") == "both-1"}

    given = {"x-request-id": "both-1", "x-gradewire-peer": "9.9.9.9:9"}
    assert httpx2.post(f"{http_server.api}{SCORE}", json=ASKED, headers=given, trust_env=False).status_code == 401
    until(lambda: len(lines()) == 2)
    request, call = lines()["request"], lines()["call"]
    assert (request["status"], call["code"]) == (401, "UNAUTHENTICATED")
    assert request["peer"].startswith("127.0.0.1:"), "and not what the caller says of itself"
    assert call["peer"] == f"http:{request['peer']}"


def test_a_gateway_of_its_own_stands_in_front_of_any_server(http_server: ServerProcess) -> None:
    program = "import sys; from gradewire_cli import main; main()"
    command = [sys.executable, "-c", program, "gateway", "--server", http_server.address, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ready = re.fullmatch(r"gradewire gateway is ready on (\S+)\n", process.stdout.readline())
            assert ready is not None
            headers = {"authorization": "Bearer right"}
            reply = httpx2.post(f"http://{ready[1]}{SCORE}", json=ASKED, headers=headers, trust_env=False, timeout=30)
            assert reply.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
