"""Workers that are clients of one server, which dies and comes back."""

import contextlib
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests_bulk.conftest import GRADEWIRE, METRICS, Run, assert_same, ended, read, straight, write_rows

Start = Callable[..., Run]
PARTS = ("--part-rows", "50")
ROWS = 1500


class Server:
    """`gradewire serve`, on the same port and with the same store whenever it is started."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._port = found.getsockname()[1]
        self._command = [GRADEWIRE, "serve", "--port", str(self._port), "--disk-directory", str(folder / "server")]
        self._process: subprocess.Popen[str] | None = None
        self.address = f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        self._process.stdout.close()
        assert re.search(rf":{self._port}\b", told), told

    def kill(self) -> None:
        """Kills it with all of its processes."""
        assert self._process is not None
        for each in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Ends it where it runs."""
        if self._process is not None:
            ended(self._process)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    found.start()
    yield found
    found.end()


def test_a_server_scores_as_the_engine_does(start: Start, tmp_path: Path, server: Server) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", 200), tmp_path / "out.jsonl"
    run = start(rows, out, "--part-rows", "64", "--server", server.address)
    assert run.wait() == 0, run.told
    assert_same(read(out), straight(rows, tmp_path))
    assert METRICS.split(",") == list(read(out)[0]["scores"])


def test_a_server_that_comes_back_is_waited_for(start: Start, tmp_path: Path, server: Server) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    run = start(rows, out, *PARTS, "--server", server.address)
    run.wait_for_parts(tmp_path / "out.jsonl.parts", 3)
    server.kill()
    assert run.process.poll() is None
    server.start()
    assert run.wait() == 0, run.told
    assert_same(read(out), straight(rows, tmp_path))


def test_a_server_that_stays_away_ends_the_run_and_a_later_one_goes_on(
    start: Start, tmp_path: Path, server: Server
) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    parts = tmp_path / "out.jsonl.parts"
    first = start(rows, out, *PARTS, "--server", server.address, "--deadline-s", "20")
    first.wait_for_parts(parts, 3)
    server.kill()
    code = first.wait()
    left = len(list(parts.glob("part-*.done.jsonl")))
    assert (code, "go on with --resume" in first.told) == (3, True), first.told
    assert "Traceback" not in first.told
    assert 3 <= left < ROWS // 50
    assert not out.exists()
    server.start()
    second = start(rows, out, *PARTS, "--server", server.address, "--resume")
    assert second.wait() == 0, second.told
    assert_same(read(out), straight(rows, tmp_path))
