"""Nothing is left of a server, however it ended; its options are its command line."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.servers.triton import TritonServer

from gradewire_triton import ServerOptions, TritonProcess, TritonStartError, ensure_environment
from gradewire_triton.environment import TritonEnvironment
from gradewire_triton.process import command_line


def wait_until(true: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + 40
    while not true():
        assert time.monotonic() < give_up, what
        time.sleep(0.05)


@pytest.fixture
def server(tmp_path: Path, tiny_repository: Path) -> TritonServer:
    return TritonServer(tmp_path / "state", tiny_repository, models=["tiny-bert"])


def test_an_orderly_stop_leaves_nothing(server: TritonServer) -> None:
    server.start()
    stubs = server.stub_pids()
    assert stubs
    assert server.shared_memory()
    server.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in stubs)
    assert server.shared_memory() == []


def test_what_a_crash_left_is_gone_at_the_next_start_and_a_neighbour_is_untouched(
    server: TritonServer, tmp_path: Path, tiny_repository: Path
) -> None:
    with TritonServer(tmp_path / "neighbour", tiny_repository, models=["tiny-mpnet"]) as neighbour:
        neighbours = neighbour.stub_pids()
        server.start()
        url = server.url
        server.pause()  # neither it nor a stub whose server is gone may tidy up before it ends
        server.kill_stubs()
        left = set(server.shared_memory())
        server.crash()
        assert left
        assert left == set(server.shared_memory())
        server.start()
        try:
            assert server.url == url
            assert server.is_model_ready("tiny-bert")
            assert not left & set(server.shared_memory())
            assert neighbour.stub_pids() == neighbours
            assert neighbour.is_model_ready("tiny-mpnet")
        finally:
            server.kill()
        assert server.shared_memory() == []


@pytest.mark.parametrize("aborts", [1, 2])
def test_a_server_that_aborts_at_its_start_is_started_once_more(
    aborts: int, tmp_path: Path, tiny_repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed, starts, script = ensure_environment(report=print), tmp_path / "starts", tmp_path / "tritonserver"
    script.write_text(
        f'#!/bin/sh\necho >> {starts}\n[ "$(wc -l < {starts})" -le {aborts} ] && kill -ABRT $$\n'
        f'exec {installed.server} "$@"\n'
    )
    script.chmod(0o755)

    class Aborting(TritonEnvironment):
        @property
        def server(self) -> Path:
            return script

    aborting = Aborting(installed.directory, installed.site_packages, installed.libpython_directory)
    process = TritonProcess(aborting, ServerOptions(tiny_repository, ("tiny-bert",)), tmp_path / "state")
    process.start()
    try:
        if aborts == 1:
            process.wait_until_ready()
        else:
            with pytest.raises(TritonStartError, match="stopped with exit code -6"):
                process.wait_until_ready()
    finally:
        process.stop()
    assert len(starts.read_text().splitlines()) == 2
    assert "Triton aborted at its start and is started once more" in caplog.text


def test_it_does_not_outlive_whoever_started_it(server: TritonServer, tmp_path: Path, tiny_repository: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from gradewire_triton import ServerOptions, TritonProcess, ensure_environment\n"
        "options = ServerOptions(Path(sys.argv[2]), ('tiny-bert',))\n"
        "process = TritonProcess(ensure_environment(report=print), options, Path(sys.argv[1]))\n"
        "process.start()\n"
        "process.wait_until_ready()\n"
        "print(process.pid, *process.stub_pids(), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "state", tiny_repository], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = parent.stdout.readline().split()
        assert len(pids) > 1
        assert server.shared_memory()
        parent.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the server lives on")
    assert server.shared_memory() == []


def test_a_model_that_cannot_be_loaded_is_named_with_what_triton_says(tmp_path: Path, tiny_repository: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(tiny_repository, repository)
    (repository / "tiny-mpnet" / "1" / "model.onnx").write_bytes(b"no graph")
    server = TritonServer(tmp_path / "state", repository)
    with pytest.raises(TritonStartError, match="tiny-mpnet"):
        server.start()
    assert not server.stub_pids()


def test_a_graph_without_a_configured_output_is_refused(tmp_path: Path, tiny_repository: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(tiny_repository / "tiny-bert", repository / "tiny-bert")
    config = repository / "tiny-bert" / "config.pbtxt"
    config.write_text(config.read_text().replace('"token_embeddings_layer_1"', '"token_embeddings_layer_9"'))
    with pytest.raises(TritonStartError, match="token_embeddings_layer_9"):
        TritonServer(tmp_path / "state", repository).start()


def test_a_taken_port_is_an_error_with_what_triton_says(tmp_path: Path, tiny_repository: Path) -> None:
    with TritonServer(tmp_path / "first", tiny_repository, models=["tiny-bert"]) as first:
        port = int(first.url.rpartition(":")[2])
        options = ServerOptions(tiny_repository, ("tiny-bert",), grpc_port=port)
        second = TritonProcess(ensure_environment(report=print), options, tmp_path / "second")
        second.start()
        with pytest.raises(TritonStartError, match=str(port)):
            second.wait_until_ready()
        assert first.is_model_ready("tiny-bert")


def test_a_server_that_hangs_at_start_is_stopped_when_its_time_is_up(tmp_path: Path, tiny_repository: Path) -> None:
    process = TritonProcess(
        ensure_environment(report=print), ServerOptions(tiny_repository, ("tiny-bert",)), tmp_path / "state"
    )
    process.start()
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(TritonStartError, match="not ready within"):
        process.wait_until_ready(timeout_s=0.5)
    assert process.wait() == -signal.SIGKILL


def arguments(options: ServerOptions) -> list[str]:
    return command_line(
        replace(options, grpc_port=1, http_port=2, metrics_port=3), backends=Path("/backends"), shm_prefix="mine_"
    )


def test_all_models_are_loaded_but_those_that_need_a_gpu(tiny_repository: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(tiny_repository, repository)
    shutil.copytree(repository / "tiny-bert", repository / "tiny-gpu")
    config = repository / "tiny-gpu" / "config.pbtxt"
    config.write_text(config.read_text().replace("KIND_CPU", "KIND_GPU"))
    (repository / ".tiny-bert.building-x").mkdir()
    assert ServerOptions(repository).model_names() == ("tiny-bert", "tiny-mpnet")
    assert ServerOptions(repository, ("tiny-gpu",)).model_names() == ("tiny-gpu",)
    loaded = [argument for argument in arguments(ServerOptions(repository)) if argument.startswith("--load-model")]
    assert loaded == ["--load-model=tiny-bert", "--load-model=tiny-mpnet"]


def test_a_watching_server_is_told_how_often_and_loads_nothing_by_name(tiny_repository: Path) -> None:
    told = arguments(ServerOptions(tiny_repository, poll_s=3))
    assert {"--model-control-mode=poll", "--repository-poll-secs=3"} <= set(told)
    assert not any(argument.startswith("--load-model") for argument in told)


def test_it_listens_on_the_loopback_unless_told_otherwise(tiny_repository: Path) -> None:
    told = arguments(ServerOptions(tiny_repository))
    for service, port in (("grpc", 1), ("http", 2), ("metrics", 3)):
        assert f"--{service}-address=127.0.0.1" in told
        assert f"--{service}-port={port}" in told
