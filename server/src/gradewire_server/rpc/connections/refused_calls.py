"""Finds connections that open and reset calls of which gRPC makes none, and tells how many.

Of one connection gRPC's core holds `MAX_STREAMS` calls, reset ones that nobody has looked at included; whatever comes
beyond it resets by itself, and counts it nowhere. That spares others from being cancelled, but it takes a core: one
connection sent 300 000 of them a second, and the calls of others took ten times as long. So the system is asked how
many bytes went either way, and what no message and no answer explains are frames of such calls.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gradewire_server.rpc.connections.channelz import StreamCounts, peer_of
from gradewire_server.rpc.receiving.sockets import Received

Peer: TypeAlias = tuple[str, int]
"""Host and port."""

_LOOK_EVERY_S: Final = 0.5
_LEAST_BYTES: Final = 64 * 1024
"""A connection on which less has come in ever is not looked at."""
_LEAST_CALL_BYTES: Final = 24
"""Frames that open and reset a call, with all its headers in one byte each."""
_RESET_BYTES: Final = 13
"""The frame by which gRPC resets a call."""
_LEAST_RESETS: Final = 3
"""Between two looks. Few of the calls that are reset get past gRPC; where none does, it is something else: a large
message on its way in while a large reply is on its way out."""
_ANSWER_BYTES: Final = 512
"""An answer without a message: a refusal with its code, its text and a hint."""


class RefusedCalls:
    """Belongs to one thread.

    Args:
        received: Connections on which at least so many bytes have come in, by the peer's address as gRPC writes it.
        delivered: Bytes of each connection's messages that were handed over, by the same address.
        streams: What gRPC tells of each connection; asked only while there is a suspicion, for it takes time.
        max_per_s: Calls of one connection that are not worth telling.
    """

    def __init__(
        self,
        received: Callable[[int], Mapping[str, Received]],
        delivered: Mapping[str, int],
        streams: Callable[[], Mapping[Peer, StreamCounts]],
        *,
        max_per_s: int,
    ) -> None:
        self._received = received
        self._delivered = delivered
        self._streams = streams
        self._max_per_s = max_per_s
        self._looked_s = float("-inf")
        self._bytes: dict[str, tuple[int, int]] = {}
        self._counts: Mapping[Peer, StreamCounts] = {}

    def since_last_look(self, now_s: float) -> Mapping[Peer, int]:
        """About how many calls gRPC has refused since the last look, of connections where these are too many.

        It looks twice a second however often it is asked; a connection is told of from the third look on, and not
        while a reply is sent on it: what that took of the bytes is not known.

        Args:
            now_s: Monotonic seconds.
        """
        passed_s = now_s - self._looked_s
        if passed_s < _LOOK_EVERY_S:
            return {}
        self._looked_s = now_s
        received = self._received(_LEAST_BYTES)
        # In, without what was a message; and out.
        before, self._bytes = (
            self._bytes,
            {
                peer: (each.size_bytes - self._delivered.get(peer, 0), each.sent_bytes)
                for peer, each in received.items()
            },
        )
        most = self._max_per_s * passed_s
        suspected = {
            peer: (unexplained - before[peer][0], sent - before[peer][1])
            for peer, (unexplained, sent) in self._bytes.items()
            if peer in before and unexplained - before[peer][0] > most * _LEAST_CALL_BYTES
        }
        counts, self._counts = self._counts, self._streams() if suspected else {}
        found: dict[Peer, int] = {}
        for name, (unexplained, sent) in suspected.items():
            peer = peer_of(name)
            if peer is None or peer not in counts or peer not in self._counts:
                continue
            then, now = counts[peer], self._counts[peer]
            if now.messages_sent == then.messages_sent and now.failed - then.failed >= _LEAST_RESETS:
                answers = (now.started - then.started) * _ANSWER_BYTES
                refused = min((sent - answers) // _RESET_BYTES, unexplained // _LEAST_CALL_BYTES)
                if refused > most:
                    found[peer] = refused
        return found
