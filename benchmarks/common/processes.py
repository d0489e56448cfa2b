"""Processes that benchmarks start and measure."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

_STOP_S = 60


@contextmanager
def started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process and the first line it printed; it is asked to stop at the end."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command[:3])} ended with {process.wait(_STOP_S)} and said nothing")
        yield process, line
    finally:
        process.terminate()
        process.wait(timeout=_STOP_S)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used so far, without its children's."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def whole_cpu_s(pid: int) -> float:
    """The same of a process and of all that it has started and that still run: a server may be several."""
    used_s = 0.0
    for process in (top := psutil.Process(pid), *top.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            times = process.cpu_times()
            used_s += times.user + times.system
    return used_s
