"""Divides the cores of one or several machines among workers, so that each finds room on one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CORES_PER_WORKER: Final = 4
"""Encoders run beside Python in an engine, and those of one engine share its caches: more engines only take more memory
until Python alone fills a core."""
_USED: Final = Fraction(3, 4)
"""Of all cores: small machines beside large ones are left out rather than give all of them small workers."""
_RAY_STEPS: Final = 10_000
"""Ray counts parts of a core in steps of one by this, and rounds others up as well as down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How cores are divided.

    Attributes:
        workers: Processes that score.
        threads: Encoder runs at a time in each.
        reserved: Cores that each reserves, at most `threads`; all workers find as many beside each other.
    """

    workers: int
    threads: int
    reserved: float


def divided(machines: Sequence[int], *, workers: int | None, threads: int | None, own_judge: bool = False) -> Division:
    """Divides cores among workers.

    Args:
        machines: Cores of each machine, from 1.
        workers: How many; None: about one for `CORES_PER_WORKER` cores, on every machine that has those of one.
        threads: Of each; None: as many as all find room for.
        own_judge: Whether each worker would hold a judge, which takes gigabytes and all cores: one by itself then.
    """
    sizes = Counter(machines)
    count = workers or (1 if own_judge else _usual_workers(sizes))
    share = _largest_share(sizes, count)
    each = threads or max(1, int(share))
    return Division(workers=count, threads=each, reserved=float(min(Fraction(each), share)))


def _usual_workers(sizes: Counter[int]) -> int:
    cores = sum(size * machines for size, machines in sizes.items())
    # What a machine alone would give each of its workers; one that has less than that gets none.
    shares = sorted({size // -(-size // CORES_PER_WORKER) for size in sizes}, reverse=True)
    enough = (share for share in shares if _room(sizes, Fraction(share)) * share >= _USED * cores)
    chosen = next(enough, max(shares, key=lambda share: _room(sizes, Fraction(share)) * share))
    return _room(sizes, Fraction(chosen))


def _largest_share(sizes: Counter[int], workers: int) -> Fraction:
    """Cores that each of so many workers can have at most, in Ray's steps."""
    shares = {Fraction(size, each) for size in sizes for each in range(1, workers + 1)}
    largest = max(share for share in shares if _room(sizes, share) >= workers)
    return Fraction(int(largest * _RAY_STEPS), _RAY_STEPS)


def _room(sizes: Counter[int], share: Fraction) -> int:
    """Workers with so many cores each that have room."""
    return sum(machines * int(size / share) for size, machines in sizes.items())
