"""The in-process cache keeps what it should, within its bytes."""

import asyncio
import tracemalloc
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from prometheus_client import CollectorRegistry
from tests.support.examples import example_count

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.storage.cache import ENTRY_OVERHEAD_BYTES, SegmentedLru, StorageTelemetry, Write, WriteBehind
from gradewire_server.storage.codec import EntryKind

_KEYS = st.integers(0, 12).map(lambda i: bytes([i]) * 16)
_MAX_BYTES = 2000


def size(key: bytes, value: bytes) -> int:
    return key.__sizeof__() + value.__sizeof__() + ENTRY_OVERHEAD_BYTES


class AgainstModel(RuleBasedStateMachine):
    """The cache against two plain lists of (key, value), oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.lru = SegmentedLru(_MAX_BYTES, protected_share=0.5)
        self.probation: list[tuple[bytes, bytes]] = []
        self.protected: list[tuple[bytes, bytes]] = []

    def find(self, key: bytes) -> bytes | None:
        return dict(self.probation + self.protected).get(key)

    def forget(self, key: bytes) -> None:
        self.probation = [pair for pair in self.probation if pair[0] != key]
        self.protected = [pair for pair in self.protected if pair[0] != key]

    def settle(self) -> None:
        while sum(size(*pair) for pair in self.protected) > _MAX_BYTES * 0.5:
            self.probation.append(self.protected.pop(0))
        while sum(size(*pair) for pair in self.probation + self.protected) > _MAX_BYTES:
            (self.probation or self.protected).pop(0)

    @rule(key=_KEYS, value=st.binary(max_size=900), pinned=st.booleans())
    def put(self, *, key: bytes, value: bytes, pinned: bool) -> None:
        self.lru.put(key, value, pinned=pinned)
        protected = pinned or key in dict(self.protected)
        self.forget(key)
        (self.protected if protected else self.probation).append((key, value))
        self.settle()

    @rule(key=_KEYS, value=st.binary(max_size=900), pinned=st.booleans())
    def put_new(self, *, key: bytes, value: bytes, pinned: bool) -> None:
        known = self.find(key)
        assert self.lru.put_new(key, value, pinned=pinned) == (value if known is None else known)
        self.forget(key)
        protected = pinned or known is not None
        (self.protected if protected else self.probation).append((key, value if known is None else known))
        self.settle()

    @rule(key=_KEYS)
    def get(self, key: bytes) -> None:
        expected = self.find(key)
        assert self.lru.get(key) == expected
        if expected is not None:
            self.forget(key)
            self.protected.append((key, expected))
            self.settle()

    @rule(key=_KEYS)
    def peek(self, key: bytes) -> None:
        assert self.lru.peek(key) == self.find(key)

    @rule(key=_KEYS)
    def refresh(self, key: bytes) -> None:
        old = self.find(key)
        if old:
            new = bytes([old[0] ^ 1]) + old[1:]
            self.lru.refresh(key, new)
            self.probation = [(k, new if k == key else v) for k, v in self.probation]
            self.protected = [(k, new if k == key else v) for k, v in self.protected]

    @rule(key=_KEYS)
    def discard(self, key: bytes) -> None:
        self.lru.discard(key)
        self.forget(key)

    @invariant()
    def same(self) -> None:
        kept = self.probation + self.protected
        assert len(self.lru) == len(kept)
        assert all(self.lru.peek(key) == value for key, value in kept)
        assert self.lru.used_bytes == sum(size(*pair) for pair in kept) <= _MAX_BYTES
        assert self.lru._protected_bytes == sum(size(*pair) for pair in self.protected)


TestAgainstModel = AgainstModel.TestCase
TestAgainstModel.settings = settings(max_examples=example_count(60), stateful_step_count=40, deadline=None)


def name(number: int) -> bytes:
    return number.to_bytes(16, "little")


def test_a_scan_never_pushes_out_what_is_pinned() -> None:
    lru = SegmentedLru(1 << 20)
    for number in range(500):
        lru.put(name(number), bytes(770), pinned=True)
    for number in range(1000, 21_000):
        lru.put(name(number), bytes(770), pinned=False)
    assert all(name(number) in lru for number in range(500))
    assert lru.evicted_entries > 19_000


def test_a_second_hit_protects() -> None:
    lru = SegmentedLru(1 << 20)
    lru.put(name(0), bytes(770), pinned=False)
    assert lru.get(name(0)) is not None
    for number in range(1, 20_000):
        lru.put(name(number), bytes(770), pinned=False)
    assert name(0) in lru


def test_pinned_entries_alone_still_leave_room_for_new_ones() -> None:
    lru = SegmentedLru(1 << 20)
    for number in range(5000):
        lru.put(name(number), bytes(770), pinned=True)
    lru.put(name(9999), bytes(770), pinned=False)
    assert name(9999) in lru
    assert name(4999) in lru


def test_a_value_larger_than_the_cache_is_refused_and_the_old_one_forgotten() -> None:
    lru = SegmentedLru(4096)
    lru.put(name(1), b"old", pinned=True)
    lru.put(name(1), bytes(5000), pinned=True)
    assert name(1) not in lru
    assert lru.used_bytes == 0


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("value_bytes", [2, 770, 4000])
@pytest.mark.usefixtures("traced")
def test_the_bound_is_honest(value_bytes: int) -> None:
    max_bytes = 4 << 20
    before, _ = tracemalloc.get_traced_memory()
    lru = SegmentedLru(max_bytes)
    tracemalloc.reset_peak()
    for number in range(25_000 if value_bytes < 1000 else 5_000):
        lru.put(name(number), bytes(value_bytes), pinned=number % 3 == 0)
        if number % 7 == 0:
            lru.get(name(number // 2))
    after, peak = tracemalloc.get_traced_memory()
    assert lru.used_bytes > 0.9 * max_bytes
    assert after - before <= max_bytes
    assert peak - before <= 1.02 * max_bytes  # a table that grows exists twice for a moment


class Store:
    """Keeps what it is given, once it may."""

    source = AnswerSource.DISK
    available = True

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.chunks: list[list[Write]] = []

    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        del dims, kind
        return [None] * len(keys)

    async def write(self, writes: Sequence[Write]) -> int:
        await self.gate.wait()
        self.chunks.append(list(writes))
        return len(writes)

    def degraded(self) -> str:
        return ""

    async def close(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize(("size", "fitting"), [(100, 10), (5 * 2048, 2), (10 * 2048 + 1, 0)])
async def test_entries_and_bytes_are_bounded(
    size: int, fitting: int, telemetry: StorageTelemetry, registry: CollectorRegistry
) -> None:
    store, memory = Store(), SegmentedLru(1 << 20)
    writer = WriteBehind(store, memory, telemetry, max_pending=10)
    names = [b"%d" % number for number in range(12)]
    for name in names:
        memory.put(name, bytes(size), pinned=True)
        writer.add(name, Write(name, bytes(size), Tier.REFERENCE, 1))
    dropped = registry.get_sample_value("gradewire_engine_unwritten_values_total", {"reason": "queue_full"})
    assert dropped == 12 - fitting
    store.gate.set()
    await writer.flush()
    assert [name for name in names if memory.get(name) == bytes(size - 1) + bytes((Tier.REFERENCE,))] == names[:fitting]
    if fitting:
        memory.put(b"later", bytes(size), pinned=True)
        writer.add(b"later", Write(b"later", bytes(size), Tier.REFERENCE, 1))
        await writer.flush()
        assert memory.get(b"later") != bytes(size), "what was written made room"


async def test_large_entries_are_written_in_small_chunks(telemetry: StorageTelemetry) -> None:
    store = Store()
    writer = WriteBehind(store, SegmentedLru(1 << 20), telemetry, max_pending=65_536)
    for number in range(20):
        writer.add(b"%d" % number, Write(b"%d" % number, bytes(1 << 20), Tier.REFERENCE, 1, EntryKind.TOKENS))
    store.gate.set()
    await writer.flush()
    assert sum(map(len, store.chunks)) == 20
    assert max(map(len, store.chunks)) <= 5
