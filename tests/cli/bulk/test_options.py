"""Cores of one or several machines, divided among the workers of a bulk run."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.bulk.options import divided


@pytest.mark.parametrize(
    ("cores", "workers", "threads", "expected"),
    [
        (8, None, None, (2, 4)),
        (2, None, None, (1, 2)),
        (1, None, None, (1, 1)),
        (3, None, None, (1, 3)),
        (5, None, None, (2, 2)),
        (8, None, 1, (2, 1)),
        (8, 2, None, (2, 4)),
        (8, 3, None, (3, 2)),
        (8, 16, None, (16, 1)),
    ],
)
def test_one_machine(cores: int, workers: int | None, threads: int | None, expected: tuple[int, int]) -> None:
    found = divided([cores], workers=workers, threads=threads)
    assert (found.workers, found.threads) == expected


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ([8, 8], (4, 4)),
        ([2, 2, 2, 2], (4, 2)),
        ([1, 1], (2, 1)),
        ([6, 6], (4, 3)),
        ([2, 2, 4], (4, 2)),
        # A small one beside large ones, as that from which a cluster is begun: it would make all workers small.
        ([2, 16, 16], (8, 4)),
        ([1, 64], (16, 4)),
        ([3, 3, 3, 4, 4, 4], (6, 3)),
    ],
)
def test_several_machines(machines: list[int], expected: tuple[int, int]) -> None:
    found = divided(machines, workers=None, threads=None)
    assert (found.workers, found.threads, found.reserved) == (*expected, expected[1])


def test_a_judge_of_this_machine_has_the_largest_for_itself() -> None:
    found = divided([2, 8, 4], workers=None, threads=None, own_judge=True)
    assert (found.workers, found.threads, found.reserved) == (1, 8, 8)
    found = divided([2, 8, 4], workers=2, threads=1, own_judge=True)
    assert (found.workers, found.threads, found.reserved) == (2, 1, 1)


def test_more_threads_than_a_machine_has_cores_reserve_no_more_than_it_has() -> None:
    found = divided([4, 4], workers=None, threads=16)
    assert (found.workers, found.threads, found.reserved) == (2, 16, 4)


def test_more_workers_than_cores_share_them_in_the_steps_that_ray_counts() -> None:
    found = divided([2], workers=3, threads=None)
    assert (found.workers, found.threads, found.reserved) == (3, 1, 0.6666)


@given(
    machines=st.lists(st.integers(1, 96), min_size=1, max_size=6),
    workers=st.none() | st.integers(1, 40),
    threads=st.none() | st.integers(1, 12),
)
def test_all_workers_find_room_beside_each_other(machines: list[int], workers: int | None, threads: int | None) -> None:
    found = divided(machines, workers=workers, threads=threads)
    assert 0 < found.reserved <= found.threads
    reserved = Fraction(round(found.reserved * 10_000), 10_000)
    assert sum(int(cores / reserved) for cores in machines) >= found.workers
    assert found.workers == workers or workers is None
    assert found.threads == threads or threads is None
