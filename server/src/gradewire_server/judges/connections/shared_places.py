"""Places for requests in flight that several processes of one machine share."""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from typing_extensions import override

from gradewire_server.judges.connections.places import Places

LOOK_AGAIN_S: Final = 0.002
"""Seconds after which a process with less than its share looks again for a free place."""
_LOOK_SELDOM_S: Final = 0.02
_SWEEP_S: Final = 1.0
"""Seconds between searches for processes that have ended."""
_PATIENCE_S: Final = 0.05
"""Seconds to wait for the lock. A process that holds it for so long has been stopped by force."""
_SPARE: Final = 4
"""Number of entries for each process, because processes that leave and their successors overlap."""
_FLOCK: Final = struct.Struct("@hhqqi4x")
"""Linux's `struct flock` for 64 bits: type, whence, start, length, process."""


class SharedPlaces(Places):
    """Places in a file, for the processes of one server. Only for Linux.

    A process may use all places while no other one waits for its share. Otherwise, a process with more than its share
    leaves places to the others, one after each request.

    Each process has an entry with the number of its places and its wish, and alone writes to it. To take a place, a
    process locks the file (6 µs). The system frees the entry of a process that ends in any way.

    Create only one object for a file in each process, because closing a file frees all of the process's locks on it.

    Args:
        file: The file, which is created if necessary.
        processes: The number of processes.
    """

    def __init__(self, file: Path, count: int, processes: int) -> None:
        self._count = count
        self._share = count // processes
        self._entries = processes * _SPARE
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, 8 * self._entries)
        self._memory = mmap.mmap(self._file, 8 * self._entries)
        self._numbers = memoryview(self._memory).cast("i")
        self._used, self._wishes = self._numbers[: self._entries], self._numbers[self._entries :]
        try:
            self._mine = self._own_entry()
        except OSError:
            self._release()
            raise
        self._rests_until_s, self._patience_s = 0.0, _PATIENCE_S
        self._swept_s = time.monotonic()

    @override
    def take(self) -> bool:
        if not self._may_take():
            return False
        with self._lock():
            if not self._may_take():
                return False
            self._used[self._mine] += 1
            return True

    @override
    def leave(self) -> None:
        self._used[self._mine] -= 1
        if not self._share and self._others_wish():
            # With fewer places than processes, let another process look first.
            self._rests_until_s = time.monotonic() + LOOK_AGAIN_S

    @override
    def wish(self, *, more: bool) -> float | None:
        below = self._used[self._mine] < max(1, self._share)
        self._wishes[self._mine] = more and below
        if not more:
            return None
        if time.monotonic() - self._swept_s > _SWEEP_S:
            self._sweep()
        return LOOK_AGAIN_S if below else _LOOK_SELDOM_S

    @override
    def close(self) -> None:
        if self._file < 0:
            return
        self._used[self._mine] = self._wishes[self._mine] = 0
        self._release()

    def _release(self) -> None:
        for view in (self._used, self._wishes, self._numbers):
            view.release()
        self._memory.close()
        os.close(self._file)
        self._file = -1

    def _may_take(self) -> bool:
        if sum(self._used) >= self._count:
            return False
        if self._used[self._mine] >= max(1, self._share):
            return not self._others_wish()
        return bool(self._share) or time.monotonic() >= self._rests_until_s

    def _others_wish(self) -> bool:
        return sum(self._wishes) > self._wishes[self._mine]

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the file. After a timeout, go on without the lock, and later ones do not wait for it."""
        ends_s = time.monotonic() + self._patience_s
        while not (locked := self._locked()) and time.monotonic() < ends_s:
            time.sleep(0)  # the process with the lock may be waiting for this CPU
        self._patience_s = _PATIENCE_S if locked else 0.0
        try:
            yield
        finally:
            if locked:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _own_entry(self) -> int:
        """Take an entry that no running process has, and return its index.

        Raises:
            OSError: Every entry belongs to a running process.
        """
        for entry in range(self._entries):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, entry)
            except BlockingIOError:
                continue
            self._used[entry] = self._wishes[entry] = 0
            return entry
        raise OSError("more processes share the judge's places than the settings allow")

    def _sweep(self) -> None:
        """Free the places of processes that have ended."""
        self._swept_s = time.monotonic()
        for entry in range(self._entries):
            if entry != self._mine and (self._used[entry] or self._wishes[entry]) and not self._is_owned(entry):
                self._used[entry] = self._wishes[entry] = 0

    def _is_owned(self, entry: int) -> bool:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, entry, 1, 0)
        return bool(_FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK)
