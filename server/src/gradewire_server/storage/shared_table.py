"""A bounded table of values in memory that the server processes of one machine share.

The table needs no locks. Each process writes entries to its own ring, which overwrites the oldest entries, and enters
their places in an index that all processes write. A reader trusts nothing: it takes a value only if name and check
match, so a value that is torn, overwritten or damaged is a miss. The memory has no name in any file system, cannot
shrink, survives the loss of a server process, and ends with the last process that has it open.
"""

import errno
import fcntl
import mmap
import os
import re
import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

from typing_extensions import override

from gradewire_server.domain.ports import SharedValue, SharedValues

_NAMED: Final = "gradewire-shared-1"
"""The memory's name, with the layout's version. A process with another layout does not use the table."""
_PAGE_BYTES: Final = 4096
_WORD: Final = struct.Struct("<Q")
_WORDS: Final = struct.Struct("<QQ")
_BUCKET: Final = struct.Struct("<8Q")  # four slots: the name's second half, and the entry's place
_SLOTS: Final = 4
_NAME: Final = struct.Struct("<QQ")
_ENTRY: Final = struct.Struct("<16sI?3x8s")  # name, length of the value, pinned, check
_INDEX_SHARE: Final = 1 / 16
"""The index's share of the table. An entry of 256 bytes needs a slot of 16."""
_CLAIMS_SHARE: Final = 1 / 64
"""The claims' share of the table, until there are `_MOST_CLAIMS`, some times as many as texts in work."""
_MOST_CLAIMS: Final = 1 << 16
_RING_SHIFT: Final = 56
"""A place is a ring's number above this bit, and below it the number of bytes written to the ring before the entry."""
_LARGEST_SHARE: Final = 8
"""An entry may take one of so many parts of a ring."""
_OLD_SHARE: Final = 3 / 4
"""An entry with this share of its ring written after it is written again when it is found."""
_NAME_OF_MEMORY: Final = re.compile(rf":{_NAMED}-(\d+)\b")
MAX_WRITERS: Final = 255
MIN_BYTES: Final = 1 << 20
_STRICT_OVERCOMMIT: Final = "2"


def create_table(max_bytes: int, writers: int) -> int:
    """Create a table for this many processes, and return its file descriptor, which children may inherit.

    Raises:
        OSError: The system refuses the memory, or the processes are more than `MAX_WRITERS`.
    """
    if writers > MAX_WRITERS:
        raise OSError(errno.EINVAL, f"at most {MAX_WRITERS} processes can share memory")
    size_bytes = max(max_bytes, MIN_BYTES) // _PAGE_BYTES * _PAGE_BYTES
    descriptor = os.memfd_create(f"{_NAMED}-{writers}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size_bytes)
        if Path("/proc/sys/vm/overcommit_memory").read_text().strip() == _STRICT_OVERCOMMIT:
            os.posix_fallocate(descriptor, 0, size_bytes)  # otherwise, a lack of memory would kill the writing process
        # A process that reads a mapped file after somebody cut it gets SIGBUS.
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class _Layout(NamedTuple):
    claims: int
    claim_count: int
    slots: int
    buckets: int
    rings: int
    ring_bytes: int


def _layout(size_bytes: int, writers: int) -> _Layout:
    """Return where the table's parts begin, after a word for each ring: the bytes that were ever written to it."""
    claims = -(-writers * _WORD.size // _PAGE_BYTES) * _PAGE_BYTES
    claim_count = min(_MOST_CLAIMS, int(size_bytes * _CLAIMS_SHARE) // _WORDS.size)
    index = claims + claim_count * _WORDS.size
    buckets = int(size_bytes * _INDEX_SHARE) // _BUCKET.size
    rings = index + buckets * _BUCKET.size
    return _Layout(claims, claim_count, index, buckets, rings, (size_bytes - rings) // writers // 8 * 8)


class SharedTable(SharedValues):
    """One process's access to the table behind `descriptor`, which stays open. For one thread only.

    A value's last byte is not checked and may change (`mark`). Names have 16 random bytes, such as a hash.

    Args:
        descriptor: The file descriptor from `create_table`.
        writer: This process's number. Two processes with the same number damage each other's entries.

    Attributes:
        found: The number of values found.
        refused: The number of entries that failed their check.
        joined: The number of claims of other processes that were found.

    Raises:
        OSError: The memory cannot be mapped.
        ValueError: The memory is not a table of this version with this writer.
    """

    def __init__(self, descriptor: int, writer: int) -> None:
        size_bytes = os.fstat(descriptor).st_size
        self._memory = mmap.mmap(descriptor, size_bytes)
        # Damage may change the memory, but never its name.
        found = _NAME_OF_MEMORY.search(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        writers = int(found[1]) if found else 0
        if not 0 <= writer < writers:
            raise ValueError("not a table of this version")
        self._layout = _layout(size_bytes, writers)
        self._ring_bytes = self._layout.ring_bytes
        self._writers = writers
        self._writer = writer
        self._written = self._head(writer) % (1 << _RING_SHIFT)
        self._pid = os.getpid()
        self.found = self.refused = self.joined = 0

    @classmethod
    def create(cls, max_bytes: int) -> Self:
        """Return a new table for only this process."""
        descriptor = create_table(max_bytes, 1)
        try:
            return cls(descriptor, 0)
        finally:
            os.close(descriptor)

    @property
    def used_bytes(self) -> int:
        """The size of this process's ring, as far as it was ever written."""
        return min(self._written, self._ring_bytes)

    @override
    def get(self, name: bytes) -> SharedValue | None:
        """Return the value of `name`, or None if the table does not have it intact."""
        place = self._place(name)
        if place is None:
            return None
        start, written = self._position(place)
        stored, size, pinned, check = _ENTRY.unpack_from(self._memory, start)
        if stored != name:
            return None  # overwritten
        end = start + _ENTRY.size + size
        if not size or end > self._ring_start(place >> _RING_SHIFT) + self._ring_bytes:
            self.refused += 1
            return None
        value = self._memory[start + _ENTRY.size : end]
        if check != _check(name, value, pinned=pinned):
            self.refused += 1
            return None
        self.found += 1
        if self._head(place >> _RING_SHIFT) - written > self._ring_bytes * _OLD_SHARE:
            self.put(name, value, pinned=pinned)
        return SharedValue(value, pinned)

    @override
    def put(self, name: bytes, value: bytes, *, pinned: bool) -> None:
        """Store a value of at least one byte. Ignore a value that would take a large part of this process's ring."""
        size = -(-(_ENTRY.size + len(value)) // 8) * 8
        if size > self._ring_bytes // _LARGEST_SHARE:
            return
        head = self._written
        if head % self._ring_bytes + size > self._ring_bytes:
            head += self._ring_bytes - head % self._ring_bytes  # an entry is never divided
        start = self._ring_start(self._writer) + head % self._ring_bytes
        entry = _ENTRY.pack(name, len(value), pinned, _check(name, value, pinned=pinned)) + value
        self._memory[start : start + len(entry)] = entry
        self._written = (head + size) % (1 << _RING_SHIFT)
        _WORD.pack_into(self._memory, self._writer * _WORD.size, self._written)
        self._enter(name, self._writer << _RING_SHIFT | head)

    def mark(self, name: bytes, last: int) -> None:
        """Replace the last byte of a stored value, if the value is still there."""
        place = self._place(name)
        if place is None:
            return
        start, _ = self._position(place)
        stored, size, _, _ = _ENTRY.unpack_from(self._memory, start)
        end = start + _ENTRY.size + size
        if stored == name and size and end <= self._ring_start(place >> _RING_SHIFT) + self._ring_bytes:
            self._memory[end - 1] = last

    def claim(self, name: bytes) -> bool:
        """Claim the work for a name. Return False if another running process has claimed it and still works on it.

        Two processes that claim a name within microseconds may both get it.
        """
        at, tag = self._claim(name)
        held, pid = _WORDS.unpack_from(self._memory, at)
        if pid and pid != self._pid and is_running(pid):
            if held == tag:
                self.joined += 1
                return False
            return True  # the place is taken by other work, so this work has no claim
        _WORDS.pack_into(self._memory, at, tag, self._pid)
        return True

    def release(self, name: bytes) -> None:
        """Give up this process's claim, after the value was stored or will not be stored."""
        at, tag = self._claim(name)
        if _WORDS.unpack_from(self._memory, at) == (tag, self._pid):
            _WORDS.pack_into(self._memory, at, 0, 0)

    def claimed_elsewhere(self, name: bytes, running: Callable[[int], bool]) -> bool:
        """Return True if a process for which `running` is True still works on a name."""
        at, tag = self._claim(name)
        held, pid = _WORDS.unpack_from(self._memory, at)
        return held == tag and pid not in {0, self._pid} and running(pid)

    def _place(self, name: bytes) -> int | None:
        low, tag = _NAME.unpack(name)
        slots = _BUCKET.unpack_from(self._memory, self._bucket(low))
        for slot in range(0, 2 * _SLOTS, 2):
            if slots[slot] == tag:
                place: int = slots[slot + 1]
                return place if place >> _RING_SHIFT < self._writers else None
        return None

    def _position(self, place: int) -> tuple[int, int]:
        """Return an entry's position in the memory, and the bytes that were written to its ring before it."""
        written = place & ((1 << _RING_SHIFT) - 1)
        # A damaged place may lead to the end of a ring, where no entry's head fits.
        within = min(written % self._ring_bytes, self._ring_bytes - _ENTRY.size)
        return self._ring_start(place >> _RING_SHIFT) + within, written

    def _enter(self, name: bytes, place: int) -> None:
        low, tag = _NAME.unpack(name)
        at = self._bucket(low)
        slots = _BUCKET.unpack_from(self._memory, at)
        chosen, most = 0, -1
        for slot in range(_SLOTS):
            held, there = slots[2 * slot], slots[2 * slot + 1]
            if held in {0, tag}:
                chosen = slot
                break
            ring = there >> _RING_SHIFT
            age = self._head(ring) - (there & ((1 << _RING_SHIFT) - 1)) if ring < self._writers else self._ring_bytes
            if age > most:
                chosen, most = slot, age
        _WORDS.pack_into(self._memory, at + chosen * _WORDS.size, tag, place)

    def _bucket(self, low: int) -> int:
        return self._layout.slots + low % self._layout.buckets * _BUCKET.size

    def _claim(self, name: bytes) -> tuple[int, int]:
        low, tag = _NAME.unpack(name)
        return self._layout.claims + low % self._layout.claim_count * _WORDS.size, tag

    def _head(self, ring: int) -> int:
        head: int = _WORD.unpack_from(self._memory, ring * _WORD.size)[0]
        return head

    def _ring_start(self, ring: int) -> int:
        return self._layout.rings + ring * self._ring_bytes


def is_running(pid: int) -> bool:
    """Return True if this user's process `pid` runs."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True


def _check(name: bytes, value: bytes, *, pinned: bool) -> bytes:
    state = blake2b(name, digest_size=8)
    state.update(b"\1" if pinned else b"\0")
    state.update(memoryview(value)[:-1])
    return state.digest()
