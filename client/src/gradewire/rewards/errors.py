"""What a reward can fail with."""

from collections.abc import Mapping

from gradewire.errors import GradewireError
from gradewire.results import Status


class RewardError(GradewireError):
    """No reward can be given, and the policy for failures says not to go on.

    Attributes:
        counts: Number of rewards by status: of the call, or of the window that the failure rate is taken over.
    """

    def __init__(self, message: str, counts: Mapping[Status, int]) -> None:
        # Both, so that it survives being pickled by a framework on its way from a worker.
        super().__init__(message, dict(counts))
        self.counts = dict(counts)

    def __str__(self) -> str:
        return str(self.args[0])


class RewardFailed(RewardError):  # noqa: N818 - reads as what happened, like the client's errors
    """Scoring failed, and the policy is "raise", or "hold" and the time to hold is over."""


class RewardExcluded(RewardError):  # noqa: N818 - as above
    """A sample has no reward, and the framework takes an exception for leaving it out."""


class RewardFailureRate(RewardError):  # noqa: N818 - as above
    """Too many of the last rewards failed: the run had better stop."""
