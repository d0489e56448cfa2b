"""Bounds how often one peer may open calls and reset them ("rapid reset").

gRPC takes in every call before our code sees it, and a call that was reset costs nearly as much as one that is
answered: one connection that opens and resets calls keeps everybody else out. A host that does so is found by gRPC's
own figures of each connection (channelz); its connections are closed, and for a while the system lets it open no
others. Were it let in at once, twenty connections would come again as fast as they are closed.

gRPC can count reset calls that nobody has looked at yet against the limit of a connection, which spares others from the
first of them (`grpc.http.overload_protection`). But it counts answered calls that this process has not put away yet as
well: of 300 calls that a client made at once over one connection, half ended UNAVAILABLE. So that is off.

The figures of all connections take time (0.2 ms each), so they are read only while many calls end without having been
answered, which one figure of the server tells. It is gRPC's and not ours: of half a million calls that were reset in
6 s, our code saw 600.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import Counter

from gradewire_server.rpc.connections.address_filter import AddressFilter
from gradewire_server.rpc.connections.channelz import Peer, Resets, ServerConnections

_log = logging.getLogger(__name__)

MAX_STREAMS: Final = 128
"""Calls that one connection may have open; further ones wait in the client."""
OPTIONS: Final = (
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.http.overload_protection", 0),
    ("grpc.enable_channelz", 1),
)
"""What the guard needs of the server."""
_LOOK_EVERY_S: Final = 0.05
_LOOK_SELDOM_EVERY_S: Final = 1.0
_LOOK_SHARE: Final = 0.01
"""Of one core that looking may take: gRPC goes through all connections for it."""
_LOOK_CLOSELY_EVERY_S: Final = 0.025
"""While many calls end without having been answered."""
_BURST_S: Final = 0.25
"""A host may reset what it may in this time all at once: a client that ends with its calls open does."""
_FEW: Final = 10
"""A connection may have reset so many between two looks while others of its host reset too many."""
_FIRST_KEPT_OUT_S: Final = 2.0
_LAST_KEPT_OUT_S: Final = 60.0
"""A host that goes on is kept out for twice as long each time, up to this."""
_LOG_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ResetTelemetry:
    """What the guard counts.

    Attributes:
        calls: That were reset while it looked.
        connections: That it closed for it.
        kept_out: Times that a host was kept from connecting.
    """

    calls: Counter
    connections: Counter
    kept_out: Counter


class ResetGuard:
    """Closes connections of a host that resets more than `max_per_s` calls a second; a thread of its own.

    Args:
        telemetry: Where it counts.
        connections: Of the server.
        addresses: Keeps hosts out.
        max_per_s: Of all connections of one host together.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        telemetry: ResetTelemetry,
        connections: ServerConnections,
        addresses: AddressFilter,
        *,
        max_per_s: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._telemetry = telemetry
        self._connections = connections
        self._addresses = addresses
        self._max_per_s = max_per_s
        self._clock = clock
        self._known: Resets = {}
        self._looked_s = clock()
        self._unanswered = connections.unanswered()
        self._unanswered_now = 0.0
        self._resets_now: dict[str, float] = {}
        self._kept_out: dict[str, _KeptOut] = {}
        self._unlogged: dict[str, int] = {}
        self._quiet_before_s: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gradewire-resets", daemon=True)

    def start(self) -> None:
        """Watches from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, and keeps nobody out any more."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._addresses.keep_out(())

    def look(self) -> bool:
        """Looks once at what has happened since the last time; returns whether to look again soon."""
        now_s, unanswered = self._clock(), self._connections.unanswered()
        self._let_in(now_s)
        allowed = self._max_per_s * (now_s - self._looked_s)
        new = unanswered - self._unanswered
        self._looked_s, self._unanswered = now_s, unanswered
        # What a second allows flows out of these as time goes by; what is above the burst is too much.
        self._unanswered_now = max(0.0, self._unanswered_now + new - allowed)
        self._resets_now = {host: now - allowed for host, now in self._resets_now.items() if now > allowed}
        many = self._unanswered_now + allowed > self._max_per_s * _BURST_S
        resets = self._resets_by_host(many=many)
        for host, of_host in resets.items():
            total = sum(of_host.values())
            self._telemetry.calls.inc(total)
            self._resets_now[host] = self._resets_now.get(host, 0.0) + total
            if self._resets_now[host] > self._max_per_s * _BURST_S:
                # Others may share the host, behind a proxy: only who has at least half an even share of it is closed,
                # unless the host goes on behind those that were closed before.
                least, unread_of = total / len(of_host) / 2, ""
                if self._is_kept_out(host, now_s):
                    least, unread_of = min(least, _FEW), host
                closed = self._connections.close(
                    {peer for peer, count in of_host.items() if count >= least}, unread_of=unread_of
                )
                self._telemetry.connections.inc(closed)
                self._keep_out(host, now_s)
                self._say(host, round(self._resets_now[host]), closed, now_s)
        return many

    def _resets_by_host(self, *, many: bool) -> defaultdict[str, dict[Peer, int]]:
        """Resets of each connection since the last look; none where there are not many, for to ask takes time."""
        resets: defaultdict[str, dict[Peer, int]] = defaultdict(dict)
        before, self._known = self._known, self._connections.resets() if many else {}
        # A connection that was not there at the last look has reset all its calls since; at the first look nobody
        # knows when, and the next one tells.
        for peer, count in self._known.items():
            since = count - before.get(peer, 0 if before else count)
            if since > 0:
                resets[peer[0]][peer] = since
        return resets

    def _keep_out(self, host: str, now_s: float) -> None:
        if self._is_kept_out(host, now_s):
            return  # connections that came before
        known = self._kept_out.get(host)
        pause_s = _FIRST_KEPT_OUT_S if known is None else min(2 * known.pause_s, _LAST_KEPT_OUT_S)
        self._kept_out[host] = _KeptOut(now_s + pause_s, pause_s)
        self._telemetry.kept_out.inc()
        self._addresses.keep_out(self._hosts_out(now_s))

    def _is_kept_out(self, host: str, now_s: float) -> bool:
        known = self._kept_out.get(host)
        return known is not None and now_s < known.until_s

    def _let_in(self, now_s: float) -> None:
        if not self._kept_out:
            return
        # Remembered for a while longer: a host that begins again is kept out for longer.
        self._kept_out = {
            host: each for host, each in self._kept_out.items() if now_s < each.until_s + _LAST_KEPT_OUT_S
        }
        self._addresses.keep_out(self._hosts_out(now_s))

    def _hosts_out(self, now_s: float) -> list[str]:
        out = [(each.until_s, host) for host, each in self._kept_out.items() if now_s < each.until_s]
        return [host for _, host in sorted(out, reverse=True)]

    def _say(self, host: str, resets: int, closed: int, now_s: float) -> None:
        self._unlogged[host] = self._unlogged.get(host, 0) + closed
        if now_s < self._quiet_before_s.get(host, 0.0):
            return
        _log.warning(
            "%s opened calls and reset them (%d at once, max_resets_per_s is %d): %d of its connections were closed, "
            "and it may open no others for %.0f s",
            host,
            resets,
            self._max_per_s,
            self._unlogged.pop(host),
            self._kept_out[host].pause_s,
        )
        self._quiet_before_s = {each: until for each, until in self._quiet_before_s.items() if until > now_s}
        self._quiet_before_s[host] = now_s + _LOG_EVERY_S

    def _watch(self) -> None:
        every_s = _LOOK_EVERY_S
        while not self._ended.wait(every_s):
            began_s = time.thread_time()
            try:
                closely = self.look()
                every_s = _LOOK_CLOSELY_EVERY_S if closely else pause_after(time.thread_time() - began_s)
            except Exception:  # noqa: BLE001 - whatever it is: scoring goes on without this thread
                _log.exception("resets are not watched any more")
                return


def pause_after(cost_s: float) -> float:
    """Seconds to the next look, after one that took `cost_s` of a core."""
    return min(_LOOK_SELDOM_EVERY_S, max(_LOOK_EVERY_S, cost_s / _LOOK_SHARE))


@dataclass(frozen=True, slots=True)
class _KeptOut:
    until_s: float
    pause_s: float
