"""Requests to stop serving."""

import asyncio


class Stop:
    """Requests to stop: the first asks for an orderly end, the second for an end at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()

    def request(self) -> None:
        """Asks to stop; a second time: at once."""
        (self.urgent if self.requested.is_set() else self.requested).set()
