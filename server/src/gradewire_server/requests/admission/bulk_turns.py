"""Turns of bulk work: a little of it is in work at a time, and callers and their streams take turns."""

import asyncio
from collections.abc import Hashable
from typing import Final

from gradewire_server.domain.caller import Caller
from gradewire_server.domain.turn import Lane
from gradewire_server.requests.admission.encoder_backlog import EncoderBacklog
from gradewire_server.requests.admission.fair_waiting import FairWaiting, Waiter
from gradewire_server.requests.admission.loop_backlog import LoopBacklog

_MIN_PARTS: Final = 2
"""Parts that are let in however large they are: while one's texts are computed, another one is read."""


class BulkTurns:
    """Who waits for a turn. Lives on one event loop.

    Args:
        encoders: What they have before them.
        loop: While it is behind, one part is in work at a time.
    """

    def __init__(self, encoders: EncoderBacklog, loop: LoopBacklog) -> None:
        self._encoders = encoders
        self._loop = loop
        self._waiting = FairWaiting()

    @property
    def waiting_tokens(self) -> float:
        """Tokens of work that waits for its turns."""
        return self._waiting.tokens

    @property
    def callers(self) -> int:
        """How many callers wait."""
        return self._waiting.callers

    async def take(self, caller: Caller, source: Hashable, tokens: float) -> None:
        """Waits until a part of so many tokens has its turn, and counts it; work that leaves calls `grant` then."""
        if not self._waiting and self._has_room(tokens):
            self._encoders.enter(Lane.BULK, tokens)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(tokens, granted)
        self._waiting.add(caller, source, waiter)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._waiting.remove(caller, source, waiter)
            else:  # cancelled after the turn was given
                self._encoders.leave(Lane.BULK, tokens)
                self.grant()
            raise

    def grant(self) -> None:
        """Gives turns to those for whom there is room now."""
        while (waiter := self._waiting.peek()) is not None and self._has_room(waiter.tokens):
            self._waiting.pop()
            self._encoders.enter(Lane.BULK, waiter.tokens)
            waiter.granted.set_result(None)

    def _has_room(self, tokens: float) -> bool:
        if self._loop.is_behind:
            return not self._encoders.bulk_parts
        return self._encoders.bulk_parts < _MIN_PARTS or self._encoders.fits_bulk(tokens)
