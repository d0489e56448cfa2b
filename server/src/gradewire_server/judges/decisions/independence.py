"""Whether a decision server answers the questions of one request independently, found out with questions of our own.

A question may be put beside others only where that moves no answer: the same item must get the same score alone and in
company. Some models read all questions of a request at once (Clef's), some servers cut what is long, and some answer
one question of a request. So the same questions are asked alone and together, in two orders.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.decisions.own_questions import own_questions
from gradewire_server.judges.remote.errors import OF_THE_REQUEST, RemoteError
from gradewire_server.judges.remote.server import Answer

_log = logging.getLogger(__name__)

_LARGEST_DIFFERENCE: Final = 1.01e-4
"""Of a probability: servers round to four digits, and what that leaves of a sum is divided out."""
_CERTAIN: Final = 0.999
"""An answer as sure as this would not show what moved it."""
_TIMEOUT_S: Final = 30.0
_LOOK_AGAIN_S: Final = 600.0
_FAILED_REQUESTS: Final = 3
Probabilities: TypeAlias = Sequence[tuple[float, ...]]
"""Of the options of each question."""


class Independence:
    """What is known of one server. Lives on one event loop.

    Nothing is asked until two questions could share a request, and those do not wait for it: until it is known they go
    one a request.

    Args:
        name: Of the judge, for the log.
        most: How many questions one request may have.
        ask: Has own questions answered by one request; raises RemoteError.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        name: str,
        most: int,
        ask: Callable[[Sequence[Asked]], Awaitable[Sequence[Answer]]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._most = most
        self._ask = ask
        self._clock = clock
        self._own = own_questions(most)
        self._most_bytes = _bytes(self._own)
        self._shown: bool | None = None
        self._not_before_s = float("-inf")
        self._failed = 0
        self._looking: asyncio.Task[None] | None = None
        self.remark = ""

    def may_allow(self, one: Asked) -> bool:
        """Whether this one is short enough to be put beside another one at all."""
        return _bytes((one,)) <= self._most_bytes

    def allows(self, asked: Sequence[Asked]) -> bool:
        """Whether these may share a request now; they are no more and no longer than what was tried.

        Finds out in the background where that is not known.
        """
        if len(asked) > self._most or _bytes(asked) > self._most_bytes:
            return False
        if self._shown is None and self._looking is None and self._clock() >= self._not_before_s:
            # A context of its own: what it logs is not about the request that came first.
            self._looking = asyncio.create_task(self._look(), context=contextvars.Context())
            self._looking.add_done_callback(self._looked)
        return bool(self._shown)

    def forget(self) -> None:
        """The server was away: another one may be there now."""
        if self._looking is not None:
            self._looking.cancel()
        self._shown = None
        self._not_before_s = float("-inf")
        self._failed = 0
        self.remark = ""

    def succeeded(self) -> None:
        """Notes that a request of several questions was answered as such."""
        self._failed = 0

    def failed(self) -> None:
        """Notes that one was not, and that its questions are asked alone.

        An item may be to blame, so the first do not count; after that it is looked at again, in ten minutes.
        """
        self._failed += 1
        if self._failed >= _FAILED_REQUESTS and self._shown:
            self._put_off("it refused several of them")

    async def close(self) -> None:
        """Ends what is under way."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                alone = [(await self._probabilities((one,)))[0] for one in self._own]
                why_not = await self._why_not(alone)
        except TimeoutError:
            self._put_off("it took too long to answer our own")
        except RemoteError as error:
            self._put_off(f"our own were not answered ({error.kind.value})")
        else:
            self._conclude(why_not)

    async def _why_not(self, alone: Probabilities) -> str:
        """Why questions must not be put together; empty where they may."""
        if sum(max(each) < _CERTAIN for each in alone) < 2:
            return "it is certain of its answers, which does not show whether they hang on what else is asked"
        for backwards in (False, True):
            step = -1 if backwards else 1
            try:
                together = (await self._probabilities(self._own[::step]))[::step]
            except RemoteError as error:
                if error.kind in OF_THE_REQUEST:
                    return "it does not answer several of a request"
                raise
            if _difference(alone, together) > _LARGEST_DIFFERENCE:
                return "its answers hang on what else is asked"
        return ""

    async def _probabilities(self, asked: Sequence[Asked]) -> Probabilities:
        return [answer.probabilities or () for answer in await self._ask(asked)]

    def _conclude(self, why_not: str) -> None:
        self._shown = not why_not
        self.remark = (
            f"It is asked one question a request: {why_not}."
            if why_not
            else f"It is asked up to {self._most} questions about an item in one request: it answers each of our own "
            "there as it does alone."
        )
        _log.info("judge %s: %s", self._name, self.remark)

    def _put_off(self, why: str) -> None:
        self._shown = None
        self._failed = 0
        self._not_before_s = self._clock() + _LOOK_AGAIN_S
        self.remark = f"It is asked one question a request for now: {why}."
        _log.info("judge %s: %s", self._name, self.remark)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking = None
        if not task.cancelled() and task.exception() is not None:
            _log.error("judge %s: looking at its server raised %s", self._name, type(task.exception()).__qualname__)
            self._put_off("of a defect here")


def _difference(some: Probabilities, others: Probabilities) -> float:
    pairs = zip(some, others, strict=True)
    return max(abs(one - other) for some_, others_ in pairs for one, other in zip(some_, others_, strict=True))


def _bytes(asked: Sequence[Asked]) -> int:
    texts = [asked[0].state]
    for each in asked:
        texts += [each.instructions, *each.options, *each.options.values()]
    return sum(len(text.encode()) for text in texts)
