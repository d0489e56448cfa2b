"""How texts are run through an encoder, and on how many cores."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import Count, CountOrAuto

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def allowed_cores() -> list[int]:
    """Cores that this process may run on; a system that does not say gives as many as there are."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores' worth of time that this process may use: a container's quota may be less than the cores it sees."""
    cores = len(allowed_cores())
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, -(-int(limit) // int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return cores


@dataclass(frozen=True, slots=True, config=GROUP)
class ComputeConfig:
    """The defaults are the fastest measured for many short texts."""

    workers: Annotated[CountOrAuto, Setting("workers", "Encoder runs at a time; 0: one per core.")] = 0
    intra_op_threads: Annotated[Count, Setting("intra_op_threads", "Threads of one encoder run.")] = 1
    lone_run_threads: Annotated[
        CountOrAuto,
        Setting(
            "lone_run_threads",
            "Threads of a run that has all workers to itself; 0: one per core; 1: saves memory.",
        ),
    ] = 0
    """More than one costs memory: a second copy of the weights."""
    pin_workers: bool = True
    """Whether each worker stays on a core of its own, where there are as many workers as cores and one thread a run; a
    short call on two idle workers is half as long then."""
    allow_spinning: Annotated[
        bool,
        Setting("allow_spinning", "Let idle encoder threads spin: quicker to wake, but they keep their cores busy."),
    ] = False
    """Slower on a machine that does other work too."""
    nice: Annotated[
        int,
        Field(ge=0, le=19),
        Setting("encoder_nice", "Nice level of the threads that run encoders, so that calls are taken in first."),
    ] = 4
    """Only against other programs does it cost anything: they go first too. Linux."""
    max_batch_tokens: Annotated[Count, Setting("max_batch_tokens", "Padded tokens of one encoder run.")] = 256
    """More gain nothing and make others wait."""
    max_batch_texts: Annotated[Count, Setting("max_batch_texts", "Texts of one encoder run.")] = 128
    max_queue_tokens: Annotated[Count, Setting("max_queue_tokens", "Tokens that may wait for an encoder.")] = 1_000_000
    """A call that finds the queue full fails with UNAVAILABLE; the call that fills it is taken whole."""

    @property
    def worker_count(self) -> int:
        """Workers with 0 resolved."""
        return self.workers or max(1, usable_cores() // self.intra_op_threads)

    @property
    def lone_thread_count(self) -> int:
        """Threads of a lone run with 0 resolved; never more than all workers together have."""
        together = self.worker_count * self.intra_op_threads
        return min(self.lone_run_threads, together) if self.lone_run_threads else together
