"""Synthetic answers on disk, in an LMDB environment of their own; a commit waits for the disk."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import lmdb

from gradewire_server.domain.result import Failure, Status
from gradewire_server.engine.config import DiskConfig
from gradewire_server.engine.directory import StoreDirectory
from gradewire_server.engine.environment import open_environment
from gradewire_server.engine.prepared import TAKEN, differs

_log = logging.getLogger(__name__)
_FAILED = Failure(Status.UNAVAILABLE, "the store of synthetic answers failed; the server's log says why")
_FULL = Failure(Status.UNAVAILABLE, "the store of synthetic answers is full; raise its limit")


class DiskPrepared:
    """See `PreparedStore`.

    Args:
        directory: Closed with this store, which is closed after the vectors.
        config: See `DiskConfig`.

    Raises:
        OSError: As `open_environment`.
        lmdb.Error: As `open_environment`.
    """

    def __init__(self, directory: StoreDirectory, config: DiskConfig) -> None:
        self._directory = directory
        self._path = directory.path / "prepared"
        self._environment = open_environment(
            self._path, max_bytes=config.prepared_max_bytes, durable=True, alone=directory.alone
        )
        self._suspect = False
        # Not on the event loop: a durable commit waits for the disk.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prepared")

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        """See `PreparedStore`."""
        if not self._directory.ours:
            return _FAILED
        try:
            with self._environment.begin() as transaction:
                return [transaction.get(key) for key in keys]
        except lmdb.Error:
            _log.exception("synthetic answers in %s cannot be read", self._path)
            self._suspect = True
            return _FAILED

    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        """See `PreparedStore`."""
        if not self._directory.ours:
            return _FAILED
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._write, values)

    async def close(self) -> None:
        """See `PreparedStore`."""
        if not self._directory.ours:
            return
        await asyncio.to_thread(self._thread.shutdown)
        self._directory.close_environment(self._environment, suspect=self._suspect)
        self._directory.close()

    def _write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        try:
            # There is one writer at a time among all processes, so what was looked up stays so until the commit.
            with self._environment.begin(write=True) as transaction:
                there = {key: transaction.get(key) for key in values}
                if any(differs(key, there[key], value) for key, value in values.items()):
                    return TAKEN
                for key, value in values.items():
                    if there[key] != value:
                        transaction.put(key, value)
        except lmdb.MapFullError:
            return _FULL
        except (lmdb.Error, OSError):
            _log.exception("synthetic answers cannot be written to %s", self._path)
            return _FAILED
        return None
