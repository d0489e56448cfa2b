"""What all requests together may take: how many there are, and the memory of their bodies."""

from collections.abc import Iterator
from contextlib import contextmanager

from gradewire_gateway.problems import too_busy


class ByteBudget:
    """Bytes that all bodies together may hold.

    Args:
        limit_bytes: How many.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.held_bytes = 0

    def change(self, by_bytes: int) -> None:
        """Takes more, or gives back; raises ProblemError where there is too little left."""
        if by_bytes > 0 and self.held_bytes + by_bytes > self._limit_bytes:
            raise too_busy("the bodies of the requests in flight take too much memory; try again")
        self.held_bytes += by_bytes


class Places:
    """How many requests may be in flight.

    Args:
        count: So many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.taken = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Takes one for as long as the context lasts; raises ProblemError where none is left."""
        if self.taken >= self._count:
            raise too_busy(f"{self._count} requests are in flight; try again")
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
