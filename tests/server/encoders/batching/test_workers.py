"""Workers keep to their own cores, and behind the thread that talks to callers."""

import os
import sys
import threading

import pytest

from gradewire_server.encoders.batching.workers import worker_pool
from gradewire_server.settings.compute import allowed_cores


def affinities(count: int, *, pinned: bool) -> list[set[int]]:
    together = threading.Barrier(count)

    def look() -> set[int]:
        together.wait(10)  # so that every thread has one
        return os.sched_getaffinity(threading.get_native_id())

    with worker_pool(count, name="t", pinned=pinned) as pool:
        return [future.result() for future in [pool.submit(look) for _ in range(count)]]


def test_as_many_workers_as_cores_have_one_each() -> None:
    cores = allowed_cores()
    assert sorted(map(tuple, affinities(len(cores), pinned=True))) == [(core,) for core in cores]
    assert os.sched_getaffinity(0) == set(cores)  # nobody else is moved


def test_otherwise_nobody_is_pinned() -> None:
    cores = set(allowed_cores())
    assert affinities(len(cores) + 1, pinned=True) == [cores] * (len(cores) + 1)
    assert affinities(len(cores), pinned=False) == [cores] * len(cores)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives each thread a priority of its own")
@pytest.mark.parametrize("pinned", [True, False])
def test_workers_go_behind_and_nobody_else_does(*, pinned: bool) -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def level() -> tuple[int, int]:
        started: list[int] = []
        child = threading.Thread(target=lambda: started.append(os.getpriority(os.PRIO_PROCESS, 0)))
        child.start()
        child.join()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), started[0]

    with worker_pool(len(allowed_cores()), name="t", pinned=pinned, nice=own + 3) as pool:
        assert pool.submit(level).result() == (own + 3, own + 3)
    with worker_pool(1, name="t", pinned=False, nice=0) as pool:
        assert pool.submit(level).result() == (own, own), "a priority that was lowered before is kept"
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
