"""Of several processes of one role the longest hold counts."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.latency.event_loops import Hold, Watched, watched_environment


def wrote(directory: Path, name: str, *seconds: float) -> None:
    (directory / name).write_bytes(struct.pack("ddd", *seconds))


def test_each_figure_is_the_most_of_all_processes_of_a_role(tmp_path: Path) -> None:
    wrote(tmp_path, "server-10", 0.25, 0.0, 0.125)
    wrote(tmp_path, "server-11", 0.0625, 0.5, 0.0)
    wrote(tmp_path, "server-12", 0.0, 0.0, 0.0)
    wrote(tmp_path, "gateway-13", 1.0, 0.0, 0.0)
    watched = Watched(tmp_path)
    assert watched.longest() == {"server": Hold(250.0, 500.0, 125.0), "gateway": Hold(1000.0, 0.0, 0.0)}
    watched.reset()
    assert watched.longest() == {"server": Hold(0.0, 0.0, 0.0), "gateway": Hold(0.0, 0.0, 0.0)}


def test_processes_are_watched_within_and_not_after_it() -> None:
    before = dict(os.environ)
    with watched_environment() as watched:
        assert Path(os.environ["HOLDS_DIRECTORY"]).is_dir()
        assert watched.longest() == {}
    assert dict(os.environ) == before


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_a_hold_is_written_down_on_either_loop(library: str) -> None:
    program = "async def hold():\n  for _ in range(3):\n    time.sleep(0.05)\n    await asyncio.sleep(0.005)\n"
    with watched_environment() as watched:
        started = f"import asyncio, time, {library}\n{program}{library}.run(hold())"
        subprocess.run([sys.executable, "-c", started], check=True, timeout=60)
        assert watched.longest()["server"].ms >= 40
