"""One at a time in a directory, and who that is: a lock of the kernel, which ends with its process.

The kernel is asked for the process, too: a number in a file may be anybody's by the time somebody reads it.
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
    """Whether `state` is ours alone in the block."""
    with (state / "lock").open("a") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def holder(state: Path) -> int:
    """Number of the process that holds `state`, 0 for none, as the kernel knows it; never this process's own."""
    with (state / "lock").open("a") as lock:
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, question))
    return 0 if kind == fcntl.F_UNLCK else int(process)


def ask_to_end(state: Path, process: int) -> None:
    """Sends SIGTERM to a process, if it holds `state` still."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        # Once the handle is open, its number can go to nobody else.
        if holder(state) == process:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
    finally:
        os.close(handle)
