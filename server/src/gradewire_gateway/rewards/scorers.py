"""Reward scorers of a gateway: one for each caller, so that what is gathered never mixes tokens or hosts."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from gradewire.rewards import RewardScorer
from gradewire.rewards.shared import scorer_of
from gradewire.transport import Transport
from gradewire_gateway.settings import RewardPostSettings

_MOST_IDLE: Final = 256
"""Each takes some kilobytes; a caller who comes back later gets another one."""


def make_scorer(settings: RewardPostSettings, transport: Transport | None = None) -> RewardScorer:
    """A scorer with the settings of a gateway.

    Args:
        settings: Metric, extraction, failures.
        transport: Carries its calls; None: it is made to see whether the settings can be used.

    Raises:
        InvalidRequest: They cannot; the message names the setting without its `rewards_`.
    """
    given = asdict(settings)
    del given["slime_key"]
    return scorer_of(given, transport=transport)


@dataclass(slots=True)
class _Lent:
    scorer: RewardScorer
    users: int = 0


class CallerScorers:
    """Lends each caller a scorer of its own; those that nobody uses are kept while there is room.

    Args:
        make: Makes the scorer of a caller.
        most_idle: Scorers that are kept besides those in use.
    """

    def __init__(self, make: Callable[[Any], RewardScorer], most_idle: int = _MOST_IDLE) -> None:
        self._make = make
        self._most_idle = most_idle
        self._lent: OrderedDict[Hashable, _Lent] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lent)

    @asynccontextmanager
    async def of(self, caller: Hashable) -> AsyncIterator[RewardScorer]:
        """The scorer of a caller, for as long as the context lasts."""
        lent = self._lent.get(caller)
        if lent is None:
            lent = self._lent[caller] = _Lent(self._make(caller))
        self._lent.move_to_end(caller)
        lent.users += 1
        try:
            yield lent.scorer
        finally:
            lent.users -= 1
            if len(self._lent) > self._most_idle:
                await self._drop_idle()

    async def close(self) -> None:
        """Ends what they have in work."""
        lent, self._lent = self._lent, OrderedDict()
        for each in lent.values():
            await each.scorer.aclose()

    async def _drop_idle(self) -> None:
        idle = [caller for caller, lent in self._lent.items() if not lent.users]
        dropped = [self._lent.pop(caller) for caller in idle[: len(self._lent) - self._most_idle]]
        for each in dropped:
            await each.scorer.aclose()
