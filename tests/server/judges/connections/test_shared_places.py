"""Places that processes share: never too many, none kept from those who wait, and none lost with a process."""

import fcntl
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from gradewire_server.judges.connections.shared_places import SharedPlaces

SPAWNED = multiprocessing.get_context("spawn")


def act(pipe: Connection, file: Path, count: int, processes: int) -> None:
    places = SharedPlaces(file, count, processes)
    while (asked := pipe.recv()) is not None:
        name, arguments = asked
        if name == "leave_and_take":  # at once, however slow the pipe is
            places.leave()
            pipe.send(places.take())
        else:
            pipe.send(getattr(places, name)(**arguments))
    places.close()


class Process:
    """Another process with its own places."""

    def __init__(self, file: Path, count: int, processes: int) -> None:
        self._pipe, end = SPAWNED.Pipe()
        self.process = SPAWNED.Process(target=act, args=(end, file, count, processes), daemon=True)
        self.process.start()

    def ask(self, name: str, **arguments: Any) -> Any:
        self._pipe.send((name, arguments))
        assert self._pipe.poll(30)
        return self._pipe.recv()

    def take_all(self) -> int:
        taken = 0
        while self.ask("take"):
            taken += 1
        self.ask("wish", more=True)
        return taken

    def end(self) -> None:
        if self.process.is_alive():
            self._pipe.send(None)
        self.process.join(30)


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def begun(count: int, processes: int = 2) -> Process:
        started.append(Process(tmp_path / "places", count, processes))
        return started[-1]

    yield begun
    for each in started:
        each.end()


def test_one_that_is_alone_has_all_and_gives_back_to_who_waits_until_both_have_their_share(start: Start) -> None:
    one, other = start(8), start(8)
    assert one.take_all() == 8
    assert other.take_all() == 0
    for _ in range(4):
        one.ask("leave")
        assert one.take_all() == 0  # the place is for the other one
        assert other.take_all() == 1
    one.ask("leave")
    assert one.take_all() == 1
    assert other.take_all() == 0  # it has its share
    other.ask("wish", more=False)
    for _ in range(4):
        other.ask("leave")
    assert one.take_all() == 4


def test_fewer_places_than_processes_are_used_in_turn(start: Start) -> None:
    one, other = start(1), start(1)
    assert one.take_all() == 1
    assert other.take_all() == 0
    holder, waits = one, other
    for _ in range(4):
        assert not holder.ask("leave_and_take")  # it lets the other one look first
        holder.ask("wish", more=True)
        until_s = time.monotonic() + 20
        while not waits.ask("take"):  # it rests itself for a moment
            assert time.monotonic() < until_s
        holder, waits = waits, holder


def test_a_process_that_ends_in_any_way_leaves_its_places(start: Start) -> None:
    one, other = start(4), start(4)
    assert one.take_all() == 4
    assert other.take_all() == 0
    assert one.process.pid is not None
    os.kill(one.process.pid, signal.SIGKILL)
    one.process.join(30)
    until_s = time.monotonic() + 20
    taken = 0
    while taken < 4 and time.monotonic() < until_s:
        taken += other.take_all()
        time.sleep(0.05)
    assert taken == 4
    again = start(4)
    assert again.take_all() == 0
    other.end()
    assert again.take_all() == 4


def test_leavers_and_successors_may_overlap_and_too_many_processes_are_an_error(start: Start) -> None:
    assert [start(4).take_all() for _ in range(8)] == [4] + [0] * 7
    late = start(4)
    late.process.join(30)
    assert late.process.exitcode == 1


def test_an_error_leaves_no_file_open(start: Start, tmp_path: Path) -> None:
    for _ in range(8):
        start(4).take_all()
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(OSError, match="more processes share"):
        SharedPlaces(tmp_path / "places", 4, 2)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def hammer(file: Path, other: Path, count: int, result: Any) -> None:
    """Take and leave as fast as possible, and prove each place by a lock of another file."""
    places = SharedPlaces(file, count, 3)
    proof = os.open(other, os.O_RDWR | os.O_CREAT)
    held: list[int] = []
    taken = extra = 0
    until_s = time.monotonic() + 1.5
    while time.monotonic() < until_s:
        if len(held) < 3 and places.take():
            taken += 1
            for place in range(count):
                if place not in held:
                    try:
                        fcntl.lockf(proof, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                    except BlockingIOError:
                        continue
                    held.append(place)
                    break
            else:
                extra += 1
                break
        elif held:
            fcntl.lockf(proof, fcntl.LOCK_UN, 1, held.pop())
            places.leave()
        places.wish(more=True)
    result.put((taken, extra))


def test_there_are_never_more_than_allowed_and_each_process_gets_some(tmp_path: Path) -> None:
    result = SPAWNED.Queue()
    files = tmp_path / "places", tmp_path / "proof"
    processes = [SPAWNED.Process(target=hammer, args=(*files, 4, result)) for _ in range(3)]
    for each in processes:
        each.start()
    found = [result.get(timeout=60) for _ in processes]
    for each in processes:
        each.join(30)
    assert [extra for _, extra in found] == [0, 0, 0]
    assert min(taken for taken, _ in found) > 10
