"""What Triton counts of a model's requests, from one load to the next."""

from typing import NamedTuple


class Counts(NamedTuple):
    """Requests since the model was loaded.

    Attributes:
        succeeded: Answered well.
        failed: Answered with an error. Of a model that is ill it tells a load more surely than `succeeded`, which
            a model under traffic soon brings to where it was.
    """

    succeeded: int
    failed: int

    def may_follow(self, earlier: "Counts") -> bool:
        """Whether these can be later counts of the same load, which both only rise."""
        return self.succeeded >= earlier.succeeded and self.failed >= earlier.failed
