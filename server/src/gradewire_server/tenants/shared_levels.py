"""What tenants have drawn of their quotas, in a file that several processes of this machine share.

A record for each tenant: the digest of its name, and its level. A lock of the file is held for each look (3 µs); the
system gives it back where a process dies. The clock is the system's monotonic one, which is the same in all processes.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

from gradewire_server.tenants.quota import Level

_LEVEL: Final = struct.Struct("=ddd")
_DIGEST_BYTES: Final = 16
_RECORD_BYTES: Final = _DIGEST_BYTES + _LEVEL.size


class SharedLevels:
    """The levels of all tenants. Belongs to one event loop.

    Args:
        path: The file; made if it is not there.

    Raises:
        OSError: It cannot be made or opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._offsets: dict[str, int] = {}

    @contextmanager
    def of(self, tenant: str, size: float, now_s: float) -> Iterator[Level]:
        """The level of a tenant, which is written back; a full one of `size` where it has none yet."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            offset = self._offsets.get(tenant)
            if offset is None:
                offset = self._offsets[tenant] = self._find(tenant, Level(size, size, now_s))
            level = Level(*_LEVEL.unpack(os.pread(self._file, _LEVEL.size, offset)))
            yield level
            os.pwrite(self._file, _LEVEL.pack(level.size, level.left, level.seen_s), offset)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _find(self, tenant: str, first: Level) -> int:
        """Where the level of a tenant stands, which is added where there is none."""
        digest = blake2b(tenant.encode(), digest_size=_DIGEST_BYTES).digest()
        length = os.fstat(self._file).st_size
        records = os.pread(self._file, length, 0)
        for start in range(0, length, _RECORD_BYTES):
            if records[start : start + _DIGEST_BYTES] == digest:
                return start + _DIGEST_BYTES
        os.pwrite(self._file, digest + _LEVEL.pack(first.size, first.left, first.seen_s), length)
        return length + _DIGEST_BYTES
