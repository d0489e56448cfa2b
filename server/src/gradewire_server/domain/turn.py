"""The turn of a piece of work: which lane it goes in, and where its cost is counted.

Every task that a call starts inherits its turn, so that an encoder's queue knows it without being told by each layer
between.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Lane(IntEnum):
    """Interactive work goes first; bulk work keeps a share that it cannot lose."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(slots=True, eq=False)
class Turn:
    """One piece of work that was admitted.

    Attributes:
        lane: Where it goes.
        tokens: Tokens that it has put into an encoder's queue so far.
    """

    lane: Lane = Lane.INTERACTIVE
    tokens: int = 0

    def queued(self, tokens: int) -> None:
        """So many tokens were put into an encoder's queue."""
        self.tokens += tokens

    def computed(self, tokens: int) -> None:
        """So many of them were computed; not those of texts that nobody waited for any more, or that failed."""


_NOBODYS: Final = Turn()
_turn: Final[ContextVar[Turn]] = ContextVar("turn", default=_NOBODYS)


def current_turn() -> Turn:
    """The turn of the task that asks; work of the server itself counts as interactive."""
    return _turn.get()


def take_turn(turn: Turn) -> Turn:
    """Makes this the turn of the current task and of the tasks that it starts from now on; returns it."""
    _turn.set(turn)
    return turn
