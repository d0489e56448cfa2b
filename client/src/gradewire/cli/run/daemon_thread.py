"""Runs what may block for ever outside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(read: Callable[[], T]) -> T:
    """Result of `read`, which runs in a thread that does not keep the program alive.

    Standard input may be silent for hours, and Ctrl-C must not wait for it.
    """
    outcome: Future[T] = Future()
    # From here on it cannot be cancelled: who gives up waiting leaves the thread behind, with its result.
    outcome.set_running_or_notify_cancel()

    def work() -> None:
        try:
            value = read()
        except Exception as error:  # noqa: BLE001 - handed to those who wait
            outcome.set_exception(error)
        else:
            outcome.set_result(value)

    threading.Thread(target=work, name="gradewire-reader", daemon=True).start()
    return await asyncio.wrap_future(outcome)
