"""Places for requests in flight."""

from typing import Protocol

from typing_extensions import override


class Places(Protocol):
    """Places for requests in flight. For one event loop only."""

    def take(self) -> bool:
        """Take a place for a request, and return True; return False if no place is free."""

    def leave(self) -> None:
        """Leave a place after a request."""

    def wish(self, *, more: bool) -> float | None:
        """Note whether requests wait for a place, so that processes with more than their share take no new places.

        Args:
            more: True if requests wait, because `take` found no free place for them.

        Returns:
            Seconds after which to call `take` again, or None to call it only after the next `leave`.
        """

    def close(self) -> None:
        """Leave all places."""


class OwnPlaces(Places):
    """Places of one process."""

    def __init__(self, count: int) -> None:
        self._free = count

    @override
    def take(self) -> bool:
        if not self._free:
            return False
        self._free -= 1
        return True

    @override
    def leave(self) -> None:
        self._free += 1

    @override
    def wish(self, *, more: bool) -> float | None:
        del more
        return None

    @override
    def close(self) -> None:
        return
