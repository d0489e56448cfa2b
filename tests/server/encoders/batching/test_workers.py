"""Workers keep to their own cores."""

import os
import threading

from gradewire_server.encoders.batching.workers import worker_pool
from gradewire_server.settings.cores import allowed_cores


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
