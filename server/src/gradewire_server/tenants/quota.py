"""Text quotas: token buckets, and charges for messages."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_server.domain.caller import Caller, Quota
from gradewire_server.requests.errors import OverloadedError, QuotaExceededError
from gradewire_server.requests.turns import SlowedMessages

_BYTES_PER_TOKEN: Final = 4
_MINUTE_S: Final = 60.0


def text_tokens(size_bytes: int) -> int:
    """Return the number of text tokens charged for a message: one token for every four bytes."""
    return -(-size_bytes // _BYTES_PER_TOKEN)


@dataclass(slots=True)
class Level:
    """The number of tokens left in a bucket at the time `seen_s`. A negative number is a debt."""

    size: float
    left: float
    seen_s: float

    def fill(self, now_s: float) -> None:
        """Add the tokens for the time since `seen_s`."""
        self.left = min(self.size, self.left + max(0.0, now_s - self.seen_s) * self.size / _MINUTE_S)
        self.seen_s = max(self.seen_s, now_s)  # another process may have written a later time

    def resize(self, size: float) -> None:
        """Change the bucket's size. Used tokens remain used."""
        self.left += size - self.size
        self.size = size


class TokenBucket(Quota):
    """A tenant's quota, for one event loop.

    A full bucket contains the tokens for one minute. A message that needs more tokens can be sent when the bucket is
    full, and leaves a debt. `level` receives the bucket's size and the time, and opens a level that several processes
    share.
    """

    def __init__(
        self,
        tokens_per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        level: Callable[[float, float], AbstractContextManager[Level]] | None = None,
    ) -> None:
        self._clock = clock
        self._size = float(tokens_per_minute)
        self._own = Level(self._size, self._size, clock())
        self._level = level or (lambda _size, _now_s: nullcontext(self._own))
        self._turn = asyncio.Lock()
        if level is not None:
            self.set_rate(tokens_per_minute)

    def set_rate(self, tokens_per_minute: int) -> None:
        """Change the quota. Used tokens remain used."""
        self._size, now_s = float(tokens_per_minute), self._clock()
        with self._level(self._size, now_s) as level:
            level.fill(now_s)
            level.resize(self._size)

    @override
    def take(self, tokens: int) -> float:
        now_s = self._clock()
        with self._level(self._size, now_s) as level:
            level.fill(now_s)
            missing = min(float(tokens), level.size) - level.left
            if missing > 0:
                return missing * _MINUTE_S / level.size
            level.left -= tokens
            return 0.0

    @override
    def take_in_turn(self, tokens: int) -> bool:
        return not self._turn.locked() and self.take(tokens) == 0

    @override
    async def wait(self, tokens: int) -> None:
        async with self._turn:
            while (pause_s := self.take(tokens)) > 0:  # noqa: ASYNC110 - it waits for time, not for an event
                await asyncio.sleep(pause_s)


def charge(caller: Caller, size_bytes: int) -> None:
    """Charge a message to the tenant's quota, or raise QuotaExceededError if too few tokens are left."""
    if caller.quota is not None:
        pause_s = caller.quota.take(text_tokens(size_bytes))
        if pause_s > 0:
            raise QuotaExceededError(
                f"tenant {caller.key} has used up its text quota (quota_tokens_per_minute); this message needs "
                f"{text_tokens(size_bytes)} tokens",
                retry_after_s=pause_s,
            )


async def charge_stream(caller: Caller, size_bytes: int, slowed: SlowedMessages) -> None:
    """Wait until enough tokens are left, then charge a stream's message to the tenant's quota.

    While the message waits, it counts in `slowed`.

    Raises:
        QuotaExceededError: The tenant, or all tenants together, have too many waiting messages.
    """
    quota, tokens = caller.quota, text_tokens(size_bytes)
    if quota is None or quota.take_in_turn(tokens):
        return
    try:
        with slowed.hold(caller.key, size_bytes):
            await quota.wait(tokens)
    except OverloadedError as error:
        raise QuotaExceededError(
            f"tenant {caller.key} has used up its text quota (quota_tokens_per_minute), and too many messages in "
            "its streams are waiting; use fewer streams or try again later",
            retry_after_s=error.retry_after_s,
        ) from None
