"""Arrivals at equal intervals."""

import asyncio
import errno
import json
import os
import platform
import re
import subprocess
import sys
from typing import Any

import pytest
from benchmarks.load import generator
from benchmarks.load.generator import even_times


async def offsets(calls_per_s: float, duration_s: float) -> list[float]:
    times = list(even_times(calls_per_s, duration_s))
    return [round(each - times[0], 6) for each in times]


def test_arrivals_are_even_and_at_least_one() -> None:
    assert asyncio.run(offsets(4.0, 2.0)) == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert asyncio.run(offsets(0.01, 1.0)) == [0]


def test_the_first_call_is_due_now() -> None:
    async def first_after_s() -> float:
        began_s = asyncio.get_running_loop().time()
        return next(even_times(1.0, 1.0)) - began_s

    assert 0 <= asyncio.run(first_after_s()) < 1


PROGRAM = """
import json, os, sys
from pathlib import Path
from benchmarks.load.generator import ask_for_short_slices
os.nice(3)
if sys.argv[1:]:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
before = os.nice(0)
taken = ask_for_short_slices()
shown = Path("/proc/self/sched")
told = shown.read_text() if shown.exists() else ""
values = dict(map(str.strip, line.split(":", 1)) for line in told.splitlines() if " : " in line)
print(json.dumps([taken, before, os.nice(0), os.sched_getscheduler(0), values]))
"""


def asked(*arguments: str) -> list[Any]:
    """In a process of its own: slices of this one would be inherited by all that later tests start."""
    if platform.system() != "Linux" or platform.machine() not in {"x86_64", "aarch64"}:
        pytest.skip("Linux on x86 or ARM")
    command = [sys.executable, "-c", PROGRAM, *arguments]
    found: list[Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return found


def test_the_system_takes_it_and_keeps_nice_level_and_policy() -> None:
    taken, nice_before, nice, policy, values = asked()
    if not taken:
        pytest.skip("the system, or a container's filter, does not take it")
    assert nice == nice_before
    assert policy == os.SCHED_OTHER
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    if "se.slice" in values and version is not None and tuple(map(int, version.groups())) >= (6, 12):
        assert values["se.slice"] == "100000"


def test_a_policy_that_somebody_chose_is_left_alone() -> None:
    taken, nice_before, nice, policy, _ = asked("batch")
    assert (taken, nice, policy) == (False, nice_before, os.SCHED_BATCH)


def test_where_the_policy_cannot_be_read_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_process: int) -> int:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "sched_getscheduler", refuse, raising=False)
    monkeypatch.setattr(generator.ctypes, "CDLL", lambda *_, **__: pytest.fail("a call to the system"))
    assert not generator.ask_for_short_slices()


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "riscv64")])
def test_elsewhere_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(generator.ctypes, "CDLL", lambda *_, **__: pytest.fail("a call to the system"))
    assert not generator.ask_for_short_slices()
