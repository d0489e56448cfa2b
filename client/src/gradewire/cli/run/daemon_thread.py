"""Runs what may block for ever outside the event loop."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(read: Callable[[], T]) -> T:
    """Result of `read`, which runs in a thread that does not keep the program alive.

    Standard input may be silent for hours, and Ctrl-C must not wait for it.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(deliver: Callable[[], None]) -> None:
        if not outcome.done():
            deliver()

    def work() -> None:
        try:
            value = read()
        except Exception as error:  # noqa: BLE001 - handed to those who wait
            deliver = functools.partial(outcome.set_exception, error)
        else:
            deliver = functools.partial(outcome.set_result, value)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, deliver)

    threading.Thread(target=work, name="gradewire-reader", daemon=True).start()
    return await outcome
