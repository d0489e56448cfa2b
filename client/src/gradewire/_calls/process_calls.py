"""Keeps an async client's calls: one set in each process that uses the client."""

from collections.abc import Callable

from gradewire._calls.client_calls import ClientCalls
from gradewire._fork_safety import forget_in_children, keep_for_good


class ProcessCalls:
    """Makes the calls at first use, and again in a forked child; closed ones stay closed there."""

    def __init__(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._make_calls = make_calls
        self._calls: ClientCalls | None = None
        forget_in_children(self)

    def here(self) -> ClientCalls:
        """The calls of this process."""
        if self._calls is None:
            self._calls = self._make_calls()
        return self._calls

    def forget(self) -> None:
        """Starts afresh in a forked child; what the parent's loop held is left alone."""
        keep_for_good(self._calls)
        if self._calls is not None and not self._calls.closed:
            self._calls = None
