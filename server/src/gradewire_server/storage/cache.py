"""The cache in memory (an LRU), the second level, the queue of writes to the second level, and the cache's metrics."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from sys import getsizeof
from typing import Final, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.resilience import BreakerState
from gradewire_server.storage.codec import EntryKind, pack, with_tier

_log = logging.getLogger(__name__)

ENTRY_OVERHEAD_BYTES = 240
"""Maximum size of an OrderedDict entry without its key and value, measured by a test."""
_FIXED_BYTES: Final = ENTRY_OVERHEAD_BYTES + 2 * getsizeof(b"")

_SECONDS: Final = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
_PREFIX: Final = "gradewire_engine"
_STORE_OPERATION: Final = ("store", "operation")

CHUNK_KEYS = {EntryKind.SENTENCE: 256, EntryKind.TOKENS: 16, EntryKind.VERDICT: 256, EntryKind.LOGIT: 256}
"""Number of entries to read at a time. A long text's token vectors are as large as 250 sentence vectors."""

_CHUNK = 256
_CHUNK_BYTES = 4 << 20
_PENDING_BYTES_EACH = 2048


class SegmentedLru:
    """A segmented LRU cache from keys to bytes. Not thread-safe: use it only on the event loop's thread.

    Args:
        max_bytes: Maximum total size of keys, values and the cache's own structure.
        protected_share: Maximum share of `max_bytes` for the protected segment, 0 to 1.
    """

    __slots__ = (
        "_max_bytes",
        "_probation",
        "_protected",
        "_protected_bytes",
        "_protected_max",
        "evicted_entries",
        "used_bytes",
    )

    def __init__(self, max_bytes: int, *, protected_share: float = 0.8) -> None:
        if max_bytes < 1 or not 0 <= protected_share <= 1:
            raise ValueError("max_bytes must be positive, and protected_share must be between 0 and 1")
        self._max_bytes = max_bytes
        self._protected_max = int(max_bytes * protected_share)
        self._probation: OrderedDict[bytes, bytes] = OrderedDict()
        self._protected: OrderedDict[bytes, bytes] = OrderedDict()
        self.used_bytes = 0
        self._protected_bytes = 0
        self.evicted_entries = 0

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def __contains__(self, key: bytes) -> bool:
        return key in self._protected or key in self._probation

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None. The key becomes the most recently used key."""
        value = self._protected.get(key)
        if value is not None:
            self._protected.move_to_end(key)
            return value
        value = self._probation.pop(key, None)
        if value is not None:
            self._protect(key, value, _size(key, value))
        return value

    def peek(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None. This does not count as a use."""
        value = self._protected.get(key)
        return self._probation.get(key) if value is None else value

    def mark_stored(self, key: bytes, tier: Tier) -> None:
        """Record in the value of `key`, if present, that the second level has it with `tier`.

        This does not count as a use.
        """
        for segment in (self._protected, self._probation):
            if (value := segment.get(key)) is not None:
                segment[key] = with_tier(value, tier)

    def refresh(self, key: bytes, value: bytes) -> None:
        """Replace the value of `key`, if present, with a value of the same length. This does not count as a use."""
        for segment in (self._protected, self._probation):
            if key in segment:
                segment[key] = value

    def put(self, key: bytes, value: bytes, *, pinned: bool, shared: bool = True) -> None:
        """Store `value`, and replace any earlier value. Ignore a value larger than the whole cache.

        A pinned value goes directly to the protected segment. Any other value starts in the probation segment, unless
        its key is already protected. If `shared` is False, other processes must not use the value.
        """
        del shared  # this cache shares nothing
        size = _size(key, value)
        if size > self._max_bytes:
            self.discard(key)
            return
        protected = key in self._protected
        if protected or key in self._probation:
            self.discard(key)
        self.used_bytes += size
        if pinned or protected:
            self._protect(key, value, size)
        else:
            self._probation[key] = value
        if self.used_bytes > self._max_bytes:
            self._evict()

    def put_new(self, key: bytes, value: bytes, *, pinned: bool) -> bytes:
        """Store a value that was just computed, unless this process has a value; return the value that it has now.

        Other processes' memory is written, but not read: a value that another process computed at the same time stays
        that process's own.
        """
        known = self._protected.get(key)
        if known is None:
            known = self._probation.get(key)
        if known is not None:
            return self.get(key) or known  # counts as a use
        size = len(key) + len(value) + _FIXED_BYTES
        if size <= self._max_bytes:
            self.used_bytes += size
            if pinned:
                self._protect(key, value, size)
            else:
                self._probation[key] = value
            if self.used_bytes > self._max_bytes:
                self._evict()
        return value

    def discard(self, key: bytes) -> None:
        """Remove `key`."""
        value = self._probation.pop(key, None)
        if value is None:
            value = self._protected.pop(key, None)
            if value is None:
                return
            self._protected_bytes -= _size(key, value)
        self.used_bytes -= _size(key, value)

    def _protect(self, key: bytes, value: bytes, size: int) -> None:
        self._protected[key] = value
        self._protected_bytes += size
        while self._protected_bytes > self._protected_max:
            old_key, old_value = self._protected.popitem(last=False)
            self._protected_bytes -= _size(old_key, old_value)
            self._probation[old_key] = old_value

    def _evict(self) -> None:
        while self.used_bytes > self._max_bytes:
            segment = self._probation or self._protected
            key, value = segment.popitem(last=False)
            size = _size(key, value)
            self.used_bytes -= size
            if segment is self._protected:
                self._protected_bytes -= size
            self.evicted_entries += 1


def _size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + _FIXED_BYTES


class StorageTelemetry:
    """The Prometheus metrics of the in-process cache and of stores. Each registry needs its own instance."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry

        def counter(name: str, what: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"{_PREFIX}_{name}", what, labels, registry=registry)

        self.store_operations = counter("store_operations", "Calls to the second-level store.", _STORE_OPERATION)
        self.store_errors = counter("store_errors", "Failed calls to the second-level store.", _STORE_OPERATION)
        self.store_rejected = counter("store_rejected_values", "Misses because a value failed its check.", ("store",))
        self.refused_macs = counter(
            "store_refused_macs", "Misses because a value's MAC is missing or wrong.", ("reason",)
        )
        self.store_s = Histogram(
            f"{_PREFIX}_store_seconds",
            "Duration of a call to the second-level store.",
            _STORE_OPERATION,
            registry=registry,
            buckets=_SECONDS,
        )
        self.unwritten = counter("unwritten_values", "Values that did not reach the second-level store.", ("reason",))
        self._breaker = Gauge(
            f"{_PREFIX}_breaker_state",
            "1 for the current state of the circuit breaker for Redis.",
            ("state",),
            registry=registry,
        )
        self.set_breaker(BreakerState.CLOSED)

    def expose(self, memory: SegmentedLru) -> None:
        """Expose the in-process cache's size and evictions, which are read at each scrape."""
        self.gauge("memory_bytes", "Bytes in the in-process cache.", lambda: memory.used_bytes)
        self.gauge("memory_entries", "Entries in the in-process cache.", lambda: len(memory))
        self.registry.register(
            ReadCounter(f"{_PREFIX}_memory_evictions", "Entries evicted from memory.", lambda: memory.evicted_entries)
        )

    @contextmanager
    def timed(self, store: str, operation: str) -> Iterator[None]:
        """Count a call to a second level, and record the call's duration or failure."""
        self.store_operations.labels(store, operation).inc()
        started_s = time.perf_counter()
        try:
            yield
        except Exception:
            self.store_errors.labels(store, operation).inc()
            raise
        self.store_s.labels(store, operation).observe(time.perf_counter() - started_s)

    def set_breaker(self, state: BreakerState) -> None:
        """Expose the circuit breaker's state."""
        for each in BreakerState:
            self._breaker.labels(each).set(each is state)

    def gauge(self, name: str, what: str, read: Callable[[], float]) -> None:
        """Expose a value that is read at each scrape."""
        Gauge(f"{_PREFIX}_{name}", what, registry=self.registry).set_function(read)


class ReadCounter(Collector):
    """A Prometheus counter that reads its value at each scrape."""

    def __init__(self, name: str, what: str, read: Callable[[], float]) -> None:
        self._name, self._what, self._read = name, what, read

    @override
    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(self._name, self._what, value=self._read())


class Write(NamedTuple):
    """A vector to store under a key from `KeySpace.stored`. A vector with the tier REFERENCE never expires."""

    key: bytes
    blob: bytes
    tier: Tier
    dims: int
    kind: EntryKind = EntryKind.SENTENCE

    def packed(self, expires_unix_s: int) -> bytes:
        """Return the value to store. An expiry of 0 means that the value never expires."""
        return pack(self.key, self.blob, self.dims, expires_unix_s, kind=self.kind)


class SecondLevel(Protocol):
    """A store of checked values. It never changes a vector, never blocks a caller for long, and never raises errors."""

    @property
    def source(self) -> AnswerSource:
        """The source under which to count this store's answers."""

    @property
    def available(self) -> bool:
        """True if a write is likely to succeed now."""

    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        """Return a blob for each key; None if the value is missing, cannot be read in time, or fails its check."""

    async def write(self, writes: Sequence[Write]) -> int:
        """Store vectors in order; return the number of vectors stored before the first failure."""

    def degraded(self) -> str:
        """Return the reason why the store does not work properly; "" if it works."""

    async def close(self) -> None:
        """Release the store's resources."""


class WriteBehind:
    """A queue of writes to an optional second level. After a write, the entry in memory records the stored tier.

    The queue has at most `max_pending` entries, with an average size of at most 2 KiB. The queue drops an entry that
    does not fit. The next hit in memory queues the dropped entry again.
    """

    def __init__(
        self,
        store: SecondLevel | None,
        memory: SegmentedLru,
        telemetry: StorageTelemetry,
        *,
        max_pending: int,
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._max_pending = max_pending
        self._memory = memory
        self._pending: dict[bytes, Write] = {}
        self._pending_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, name: bytes, write: Write) -> None:
        """Queue a vector. If this name is already queued, keep the higher tier."""
        self.add_all(((name, write),))

    def add_all(self, writes: Sequence[tuple[bytes, Write]]) -> None:
        """Queue vectors by name, like `add`."""
        if self._store is None or not writes:
            return
        if not self._store.available:
            self._telemetry.unwritten.labels("unavailable").inc(len(writes))
            return
        pending, most_bytes = self._pending, self._max_pending * _PENDING_BYTES_EACH
        dropped = 0
        for name, write in writes:
            known = pending.get(name)
            if known is not None:
                if known.tier < write.tier:
                    pending[name] = write
                continue
            grown = self._pending_bytes + len(write.blob)
            if len(pending) >= self._max_pending or grown > most_bytes:
                dropped += 1
                continue
            pending[name] = write
            self._pending_bytes = grown
        if dropped:
            self._telemetry.unwritten.labels("queue_full").inc(dropped)
        if pending and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._drain(self._store))

    async def flush(self) -> None:
        """Wait until all queued vectors are written or dropped."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _drain(self, store: SecondLevel) -> None:
        while self._pending:
            names = self._next()
            writes = [self._pending[name] for name in names]
            try:
                kept = await store.write(writes)
            except Exception:  # noqa: BLE001 - a defect of a store must not stop later writes
                _log.exception("Writing %d vectors failed", len(writes))
                kept = 0
            for position, (name, write) in enumerate(zip(names, writes, strict=True)):
                if self._pending.get(name) is write:
                    del self._pending[name]
                    self._pending_bytes -= len(write.blob)
                if position < kept:
                    self._memory.mark_stored(name, write.tier)
            if kept < len(writes):
                self._telemetry.unwritten.labels("failed").inc(len(writes) - kept)

    def _next(self) -> list[bytes]:
        names, size = [], 0
        for name, write in self._pending.items():
            names.append(name)
            size += len(write.blob)
            if len(names) == _CHUNK or size > _CHUNK_BYTES:
                break
        return names
