"""How much of messages that have not ended yet each connection has sent.

The system says what a connection has received, the receiver what was handed over of it. The rest is on its way, or was
thrown away with calls that were refused before their message was read. What those have sent cannot be in memory any
more once no call of the connection waits for a message, nor after a time in which every call that waited has ended.
"""

from collections.abc import Collection, Mapping
from typing import Final

_FORGOTTEN_S: Final = 60.0
"""Seconds after which no message is on its way that was so before."""
_PAUSE_S: Final = 1.0
"""Without a look for so long, nobody knows what was thrown away meanwhile."""


class Unfinished:
    """Looked at again and again while memory may be short; belongs to one thread."""

    def __init__(self) -> None:
        self._bases: dict[str, int] = {}
        self._next_bases: dict[str, int] = {}
        self._looked_s = self._renewed_s = float("-inf")

    def look(
        self, received: Mapping[str, int], delivered: Mapping[str, int], waiting: Collection[str], now_s: float
    ) -> dict[str, int]:
        """Bytes that are on their way, by peer.

        Args:
            received: Bytes that have come in, by peer; connections that are not in it are forgotten.
            delivered: Of these, what was handed over.
            waiting: Peers of which a call waits for a message.
            now_s: Monotonic seconds.
        """
        unexplained = {peer: count - delivered.get(peer, 0) for peer, count in received.items()}
        if now_s - self._looked_s > _PAUSE_S:
            self._bases = dict(unexplained)
            self._next_bases, self._renewed_s = dict(unexplained), now_s
        elif now_s - self._renewed_s > _FORGOTTEN_S:
            self._bases, self._next_bases, self._renewed_s = self._next_bases, dict(unexplained), now_s
        self._looked_s = now_s
        bases: dict[str, int] = {}
        for peer, count in unexplained.items():
            # A new connection may have the address of one before it, of which more was handed over than it has sent.
            bases[peer] = min(self._bases.get(peer, 0), count) if peer in waiting else count
        self._bases = bases
        return {peer: count - bases[peer] for peer, count in unexplained.items() if count > bases[peer]}
