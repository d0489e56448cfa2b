"""Two server processes whose backend is away: they start, are started again, and a restart with mended settings helps.

Triton is at a port at which nobody listens, as an operator's mistake in the file of settings.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import process_ids, ready_processes, wait_until

from gradewire import Client, Status

_AWAY = 'backend = "triton"\ntriton_url = "127.0.0.1:1"\n'
_ROWS = [{"references": ["a cat"], "prediction": "a small cat"}]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gradewire.toml"
    path.write_text("")
    return path


@pytest.fixture
def server(tmp_path: Path, minilm: Path, config: Path) -> Iterator[ServerProcess]:
    """Not started yet."""
    settings = {"model_repository": minilm, "judge_backend": "none", "processes": 2, "drain_s": 0}
    running = ServerProcess(tmp_path, config=config, **settings)
    try:
        yield running
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    finally:
        running.kill()


def _times_said(server: ServerProcess, event: str) -> int:
    return [line["event"] for line in server.log()].count(event)


def test_a_restart_onto_a_backend_that_is_away_is_ended_by_the_next_one(server: ServerProcess, config: Path) -> None:
    server.start()
    server.wait_until_serving()
    before = set(process_ids(server.pid))
    config.write_text(_AWAY)
    server.signal(signal.SIGHUP)
    wait_until(lambda: _times_said(server, "process 0 of 2 is serving") == 2)
    assert server.http("/readyz")[0] == 200, "the other one is as it was"
    config.write_text("")
    server.signal(signal.SIGHUP)
    server.wait_for_event("restarted 2 processes")
    assert _times_said(server, "Another restart was requested. The current restart ends, and a new one starts") == 1
    assert not before & set(process_ids(server.pid))
    assert ready_processes(server) == 2
    with Client(server.address) as client:
        assert client.score(_ROWS, "smile")[0].scores["smile"].status is Status.OK


def test_a_start_without_the_backend_outlives_a_crash_and_is_mended_by_a_restart(
    server: ServerProcess, config: Path
) -> None:
    config.write_text(_AWAY)
    server.start()
    server.wait_until_serving()
    assert server.http("/readyz")[0] == 503
    lacks = server.http("/healthz")[1]["degraded"]
    assert "the encoder's Triton server cannot be reached; try again" in lacks
    assert not [each for each in lacks if "starting" in each]
    killed = process_ids(server.pid)[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: killed not in process_ids(server.pid) and len(process_ids(server.pid)) == 2)
    with Client(server.address) as client:
        assert client.score(_ROWS, "exact_match")[0].scores["exact_match"].status is Status.OK
    config.write_text("")
    server.signal(signal.SIGHUP)
    server.wait_for_event("restarted 2 processes")
    assert server.http("/readyz")[0] == 200
    assert ready_processes(server) == 2


@pytest.mark.hostile
def test_a_restart_onto_settings_that_cannot_be_used_ends_with_the_reason(server: ServerProcess, config: Path) -> None:
    server.start()
    server.wait_until_serving()
    config.write_text('backend = "abacus"\n')
    server.signal(signal.SIGHUP)
    server.wait_for_event("The restart ends here")
    assert ready_processes(server) == 1
    assert "backend" in server.log_text()
    config.write_text("")
    server.signal(signal.SIGHUP)
    server.wait_for_event("restarted 2 processes")
