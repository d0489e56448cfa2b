"""Ctrl-C: once to finish what is in work, twice to end at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.cli.bulk.parts import PartStore


@contextlib.contextmanager
def finishing_on_interrupt(store: PartStore) -> Iterator[threading.Event]:
    """While it is open, a first SIGINT or SIGTERM asks the workers to begin no further part; a second one interrupts.

    Yields:
        Set once that was asked.
    """
    asked = threading.Event()

    def ask(*_: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        click.echo("finishing the parts in work; once more ends at once", err=True)
        store.ask_to_stop()

    # Only a main thread takes signals; a test may call the command from another.
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
