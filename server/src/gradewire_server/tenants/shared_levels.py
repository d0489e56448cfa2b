"""The quota levels of all tenants, in a file that several processes on this machine share.

Each access locks the file (3 µs). If another process holds the lock for long, this process uses the level that it last
read, and writes its changes to the file when it gets the lock again. The clock must be the system's monotonic clock.
"""

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from gradewire_server.tenants.quota import Level

_LEVEL: Final = struct.Struct("=ddd")
_DIGEST_BYTES: Final = 16
_RECORD_BYTES: Final = _DIGEST_BYTES + _LEVEL.size
_PATIENCE_S: Final = 0.001
"""The maximum wait for the lock in seconds. After a timeout, the maximum is 0 until the lock has been acquired."""


@dataclass(slots=True)
class _Seen:
    """A tenant's level when this process last read the file, with this process's later changes.

    Attributes:
        offset: The level's position in the file, or None if not known yet.
        owed: The number of tokens taken without the lock.
        size: The new size if the size was changed without the lock, or None.
    """

    level: Level
    offset: int | None = None
    owed: float = 0.0
    size: float | None = None


class SharedLevels:
    """All tenants' levels in a file, for one event loop."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._seen: dict[str, _Seen] = {}
        self._patience_s = _PATIENCE_S

    @contextmanager
    def of(self, tenant: str, size: float, now_s: float) -> Iterator[Level]:
        """Yield a tenant's level, and write it to the file when the context exits. New tenants get a full bucket."""
        seen = self._seen.get(tenant)
        if seen is None:
            seen = self._seen[tenant] = _Seen(Level(size, size, now_s))
        if not self._lock():
            with _without_lock(seen, now_s) as level:
                yield level
            return
        try:
            if seen.offset is None:
                seen.offset = self._find(tenant, Level(size, size, now_s))
            level = Level(*_LEVEL.unpack(os.pread(self._file, _LEVEL.size, seen.offset)))
            level.fill(now_s)
            if seen.size is not None:
                level.resize(seen.size)
            level.left -= seen.owed
            yield level
            os.pwrite(self._file, _LEVEL.pack(level.size, level.left, level.seen_s), seen.offset)
            seen.level, seen.owed, seen.size = level, 0.0, None
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        """Acquire the lock, or return False after a timeout."""
        ends_s = time.monotonic() + self._patience_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= ends_s:
                    self._patience_s = 0.0
                    return False
                time.sleep(0)  # the process with the lock may be waiting for this CPU
            else:
                self._patience_s = _PATIENCE_S
                return True

    def _find(self, tenant: str, first: Level) -> int:
        """Return the position of the tenant's level in the file. For a new tenant, append `first`."""
        digest = blake2b(tenant.encode(), digest_size=_DIGEST_BYTES).digest()
        length = os.fstat(self._file).st_size
        records = os.pread(self._file, length, 0)
        for start in range(0, length, _RECORD_BYTES):
            if records[start : start + _DIGEST_BYTES] == digest:
                return start + _DIGEST_BYTES
        os.pwrite(self._file, digest + _LEVEL.pack(first.size, first.left, first.seen_s), length)
        return length + _DIGEST_BYTES


@contextmanager
def _without_lock(seen: _Seen, now_s: float) -> Iterator[Level]:
    """Yield the level that was last read, and record its changes in `seen`."""
    level = seen.level
    level.fill(now_s)
    before = replace(level)
    yield level
    grown = level.size - before.size
    seen.owed += before.left + grown - level.left
    if grown:
        seen.size = level.size
