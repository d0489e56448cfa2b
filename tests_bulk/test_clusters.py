"""Bulk runs on a Ray that is there already, as `ray start` begins it."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests_bulk.conftest import Run, assert_same, ended, read, straight, write_rows

Start = Callable[..., Run]
_TRIES = 3
# Ray in a process of this test, which makes a token of its own.
CLUSTER = """
import logging, os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
told = ray.init(num_cpus=3, include_dashboard=False, logging_level=logging.ERROR)
print(told.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """HOST:PORT of a cluster of one machine with three cores, without a token."""
    # The sockets of Ray are files in its folder, and their names have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        for _ in range(_TRIES):
            process, address = _begun(Path(folder))
            if _is_up(process, Path(folder) / "log"):
                break
        try:
            yield address
            assert process.poll() is None
        finally:
            ended(process)


def _begun(folder: Path) -> tuple["subprocess.Popen[bytes]", str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--num-cpus", "3"]
    command += ["--node-ip-address", "127.0.0.1", "--port", str(port), "--temp-dir", str(folder / "ray")]
    command += ["--include-dashboard", "false", "--disable-usage-stats"]
    with (folder / "log").open("wb") as log:
        environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment), f"127.0.0.1:{port}"


def _is_up(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """Whether it started; on a busy machine its node may take longer than Ray waits for it."""
    while "Ray runtime started" not in log.read_text():
        if process.poll() is not None:
            return False
        time.sleep(0.2)
    return True


def test_an_option_names_the_cluster(start: Start, tmp_path: Path, cluster: str) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", cluster)
    assert run.wait() == 0, run.told
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_the_variable_of_ray_names_it_and_a_killed_run_goes_on_there(
    start: Start, tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    rows, out = write_rows(tmp_path / "rows.jsonl", 1500), tmp_path / "out.jsonl"
    first = start(rows, out, "--part-rows", "50")
    first.wait_for_parts(tmp_path / "out.jsonl.parts", 4)
    first.process.kill()
    first.process.wait()
    second = start(rows, out, "--part-rows", "50", "--resume")
    assert second.wait() == 0, second.told
    assert_same(read(out), straight(rows, tmp_path))


def test_a_cluster_with_a_token_is_used_where_ray_is_told_so(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        refused = start(rows, tmp_path / "out.jsonl", "--ray-address", address)
        assert (refused.wait(), "set RAY_AUTH_MODE=token" in refused.told) == (3, True), refused.told
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", address)
        assert run.wait() == 0, run.told
        assert cluster.poll() is None
    finally:
        cluster.communicate(timeout=60)
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_a_cluster_that_is_not_there_is_an_error(start: Start, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 10)
    run = start(rows, tmp_path / "out.jsonl", "--ray-address", "127.0.0.1:1")
    assert (run.wait(), "--ray-address 127.0.0.1:1" in run.told) == (3, True), run.told
