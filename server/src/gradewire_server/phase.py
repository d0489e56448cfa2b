"""The phase of a process (loading, serving, stopping), and requests to stop it."""

import asyncio
from enum import StrEnum


class Phase(StrEnum):
    """Loading, serving, draining (calls are still taken), stopping (calls in flight may finish)."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"


class Stop:
    """Requests to stop: the first asks for an orderly end, the second for an end at once.

    Attributes:
        others_serve: Whether other processes of the server go on, so that this one may send its callers to them.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()
        self.others_serve = False

    def request(self) -> None:
        """Asks to stop; a second time: at once."""
        (self.urgent if self.requested.is_set() else self.requested).set()

    def leave(self) -> None:
        """Asks one process to stop while others go on; does nothing where it stops already."""
        self.others_serve = self.others_serve or not self.requested.is_set()
        self.requested.set()
