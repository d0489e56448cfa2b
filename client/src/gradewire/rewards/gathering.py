"""How single calls become batches."""

from dataclasses import dataclass

from gradewire._calls.arguments import check_most
from gradewire.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How single calls become batches.

    A server that has nothing to do is sent what there is; while it is at work, calls are gathered.

    Attributes:
        window_s: How long calls are gathered while the server is at work, seconds.
        max_batch: Most samples of one batch; a full batch leaves at once, and a larger group is cut.
        max_streams: Most batches under way at a time, each on a stream of its own. A sample that the server does not
            answer holds its stream until its deadline, so the bound is above what the server needs to be busy.
        max_waiting: Samples that wait to be sent; above it calls wait until there is room.

    Raises:
        InvalidRequest: An argument is wrong; the message names it.
    """

    window_s: float = 0.002
    max_batch: int = 256
    max_streams: int = 64
    max_waiting: int = 8192

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_streams", "max_waiting"):
            check_most(name, getattr(self, name))
        if not 0 <= self.window_s <= 1:
            raise InvalidRequest(f"window_s={self.window_s!r}: give seconds, from 0 to 1")
