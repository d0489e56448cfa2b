"""Bulk runs on a real Ray, each in a process of its own, with the built default encoder."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

GRADEWIRE = str(Path(sys.executable).with_name("gradewire"))
METRICS = "smile:fast,exact_match"
_STRAIGHT: dict[bytes, list[dict[str, Any]]] = {}
_LIMIT_S = 600
"""On a machine that has much else to do."""


class Run:
    """A bulk run in the background; whatever becomes of it, none of its processes outlives the test."""

    def __init__(self, *arguments: str | Path, log: Path, folder: Path | None = None) -> None:
        self._log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [GRADEWIRE, *map(str, arguments)], stdout=stream, stderr=stream, start_new_session=True, cwd=folder
            )
        self.seen: dict[int, psutil.Process] = {}

    @property
    def told(self) -> str:
        """What it has printed."""
        return " ".join(self._log.read_text(errors="replace").split())

    def look(self) -> list[psutil.Process]:
        """Its processes now."""
        try:
            root = psutil.Process(self.process.pid)
            found = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
        self.seen |= {each.pid: each for each in found}
        return found

    def wait(self) -> int:
        """Its exit code."""
        deadline = time.monotonic() + _LIMIT_S
        while self.process.poll() is None:
            self.look()
            if time.monotonic() > deadline:
                raise TimeoutError(f"it does not end: {self.told}")
            time.sleep(0.2)
        return self.process.returncode

    def wait_for_parts(self, folder: Path, parts: int) -> None:
        """Waits until so many parts are written."""
        self.wait_until(lambda: len(list(folder.glob("part-*.done.jsonl"))) >= parts)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until something holds while it runs."""
        deadline = time.monotonic() + _LIMIT_S
        while not condition():
            self.look()
            assert self.process.poll() is None, self.told
            assert time.monotonic() < deadline, self.told
            time.sleep(0.05)

    def actors(self) -> list[psutil.Process]:
        """Processes that score."""
        return [each for each in self.look() if each.cmdline()[:1] and each.cmdline()[0].startswith("ray::MapWorker")]

    def end(self) -> None:
        """Ends what is left of it."""
        self.look()
        for each in self.seen.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts `gradewire bulk ARGUMENTS` with a cache of the test's own.

    With two workers of one thread, if neither the arguments nor `divided=False` say otherwise; in `folder`, if given.
    """
    runs: list[Run] = []

    def begin(*arguments: str | Path, metrics: str = METRICS, divided: bool = True, folder: Path | None = None) -> Run:
        # What a server has computed is in its own cache.
        cache = () if {"--server", "--disk-directory"} & set(arguments) else ("--disk-directory", tmp_path / "cache")
        workers = () if "--processes" in arguments else ("--processes", "2")
        division = (*workers, "--threads", "1") if divided else ()
        options = ("--metrics", metrics, *division, *cache)
        runs.append(Run("bulk", *arguments, *options, log=tmp_path / f"run-{len(runs)}.log", folder=folder))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


def write_rows(path: Path, count: int, *, first: int = 0) -> Path:
    """Rows with answers that are all different."""
    rows = (
        {"id": f"row-{n}", "references": [f"it is {n}", f"number {n}"], "prediction": f"the answer is {n % 7} of {n}"}
        for n in range(first, first + count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def straight(rows: Path, tmp_path: Path, *more: str | Path) -> list[dict[str, Any]]:
    """What `gradewire score` gives for the same rows, from a cache of its own; once for all tests with these rows."""
    content = b"".join(Path(path).read_bytes() for path in (rows, *more))
    if content not in _STRAIGHT:
        out = tmp_path / "straight.jsonl"
        command = [GRADEWIRE, "score", rows, *more, "--out", out, "--metrics", METRICS, "--quiet"]
        command += ["--disk-directory", tmp_path / "other"]
        subprocess.run(list(map(str, command)), check=True, timeout=_LIMIT_S, env=os.environ)
        _STRAIGHT[content] = read(out)
    return _STRAIGHT[content]


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of an output."""
    return read_lines(path.read_bytes())


def read_lines(data: bytes) -> list[dict[str, Any]]:
    """Rows of an output that was read."""
    return [json.loads(line) for line in data.splitlines()]


def ended(process: "subprocess.Popen[Any]") -> None:
    """Ends a process and all that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        there = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        for each in there:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    process.kill()
    process.wait()


def assert_same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Every row once, in order, with the same scores."""
    assert [row["id"] for row in found] == [row["id"] for row in expected]
    for one, other in zip(found, expected, strict=True):
        for label, score in other["scores"].items():
            assert one["scores"][label]["score"] == pytest.approx(score["score"], abs=2e-4)
            assert one["scores"][label]["status"] == score["status"]
