"""Runs a command and watches what it and its descendants take."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

GRADEWIRE: Final = (str(Path(sys.executable).with_name("gradewire")),)
_INTERVAL_S: Final = 0.5
_GONE_S: Final = 60.0
ACTOR: Final = "actors"
DRIVER: Final = "driver"
READER: Final = "reader"
RAY: Final = "Ray itself"


def kind_of(command: str, *, is_root: bool) -> str:
    """Which part of a run a process is, by its command line."""
    if is_root:
        return DRIVER
    if command.startswith("ray::MapWorker"):
        return ACTOR
    return READER if command.startswith("ray::Read") else RAY


@dataclass
class Watched:
    """A command that is running.

    Attributes:
        process: Its process.
        cpu_s: CPU seconds of each process so far, by its id.
        kinds: What each process is.
        rss_bytes: By sample: seconds since the start, and resident memory of driver, reader and actors together.
    """

    process: "subprocess.Popen[bytes]"
    began_s: float = field(default_factory=time.monotonic)
    wall_s: float = 0.0
    cpu_s: dict[int, float] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    rss_bytes: list[tuple[float, int]] = field(default_factory=list)
    actors: list[int] = field(default_factory=list)

    def sample(self) -> None:
        """Looks at all processes once."""
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            together, actors = 0, []
            for found in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    with found.oneshot():
                        command = " ".join(found.cmdline())
                        kind = kind_of(command, is_root=found.pid == root.pid)
                        times = found.cpu_times()
                        rss = found.memory_info().rss
                    self.cpu_s[found.pid] = times.user + times.system
                    self.kinds[found.pid] = kind
                    if kind != RAY:
                        together += rss
                    if kind == ACTOR:
                        actors.append(found.pid)
            self.actors = actors
            self.rss_bytes.append((time.monotonic() - self.began_s, together))

    def cpu_by_kind(self) -> dict[str, float]:
        """CPU seconds of all processes of a kind."""
        found: dict[str, float] = {}
        for pid, seconds in self.cpu_s.items():
            found[self.kinds[pid]] = found.get(self.kinds[pid], 0.0) + seconds
        return found


@contextlib.contextmanager
def watched(command: Sequence[str | Path], log: Path) -> Iterator[Watched]:
    """Runs a command in the background, its output in `log`; at the end it is waited for, and on errors killed."""
    with log.open("ab") as stream:
        process = subprocess.Popen(list(map(str, command)), stdout=stream, stderr=stream)
        found, stop = Watched(process), threading.Event()

        def look() -> None:
            while not stop.wait(_INTERVAL_S):
                found.sample()

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield found
            process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            found.wall_s = time.monotonic() - found.began_s
            stop.set()
            looking.join()


def run(command: Sequence[str | Path], log: Path) -> Watched:
    """Runs a command to its end; one that fails ends the program with the last lines of its log."""
    with watched(command, log) as found:
        pass
    if found.process.returncode:
        sys.stderr.write(log.read_text(errors="replace")[-2000:])
        raise SystemExit(f"{' '.join(map(str, command))} ended with {found.process.returncode}")
    return found


def wait_until_gone(pids: Sequence[int]) -> float:
    """Seconds until none of the processes is there; ends the program where one stays."""
    began = time.monotonic()
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        if time.monotonic() - began > _GONE_S:
            raise SystemExit(f"processes stay after their driver was killed: {pids}")
        time.sleep(_INTERVAL_S)
    return time.monotonic() - began
