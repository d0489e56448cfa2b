"""A lock on a directory for one process at a time, and the ID of this process.

The kernel releases the lock when the process ends. An ID in a file could already belong to another process.
"""

import fcntl
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FLOCK: Final = "hhqqi4x"
"""struct flock of 64-bit Linux: type, whence, start, length, process."""


@contextmanager
def held(state: Path) -> Iterator[bool]:
    """Lock `state` for the block; yield False if another process holds it."""
    with (state / "lock").open("a") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def holder(state: Path) -> int:
    """Return the ID of the process that holds `state`, or 0 if no other process does."""
    with (state / "lock").open("a") as lock:
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, question))
    return 0 if kind == fcntl.F_UNLCK else int(process)


def ask_to_end(state: Path, process: int) -> None:
    """Send SIGTERM to a process if it still holds `state`."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        # While the handle is open, no other process can get this ID.
        if holder(state) == process:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
    finally:
        os.close(handle)
