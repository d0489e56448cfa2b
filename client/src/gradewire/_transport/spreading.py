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
_REFUSED_S: Final = 1.0
"""Longest time for which calls rather go to other processes than to one that refused a call."""

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
        refused_until_s: The process at its other end has too much to do until then; monotonic seconds.
    """

    carrier: C
    calls: int = 0
    process: str = ""
    asked: bool = False
    avoided_until_s: float = 0.0
    refused_until_s: float = 0.0

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

    def refused(self, connection: Connection[C], retry_after_s: float | None) -> bool:
        """The process of a connection had no room for a call, and said when to come back.

        Returns:
            Whether another process is known that has refused none lately: the same call may go there at once.
        """
        now_s = time.monotonic()
        for each in self.connections:
            if each is connection or (each.process and each.process == connection.process):
                each.refused_until_s = now_s + min(_REFUSED_S, retry_after_s or 0.0)
        return bool(connection.process) and any(
            each.process and each.refused_until_s <= now_s and each.avoided_until_s <= now_s
            for each in self.connections
        )

    def least_loaded(self) -> Connection[C]:
        """The connection for the next call: of the process with the fewest calls of this client.

        Processes that found nobody or had no room lately come last.
        """
        now_s = time.monotonic()
        here = [each for each in self.connections if each.avoided_until_s <= now_s] or self.connections
        here = [each for each in here if each.refused_until_s <= now_s] or here
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
