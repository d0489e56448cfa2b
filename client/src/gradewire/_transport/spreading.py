"""Spreads calls over the connections to one server, least loaded first.

A connection stays with one process of a server that has several (SO_REUSEPORT), and which one is the system's choice.
So further connections are made while calls overlap, until each process has one.
"""

import time
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

MAX_CONNECTIONS: Final = 16
"""Where the number is left to the client."""
_TRIES_PER_PROCESS: Final = 4
"""Connections for each process of the server: the system may give several to one of them."""
_AVOIDED_S: Final = 1.0
"""Seconds for which a connection is left alone after a call on it found nobody."""

C = TypeVar("C")


@dataclass(slots=True, eq=False)
class Connection(Generic[C]):
    """One connection.

    Attributes:
        carrier: What calls are made with.
        calls: In flight.
        process: INDEX/COUNT of the process at its other end; empty while that is not known, or is the only one.
        asked: Whether the server has said of this connection which process that is, or that it has one only.
        avoided_until_s: Monotonic seconds.
    """

    carrier: C
    calls: int = 0
    process: str = ""
    asked: bool = False
    avoided_until_s: float = 0.0

    def failed(self) -> None:
        """A call found nobody: the next ones go elsewhere for a while, and it may lead to another process then."""
        self.avoided_until_s = time.monotonic() + _AVOIDED_S
        self.process, self.asked = "", False


class Spread(Generic[C]):
    """The connections of one client. Lives on one event loop.

    Args:
        most: How many there may be; 0: as many as the server's processes need.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self.connections: list[Connection[C]] = []

    @property
    def wants_another(self) -> bool:
        """Whether the next call is to have a new connection."""
        if not self.connections:
            return True
        if any(not each.calls for each in self.connections) or len(self.connections) >= self._limit:
            return False
        known = {each.process for each in self.connections if each.process}
        return bool(self._most) or 1 < self._processes > len(known)

    def least_loaded(self) -> Connection[C]:
        """The connection for the next call: of the process with the fewest calls of this client."""
        now_s = time.monotonic()
        here = [each for each in self.connections if each.avoided_until_s <= now_s] or self.connections
        by_process: dict[object, int] = {}
        for each in here:
            key = each.process or each
            by_process[key] = by_process.get(key, 0) + each.calls
        return min(here, key=lambda each: (by_process[each.process or each], each.calls))

    @property
    def _processes(self) -> int:
        counts = [int(each.process.partition("/")[2]) for each in self.connections if each.process]
        return max(counts, default=1)

    @property
    def _limit(self) -> int:
        return self._most or min(MAX_CONNECTIONS, _TRIES_PER_PROCESS * self._processes)


def process_of(value: object) -> str:
    """What a server says of its process; empty where it is no INDEX/COUNT."""
    text = str(value)
    index, slash, count = text.partition("/")
    return text if slash and index.isdecimal() and count.isdecimal() else ""
