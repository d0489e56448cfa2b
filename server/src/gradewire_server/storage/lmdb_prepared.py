"""Prepared references on this machine's disk: synthetic answers and corpora, committed durably."""

import asyncio
import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import lmdb
from typing_extensions import override

from gradewire_server.domain.items import Failure, Status
from gradewire_server.settings.engine import DiskConfig
from gradewire_server.storage.lmdb_environment import StoreDirectory, TruncatedError, WatchedEnvironment
from gradewire_server.storage.reference_sets import ALREADY_HELD, PreparedStore, differs

_log = logging.getLogger(__name__)
T = TypeVar("T")

_FAILED: Final = Failure(Status.UNAVAILABLE, "the store of prepared references failed; the server's log says why")
_FULL: Final = Failure(Status.UNAVAILABLE, "the store of prepared references is full; raise disk_max_bytes")
_LOST: Final = Failure(
    Status.UNAVAILABLE, "the store has lost prepared references of this set; prepare the set again under a new name"
)
_CHECKED_EVERY: Final = 256
"""Number of members to read between two checks of the file's size."""
_COUNT: Final = struct.Struct("<Q")
"""Format of a group's member count, which is stored under the group's name."""


class DiskPrepared(PreparedStore):
    """Synthetic answers and corpora in an LMDB environment; see `PreparedStore`.

    Close the store of vectors first, because closing this store also closes the shared directory. Opening this store
    raises the same errors as `open_environment`.
    """

    def __init__(self, directory: StoreDirectory, config: DiskConfig) -> None:
        self._directory = directory
        self._path = directory.path / "prepared"
        most = config.prepared_max_bytes or config.max_bytes // 2
        self._environment = WatchedEnvironment(directory, self._path, max_bytes=most, durable=True)
        self._suspect = False
        # A durable commit waits for the disk, so it runs outside the event loop.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prepared")

    @override
    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        if not self._directory.ours:
            return _FAILED
        try:
            with self._environment.reading() as transaction:
                return [transaction.get(key) for key in keys]
        except TruncatedError:
            return await self._on_thread(self._rebuild_and_read, keys)
        except (lmdb.Error, OSError):
            return self._unreadable()

    @override
    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        return await self._on_thread(self._write, values)

    @override
    async def member_count(self, group: bytes) -> int | Failure:
        found = await self.read([group])
        return found if isinstance(found, Failure) else _unpacked_count(found[0])

    @override
    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        return await self._on_thread(self._members, group)

    @override
    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        return await self._on_thread(self._add_members, group, values)

    @override
    async def close(self) -> None:
        if not self._directory.ours:
            return
        await asyncio.to_thread(self._thread.shutdown)
        self._environment.close(suspect=self._suspect)
        self._directory.close()

    async def _on_thread(self, work: Callable[..., T], *given: Any) -> T | Failure:
        """Run `work` on the writer's thread and return the result. In a forked child, return a failure."""
        if not self._directory.ours:
            return _FAILED
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def _unreadable(self) -> Failure:
        _log.exception("Cannot read prepared references from %s", self._path)
        self._suspect = True
        return _FAILED

    def _write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        def put(transaction: Any) -> Failure | None:
            # Only one process writes at a time, so values read here stay valid until the commit.
            there = {key: transaction.get(key) for key in values}
            if any(differs(key, there[key], value) for key, value in values.items()):
                return ALREADY_HELD
            for key, value in values.items():
                if there[key] != value:
                    transaction.put(key, value)
            return None

        return self._commit(put)

    def _add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        def put(transaction: Any) -> Failure | None:
            count = _unpacked_count(transaction.get(group))
            if isinstance(count, Failure):
                return count
            new = 0
            for name, value in values.items():
                there = transaction.get(group + name)
                if there != value:
                    transaction.put(group + name, value)
                    new += there is None
            if new:
                transaction.put(group, _COUNT.pack(count + new))
            return None

        return self._commit(put)

    def _rebuild_and_read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        """Create an empty store, because the file with prepared references is lost. Items become NOT_PREPARED."""
        try:
            self._environment.rebuild()
            with self._environment.on_writer(write=False) as transaction:
                return [transaction.get(key) for key in keys]
        except (lmdb.Error, OSError):
            _log.exception("Cannot create the store of prepared references in %s again", self._path)
            self._suspect = True
            return _FAILED

    def _commit(self, put: Callable[[Any], Failure | None]) -> Failure | None:
        def commit() -> Failure | None:
            with self._environment.on_writer(write=True) as transaction:
                return put(transaction)

        try:
            try:
                return commit()
            except TruncatedError:
                self._environment.rebuild()
                return commit()
        except lmdb.MapFullError:
            return _FULL
        except (lmdb.Error, OSError):
            _log.exception("Cannot write prepared references to %s", self._path)
            return _FAILED

    def _members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        found: dict[bytes, bytes] = {}
        try:
            with self._environment.on_writer(write=False) as transaction, transaction.cursor() as cursor:
                count = _unpacked_count(transaction.get(group))
                if cursor.set_range(group + b"\0"):
                    for key, value in cursor:
                        if not key.startswith(group):
                            break
                        found[key[len(group) :]] = value
                        if len(found) % _CHECKED_EVERY == 0:
                            self._environment.check()
        except TruncatedError:
            rebuilt = self._rebuild_and_read([])
            return rebuilt if isinstance(rebuilt, Failure) else {}
        except (lmdb.Error, OSError):
            return self._unreadable()
        return found if len(found) == count else _LOST


def _unpacked_count(value: bytes | None) -> int | Failure:
    if value is None:
        return 0
    return int(_COUNT.unpack(value)[0]) if len(value) == _COUNT.size else _LOST
