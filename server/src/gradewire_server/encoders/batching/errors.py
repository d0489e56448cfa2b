"""How a text that was queued can end without a result."""

from gradewire_server.domain.result import Failure


class RunError(Exception):
    """A run failed, or will not come.

    Attributes:
        failure: What those who wait for its texts are told; without internals.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class QueueFullError(Exception):
    """The queue takes no more for now; nothing of what was submitted is in it."""


class DeadlinePassedError(Exception):
    """A run was not done when the last of those who waited for it at its start gave up."""
