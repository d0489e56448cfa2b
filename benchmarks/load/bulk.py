"""Compare the cost of a row in `gradewire bulk`, which uses Ray, and in `gradewire score`.

    .venv-ray/bin/python -m benchmarks.load.bulk --data .data/evouna_dev.jsonl --json throughput.json

Each round runs both commands over few and over many new rows, with empty caches. The difference between many and few
rows is the cost without the start, which takes the same time for any number of rows.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
from benchmarks.common.rows import DEFAULT_DATA, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable


MODEL = "fid"
"""Model under test. Its short answers keep the work for windows low."""

METRICS = "smile:fast,exact_match"
GRADEWIRE: Final = (str(Path(sys.executable).with_name("gradewire")),)
_INTERVAL_S: Final = 0.5
_GONE_S: Final = 60.0
ACTOR: Final = "actors"
DRIVER: Final = "driver"
READER: Final = "reader"
RAY: Final = "Ray itself"
PART_ROWS = 256
"""Rows in a part: so few that every worker gets several parts and starts before the measurement."""


def write_rows(path: Path, data: Path, count: int, *, first: int = 0) -> None:
    """Write `count` rows as JSON lines; each number from `first` makes a different row."""
    rows = read_rows(data, (MODEL,))
    with path.open("w", encoding="utf-8") as stream:
        for number, row in zip(range(first, first + count), itertools.cycle(rows), strict=False):
            varied = {
                "id": f"row-{number}",
                "question": row["question"],
                "references": row["references"],
                "prediction": f"{row['prediction']}, said in answer {number}",
            }
            stream.write(json.dumps(varied, ensure_ascii=False) + "\n")


def kind_of(command: str, *, is_root: bool) -> str:
    """Return a process's role in a run, from its command line."""
    if is_root:
        return DRIVER
    if command.startswith("ray::MapWorker"):
        return ACTOR
    return READER if command.startswith("ray::Read") else RAY


@dataclass
class Watched:
    """A running command.

    Attributes:
        cpu_s: CPU seconds of each process so far, by process ID.
        kinds: Role of each process, by process ID.
        rss_bytes: Samples of seconds since the start, and total resident memory of driver, reader and actors.
    """

    process: "subprocess.Popen[bytes]"
    began_s: float = field(default_factory=time.monotonic)
    wall_s: float = 0.0
    cpu_s: dict[int, float] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    rss_bytes: list[tuple[float, int]] = field(default_factory=list)
    actors: list[int] = field(default_factory=list)

    def sample(self) -> None:
        """Sample all processes."""
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
        """Return the CPU seconds by role."""
        found: dict[str, float] = {}
        for pid, seconds in self.cpu_s.items():
            found[self.kinds[pid]] = found.get(self.kinds[pid], 0.0) + seconds
        return found


@contextlib.contextmanager
def watched(command: Sequence[str | Path], log: Path) -> Iterator[Watched]:
    """Run a command in the background with its output in `log`; finally wait for it, or kill it after an error."""
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
    """Run a command; if it fails, exit with the last lines of its log."""
    with watched(command, log) as found:
        pass
    if found.process.returncode:
        sys.stderr.write(log.read_text(errors="replace")[-2000:])
        raise SystemExit(f"{' '.join(map(str, command))} ended with {found.process.returncode}")
    return found


def wait_until_gone(pids: Sequence[int]) -> float:
    """Return the seconds until all processes are gone; exit if a process remains."""
    began = time.monotonic()
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        if time.monotonic() - began > _GONE_S:
            raise SystemExit(f"these processes were still running {_GONE_S:g} s after their driver was killed: {pids}")
        time.sleep(_INTERVAL_S)
    return time.monotonic() - began


@dataclass(frozen=True)
class Cost:
    """The cost of a command."""

    wall_s: float
    cpu_s: float
    by_kind: dict[str, float]


def measured(command: str, folder: Path, rows: int, first: int, given: argparse.Namespace) -> Cost:
    """Run `score` or `bulk` over new rows; return the cost."""
    source, output = folder / f"{command}-{first}.jsonl", folder / f"{command}-{first}.out.jsonl"
    write_rows(source, given.data, rows, first=first)
    options: list[str | Path] = [
        "--metrics",
        METRICS,
        "--disk-directory",
        folder / f"cache-{command}-{first}",
        "--quiet",
    ]
    to: list[str | Path] = ["--out", output] if command == "score" else [output, "--part-rows", str(PART_ROWS)]
    found = run([*GRADEWIRE, command, source, *to, *options], folder / f"{command}-{first}.log")
    if len(output.read_text(encoding="utf-8").splitlines()) != rows:
        raise SystemExit(f"{command} did not write {rows} results")
    kinds = {kind: round(seconds, 1) for kind, seconds in found.cpu_by_kind().items()}
    return Cost(found.wall_s, sum(found.cpu_s.values()), kinds)


def measured_round(number: int, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Measure both commands over few and many rows, in alternating order."""
    found: dict[str, dict[str, Cost]] = {"score": {}, "bulk": {}}
    commands = ("score", "bulk") if number % 2 == 0 else ("bulk", "score")
    for name, rows in (("few", given.few), ("many", given.many)):
        for command in commands:
            found[command][name] = measured(command, folder, rows, 1_000_000 * number + rows, given)
    return {
        command: {
            "few": vars(costs["few"]),
            "many": vars(costs["many"]),
            "row_wall_ms": 1e3 * (costs["many"].wall_s - costs["few"].wall_s) / (given.many - given.few),
            "row_cpu_ms": 1e3 * (costs["many"].cpu_s - costs["few"].cpu_s) / (given.many - given.few),
        }
        for command, costs in found.items()
    }


def ratios(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Return score's cost divided by bulk's, as the median over rounds; below 1, bulk is slower."""
    names: dict[str, Callable[[dict[str, Any]], float]] = {
        "clock, once started": lambda each: each["row_wall_ms"],
        "CPU, once started": lambda each: each["row_cpu_ms"],
        "clock, many rows with all starts": lambda each: each["many"]["wall_s"],
        "CPU, many rows with all starts": lambda each: each["many"]["cpu_s"],
    }
    return {
        name: round(statistics.median(value(each["score"]) / value(each["bulk"]) for each in rounds), 3)
        for name, value in names.items()
    }


def main() -> None:
    """Run the measurement and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--few", type=int, default=2_000)
    parser.add_argument("--many", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    given = parser.parse_args()
    rounds, loads = [], [round(os.getloadavg()[0], 1)]
    with tempfile.TemporaryDirectory(prefix="gradewire-bulk-throughput-") as folder:
        for number in range(given.rounds):
            rounds.append(measured_round(number, Path(folder), given))
            loads.append(round(os.getloadavg()[0], 1))
            sys.stderr.write(f"round {number + 1}: {json.dumps(rounds[-1])}; load {loads[-1]}\n")
    result = {"rows": [given.few, given.many], "plain over bulk": ratios(rounds), "rounds": rounds, "load": loads}
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
