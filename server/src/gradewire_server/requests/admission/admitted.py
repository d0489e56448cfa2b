"""The turn of work that was let in; tells admission what it really costs."""

from typing import Protocol

from typing_extensions import override

from gradewire_server.domain.turn import Lane, Turn
from gradewire_server.requests.admission.work import Work


class Counting(Protocol):
    """What is told of work."""

    def grow(self, turn: "Admitted", tokens: float) -> None:
        """Work that is here costs so much more than was thought."""

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, of work that is here or has left."""


class Admitted(Turn):
    """A turn, and what was thought of its cost.

    Attributes:
        work: What was let in.
        expected_tokens: That it was thought to cost.
        counted_tokens: That it counts for now: those, or what it has queued where that is more.
        ended: It has left; what is queued for it now counts no more.
    """

    __slots__ = ("_counting", "counted_tokens", "ended", "expected_tokens", "work")

    def __init__(self, counting: Counting, work: Work, lane: Lane, tokens: float) -> None:
        super().__init__(lane)
        self._counting = counting
        self.work = work
        self.expected_tokens = self.counted_tokens = tokens
        self.ended = False

    @override
    def queued(self, tokens: int) -> None:
        self.tokens += tokens
        more = self.tokens - self.counted_tokens
        if more > 0 and not self.ended:
            self.counted_tokens += more
            self._counting.grow(self, more)

    @override
    def computed(self, tokens: int) -> None:
        self._counting.computed(tokens)
