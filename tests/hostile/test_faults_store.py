"""A disk store that several processes share is cut, grown and replaced under them: none is lost, no score changes."""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import grpc
import pytest
from tests.hostile.test_faults import score
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess

from gradewire_proto.v1 import scoring_pb2_grpc

# A process of a store, which does what it reads and says what it found; `kept` asserts that each vector is right.
_USER = """
import asyncio, sys
from pathlib import Path
from gradewire_server.domain.needs import Tier
from tests.server.storage.disk_stores import Disk, fill

async def main():
    disk = Disk(Path(sys.argv[1]))
    print("open", flush=True)
    for line in sys.stdin:
        work, first, last = line.split()
        numbers = range(int(first), int(last))
        if work == "write":
            await fill(disk, numbers)
            await fill(disk, range(numbers.stop, numbers.stop + 50), Tier.REFERENCE)
        kept = await disk.kept(numbers)
        while disk.store._rebuilding:
            await asyncio.sleep(0.001)
        print(len(kept), disk.store.degraded() or "well", flush=True)
    await disk.close()

asyncio.run(main())
"""
_NUMBERS = 400


class StoreUser:
    """A process that reads and writes a store when it is told to."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _USER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._said()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def read(self, numbers: range) -> int:
        """Return how many vectors it found, each of which was right."""
        return self._do("read", numbers)

    def write(self, numbers: range) -> None:
        assert self._do("write", numbers) == len(numbers)

    def _do(self, work: str, numbers: range) -> int:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            print(work, numbers.start, numbers.stop, file=self.process.stdin, flush=True)
        found, _, state = self._said().partition(" ")
        assert state == "well"
        return int(found)

    def _said(self) -> str:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        assert said, f"it was lost: {self.process.wait()}"
        return said


@pytest.fixture
def chance() -> random.Random:
    return random.Random(39)  # noqa: S311 - nothing secret


def spoil(directory: Path, kind: str, chance: random.Random, before: dict[Path, int]) -> None:
    """Do something to each file of a store; `before` are sizes from before the last process made the files grow."""
    for file in sorted(directory.rglob("data.mdb")):
        size = file.stat().st_size
        match kind:
            case "cut":
                os.truncate(file, chance.choice([0, 100, 4096, 8192, size // 2, chance.randrange(size)]))
            case "cut where others have not seen it grow":
                os.truncate(file, chance.randrange(before.get(file, 0), size) if size > before.get(file, 0) else size)
            case "grown":
                os.truncate(file, size + chance.randrange(1, 1 << 20))
            case "replaced by a half":
                half = Path(shutil.copy(file, file.with_name("half")))
                os.truncate(half, max(8192, size // 2))
                half.replace(file)


KINDS = ("cut where others have not seen it grow", "cut", "grown", "replaced by a half")
HOSTILE = [pytest.param(count, 40, marks=pytest.mark.hostile) for count in (2, 4)]


@pytest.mark.parametrize(("processes", "times"), [(2, len(KINDS)), *HOSTILE])
def test_a_shared_store_that_is_cut_grown_and_replaced_loses_no_process(
    tmp_path: Path, chance: random.Random, processes: int, times: int, figure: TakeFigure
) -> None:
    with contextlib.ExitStack() as stack:
        users = [stack.enter_context(StoreUser(tmp_path)) for _ in range(processes)]
        users[0].write(range(_NUMBERS))
        for turn in range(times):
            kind = KINDS[turn % len(KINDS)]
            for user in users:
                user.read(range(_NUMBERS))
            before = {file: file.stat().st_size for file in tmp_path.rglob("data.mdb")}
            one = chance.randrange(processes)
            users[one].write(range(_NUMBERS, 2 * _NUMBERS))
            spoil(tmp_path, kind, chance, before)
            if kind.startswith("replaced"):  # a process that is started meanwhile opens what lies there
                users[one].__exit__()
                users[one] = stack.enter_context(StoreUser(tmp_path))
            chance.shuffle(users)
            for user in users:
                user.read(range(2 * _NUMBERS))
            if kind.startswith("replaced"):  # else the others go on with files that have no name any more
                for user in users:
                    user.__exit__()
                users = [stack.enter_context(StoreUser(tmp_path)) for _ in range(processes)]
            for user in users[:2]:
                user.write(range(_NUMBERS))
        lost = sum(user.process.poll() is not None for user in users)
        name = f"disk store spoilt {times} times under {processes} processes: processes lost"
        assert figure(name, lost, bound="== 0").holds


@contextlib.contextmanager
def servers(directory: Path, count: int) -> Iterator[list[ServerProcess]]:
    with contextlib.ExitStack() as stack:
        started = []
        for number in range(count):
            own = directory / f"server-{number}"
            own.mkdir(exist_ok=True)
            settings = {"memory_max_bytes": "1MiB", "remembered_results_max_bytes": 0}
            server = ServerProcess(own, disk_directory=directory / "store", **settings)
            started.append(stack.enter_context(server))
        yield started


def wait_for_writes(store: Path) -> None:
    """Wait until nothing is written: a file that is cut in the midst of a write still ends the process (cache.md)."""
    before: object = None
    while (now := [(file, file.stat().st_mtime_ns) for file in sorted(store.rglob("data.mdb"))]) != before:
        before = now
        time.sleep(0.3)


@pytest.mark.hostile
@pytest.mark.parametrize("count", [2, 4])
def test_servers_on_a_store_that_is_cut_grown_and_replaced_score_as_before(
    tmp_path: Path, chance: random.Random, count: int, figure: TakeFigure
) -> None:
    expected, changed, scored, lost = [], 0, 0, 0
    for _ in range(4):
        with servers(tmp_path, count) as running, contextlib.ExitStack() as stack:
            channels = [stack.enter_context(grpc.insecure_channel(server.address)) for server in running]
            stubs = [scoring_pb2_grpc.ScoringStub(channel) for channel in channels]
            expected = expected or score(stubs[0])
            for turn in range(10):
                before = {file: file.stat().st_size for file in tmp_path.rglob("data.mdb")}
                score(stubs[turn % count], 1300)  # pushes the first ones out of memory
                wait_for_writes(tmp_path / "store")
                # Those that are replaced go on with files that have no name any more, so that comes last.
                spoil(tmp_path / "store", KINDS[3 if turn == 9 else turn % 3], chance, before)
                for stub in stubs:
                    found = score(stub)
                    changed += sum(abs(a - b) > 2e-4 for a, b in zip(expected, found, strict=True))
                    scored += len(found)
            lost += sum(server.http("/readyz")[0] != 200 for server in running)
            assert not any("traceback" in line for server in running for line in server.log())
    where = f"disk store spoilt 40 times under {count} servers"
    assert figure(f"{where}: scores changed, of {scored}", changed, bound="== 0").holds
    assert figure(f"{where}: servers lost", lost, bound="== 0").holds
