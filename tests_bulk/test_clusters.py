"""Bulk runs on a Ray that is there already, as `ray start` begins it."""

import contextlib
import json
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
# Two machines of one core each, as far as Ray can tell.
SMALL_MACHINES = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
# Ray in a process of this test, which makes a token of its own.
CLUSTER = """
import logging, sys
import ray
told = ray.init(num_cpus=3, include_dashboard=False, logging_level=logging.ERROR)
print(told.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def begun_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the cluster is started, and in which its workers run."""
    return tmp_path_factory.mktemp("begun-in")


@pytest.fixture(scope="module")
def cluster(begun_in: Path) -> Iterator[str]:
    """HOST:PORT of a cluster of one machine with three cores, without a token."""
    # The sockets of Ray are files in its folder, and their names have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        for _ in range(_TRIES):
            process, address = _begun(Path(folder), begun_in)
            if _is_up(process, Path(folder) / "log"):
                break
        try:
            yield address
            assert process.poll() is None
        finally:
            ended(process)


def _begun(folder: Path, begun_in: Path) -> tuple["subprocess.Popen[bytes]", str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--num-cpus", "3"]
    command += ["--node-ip-address", "127.0.0.1", "--port", str(port), "--temp-dir", str(folder / "ray")]
    command += ["--include-dashboard", "false", "--disable-usage-stats"]
    with (folder / "log").open("wb") as log:
        environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=begun_in)
    return process, f"127.0.0.1:{port}"


def _is_up(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """Whether it started; on a busy machine its node may take longer than Ray waits for it."""
    while "Ray runtime started" not in log.read_text():
        if process.poll() is not None:
            return False
        time.sleep(0.2)
    return True


@contextlib.contextmanager
def _in_python(program: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A cluster that a program begins, which prints its address and ends it when its input ends."""
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address
        yield process, address
    finally:
        process.communicate(timeout=60)


def test_an_option_names_the_cluster(start: Start, tmp_path: Path, cluster: str) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", cluster)
    assert run.wait() == 0, run.told
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_without_further_options_its_workers_may_reserve_every_core(start: Start, tmp_path: Path, cluster: str) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", cluster, divided=False)
    assert run.wait() == 0, run.told
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_no_worker_wants_more_than_the_machines_of_a_cluster_have_each(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    with _in_python(SMALL_MACHINES) as (machines, address):
        run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", address, divided=False)
        assert run.wait() == 0, run.told
        assert machines.poll() is None
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_relative_paths_are_those_of_the_command_and_not_of_the_cluster(
    start: Start, tmp_path: Path, cluster: str, begun_in: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = write_rows(tmp_path / "in" / "rows.jsonl", 100)
    more = write_rows(tmp_path / "in" / "more.jsonl", 60, first=100)
    given = ("in/rows.jsonl", "in/more.jsonl", "out.jsonl", "--part-rows", "64")
    run = start(*given, "--disk-directory", "own-cache", "--ray-address", cluster, folder=tmp_path)
    assert run.wait() == 0, run.told
    found = read(tmp_path / "out.jsonl")
    assert_same(found, straight(rows, tmp_path, more))
    assert {row["file"] for row in found} == {"in/rows.jsonl", "in/more.jsonl"}
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())
    assert [each["path"] for each in manifest["inputs"]] == ["in/rows.jsonl", "in/more.jsonl"]
    assert "bulk in/rows.jsonl in/more.jsonl out.jsonl --metrics" in manifest["reproduce"]
    assert any((tmp_path / "own-cache").iterdir())
    assert not list(begun_in.iterdir())


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
    with _in_python(CLUSTER) as (cluster, address):
        refused = start(rows, tmp_path / "out.jsonl", "--ray-address", address)
        assert (refused.wait(), "set RAY_AUTH_MODE=token" in refused.told) == (3, True), refused.told
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", address)
        assert run.wait() == 0, run.told
        assert cluster.poll() is None
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_a_cluster_that_is_not_there_is_an_error(start: Start, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 10)
    run = start(rows, tmp_path / "out.jsonl", "--ray-address", "127.0.0.1:1")
    assert (run.wait(), "--ray-address 127.0.0.1:1" in run.told) == (3, True), run.told
