"""Keeps grpc.aio's thread from waiting for an event loop that has much to do.

The thread that takes events from gRPC's core writes a byte into a pair of sockets for each of them, and the event loop
reads one byte a round, however many events it takes in. Where there are more events than rounds the bytes pile up.
After 278 of them, on Linux, the thread waits in its write until the loop has gone round 209 times, and nothing reaches
the loop meanwhile: for a second and more where a round takes 5 ms, again and again. So here bytes that have piled up
are read at once.

All loops of a process share the pair (https://github.com/grpc/grpc/issues/25364): a byte wakes each of them, and only
the one that reads it takes in its events. Hence a few bytes always stay. Were all read here, another loop could read
the last one first, find nothing to do, and the events of the bytes that came after it would wait for the next byte.

grpc.aio has no option for this. The reader that it has added to its loop is found by its name; with a version that has
another one, or a loop that has no selector, everything stays as it is.
"""

import asyncio
import os
import sys
import threading
from array import array
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

_READER: Final = "PollerCompletionQueue._handle_events"
_LEFT_BYTES: Final = 16  # of 278 that fit; more than one for each loop that may read between a count and its read
_counting: Final = threading.Lock()  # loops that counted the same bytes would together read the ones that must stay


def drain_wakeups(loop: asyncio.AbstractEventLoop) -> bool:
    """Has bytes that pile up read at once, on a loop to which grpc.aio has added its reader; may be called repeatedly.

    Args:
        loop: On which channels or servers of grpc.aio have been made.

    Returns:
        Whether the reader was found by this call.
    """
    selector: Any = getattr(loop, "_selector", None)
    if selector is None or sys.platform == "win32":
        return False
    for key in list(selector.get_map().values()):
        reader = key.data[0] if isinstance(key.data, tuple) else None
        take_events: Any = getattr(reader, "_callback", None)
        method = take_events.func if isinstance(take_events, partial) else take_events
        if getattr(method, "__qualname__", "") == _READER:
            loop.add_reader(key.fd, partial(_take_most, key.fd, take_events))
            return True
    return False


def _take_most(descriptor: int, take_events: Callable[[], None]) -> None:
    """Reads all bytes but a few, and leaves one of these to `take_events`."""
    import fcntl  # noqa: PLC0415 - not on Windows, where nothing comes here
    import termios  # noqa: PLC0415

    unread = array("i", [0])
    with suppress(BlockingIOError):  # another loop was woken by the same byte, and has taken its events
        with _counting:
            fcntl.ioctl(descriptor, termios.FIONREAD, unread)
            if unread[0] > _LEFT_BYTES:
                os.read(descriptor, unread[0] - _LEFT_BYTES)
        take_events()
