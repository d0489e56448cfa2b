"""Items of one caller, which travel together where they fit into one batch."""

import asyncio
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TypeAlias

from gradewire.errors import GradewireError
from gradewire.items import Item
from gradewire.results import MetricScore


@dataclass(slots=True, eq=False)
class Group:
    """Items with what came of each.

    Attributes:
        items: The caller's.
        until: Time of the event loop at which the caller goes on, whatever is there.
        done: Set when the caller may go on.
        scores: By position; None for what has not come.
        left: How many have not.
        context: The caller's variables, its span among them.
    """

    items: Sequence[Item]
    until: float
    done: asyncio.Future[None]
    scores: list[MetricScore | None]
    left: int
    context: Context = field(default_factory=copy_context)

    def set(self, position: int, score: MetricScore) -> None:
        """An item has its score; the last one ends the wait of the caller."""
        self.scores[position] = score
        self.left -= 1
        if self.left == 0:
            self.end()

    def end(self) -> None:
        """The wait of the caller is over: all is there, or its deadline."""
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, error: GradewireError) -> None:
        """The call itself is wrong."""
        if not self.done.done():
            self.done.set_exception(error)


Piece: TypeAlias = tuple[Group, range]
"""A group, and which of its items."""
