"""What each caller has of the small work, and how much it may have beside others: shares by weight."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gradewire_server.domain.caller import Caller

_ACTIVE_S: Final = 1.0
"""A caller that was let in or refused so lately keeps its share free, also while it has nothing in work."""
_FORGET_EVERY_S: Final = 0.1
_LATELY_S: Final = 1.0
"""What a caller had so long ago counts for a third of what it has now."""
_LITTLE: Final = 0.5
"""Of its share of what all have had; who has had less asks for less than it may."""


@dataclass(slots=True, eq=False)
class _Share:
    weight: float
    seen_s: float
    parts: int = 0
    tokens: float = 0.0
    promised_tokens: float = 0.0
    promised_s: float = 0.0
    lately: float = 0.0
    lately_s: float = 0.0


class CallerShares:
    """Small work in the server, caller by caller. Lives on one event loop.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._weights = 0.0
        self._has_promised = False
        self._forgot_s = self._lately_s = clock()
        self._lately = 0.0

    def enter(self, caller: Caller, tokens: float) -> None:
        """Work of a caller was let in."""
        share = self._of(caller)
        share.parts += 1
        share.tokens += tokens

    def grow(self, caller: Caller, tokens: float) -> None:
        """Work that was let in costs so much more than was thought."""
        self._of(caller).tokens += tokens

    def leave(self, caller: Caller, tokens: float) -> None:
        """Work is done that had cost so much in all."""
        share = self._of(caller)
        share.parts -= 1
        share.tokens = max(0.0, share.tokens - tokens) if share.parts else 0.0

    def has_room(self, caller: Caller, tokens: float, in_work_tokens: float, allowed_tokens: float) -> bool:
        """Whether a caller would still have no more than its share of what is allowed to all together.

        A caller alone has all of it. Beside others it has what its weight gives it, whatever the others ask for. One
        that has nothing in work is let in up to twice of what is allowed: where callers are many, their shares are
        smaller than a request.
        """
        share = self._of(caller)
        self._forget(share.seen_s)
        if not share.parts and in_work_tokens <= 2 * allowed_tokens:
            return True
        return share.tokens + tokens <= allowed_tokens * share.weight / self._weights

    def had(self, caller: Caller, amount: float) -> None:
        """A caller has been given so much of something, whatever it is."""
        share = self._of(caller)
        share.lately = _faded(share.lately, share.seen_s - share.lately_s) + amount
        self._lately = _faded(self._lately, share.seen_s - self._lately_s) + amount
        share.lately_s = self._lately_s = share.seen_s

    def has_had_little(self, caller: Caller) -> bool:
        """Whether a caller has lately been given less than half of its share of that; False for one that is alone."""
        share = self._of(caller)
        self._forget(share.seen_s)
        lately = _faded(share.lately, share.seen_s - share.lately_s)
        total = _faded(self._lately, share.seen_s - self._lately_s)
        return lately < _LITTLE * total * share.weight / self._weights

    def promise(self, caller: Caller, tokens: float, tokens_per_s: float, longest_s: float) -> float:
        """Seconds after which a refused caller has its turn, behind what was promised to it before.

        So those who are refused do not all come back at once.

        Args:
            caller: Who is refused.
            tokens: What its request costs.
            tokens_per_s: What the server gets through.
            longest_s: No promise is longer.
        """
        share = self._of(caller)
        its_rate = tokens_per_s * share.weight / self._weights
        done = (share.seen_s - share.promised_s) * its_rate
        share.promised_tokens = min(max(0.0, share.promised_tokens - done) + tokens, longest_s * its_rate)
        share.promised_s = share.seen_s
        self._has_promised = True
        return share.promised_tokens / its_rate

    def calm(self) -> None:
        """Nothing waits any more: what was promised is kept at once."""
        if self._has_promised:
            self._has_promised = False
            for share in self._shares.values():
                share.promised_tokens = 0.0
        self._forget(self._clock())

    def _of(self, caller: Caller) -> _Share:
        now_s = self._clock()
        share = self._shares.get(caller.key)
        if share is None:
            self._forget(now_s)  # here, for nowhere else do they become more
            share = self._shares[caller.key] = _Share(caller.weight, now_s)
            self._weights += caller.weight
        elif share.weight != caller.weight:  # the tokens file has changed
            self._weights += caller.weight - share.weight
            share.weight = caller.weight
        share.seen_s = now_s
        return share

    def _forget(self, now_s: float) -> None:
        """Callers that have gone, and what they have had."""
        if now_s - self._forgot_s < _FORGET_EVERY_S:
            return
        self._forgot_s = now_s
        kept = {key: each for key, each in self._shares.items() if each.parts or now_s - each.seen_s < _ACTIVE_S}
        if len(kept) < len(self._shares):
            self._shares = kept
            self._weights = sum(each.weight for each in kept.values())
            self._lately = sum(_faded(each.lately, now_s - each.lately_s) for each in kept.values())
            self._lately_s = now_s


def _faded(amount: float, passed_s: float) -> float:
    return amount * math.exp(-passed_s / _LATELY_S)
