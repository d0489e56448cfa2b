"""When a run began, what it took, and on which machine."""

import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gradewire.manifests.manifest import Machine, RunTimes

_CPU_INFO = Path("/proc/cpuinfo")


def _load() -> float | None:
    # Windows has none.
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _cpu_s() -> float:
    return sum(os.times()[:4])


@dataclass(frozen=True, slots=True)
class RunClock:
    """Made where a run begins."""

    _began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _began_s: float = field(default_factory=time.monotonic)
    _cpu_s: float = field(default_factory=_cpu_s)
    _load: float | None = field(default_factory=_load)

    def times(self) -> RunTimes:
        """What the run took until now."""
        return RunTimes(
            began_at=self._began_at.isoformat(timespec="seconds"),
            wall_s=time.monotonic() - self._began_s,
            cpu_s=_cpu_s() - self._cpu_s,
        )

    def machine(self) -> Machine:
        """This machine, with its load before the run and now."""
        return Machine(
            processor=_processor(),
            cores=_cores(),
            memory_bytes=_memory_bytes(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            load_before=self._load,
            load_after=_load(),
        )


def _processor() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int | None:
    with suppress(ValueError, OSError, AttributeError):  # names that this system does not have
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None
