import os
import platform
import subprocess
import sys

import pytest

from gradewire.load_testing.workers import slices

PROGRAM = """
import os
from pathlib import Path
from gradewire.load_testing.workers.slices import ask_for_short_slices
os.nice(3)
assert ask_for_short_slices()
print(Path("/proc/self/sched").read_text())
"""


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


def test_the_system_takes_it_and_keeps_the_nice_level() -> None:
    if platform.system() != "Linux" or platform.machine() not in {"x86_64", "aarch64"}:
        pytest.skip("Linux on x86 or ARM")
    # A process of its own: slices of this one would be inherited by all that later tests start.
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    shown = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    values = {name.strip(): value.strip() for name, value in shown.items()}
    assert values["prio"] == str(120 + os.nice(0) + 3)
    if kernel() >= (6, 12):
        assert values["se.slice"] == "100000"


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "riscv64")])
def test_elsewhere_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(slices.ctypes, "CDLL", lambda *_, **__: pytest.fail("a call to the system"))
    assert not slices.ask_for_short_slices()
