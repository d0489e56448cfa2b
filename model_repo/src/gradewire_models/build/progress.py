"""How a build tells what it is doing; the command draws it, tests collect it, a library caller may ignore it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running build.

    Attributes:
        step: What is being done, for people.
        done_bytes: How much of it is done; 0 when it cannot be counted.
        total_bytes: How much there is to do; 0 when it cannot be counted.
    """

    step: str
    done_bytes: int = 0
    total_bytes: int = 0


Report = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Reports nothing."""
