"""How much text a tenant may send: a bucket that fills as time goes by, and that its calls draw from."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from gradewire_server.domain.caller import Quota

_BYTES_PER_TOKEN: Final = 4
_MINUTE_S: Final = 60.0


def text_tokens(size_bytes: int) -> int:
    """Tokens of text that a message counts for: a token is four bytes of it.

    No tokenizer is asked: that would cost as much as a warm row, and models do not agree. So the same message always
    counts for the same, whatever is cached, and a caller can tell how much beforehand.
    """
    return -(-size_bytes // _BYTES_PER_TOKEN)


class TokenBucket(Quota):
    """A quota of one tenant. Belongs to one event loop.

    It holds what may be sent in a minute. A message that is larger needs a full bucket, and leaves a debt that is paid
    off before the next one.

    Args:
        tokens_per_minute: Above 0.
        clock: Monotonic seconds.
    """

    def __init__(self, tokens_per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._size = float(tokens_per_minute)
        self._left = self._size
        self._seen_s = clock()
        self._turn = asyncio.Lock()

    def set_rate(self, tokens_per_minute: int) -> None:
        """Goes on with another quota; what was drawn stays drawn."""
        self._fill()
        self._left += tokens_per_minute - self._size
        self._size = float(tokens_per_minute)

    @override
    def take(self, tokens: int) -> float:
        self._fill()
        missing = min(float(tokens), self._size) - self._left
        if missing > 0:
            return missing * _MINUTE_S / self._size
        self._left -= tokens
        return 0.0

    @override
    def take_in_turn(self, tokens: int) -> bool:
        return not self._turn.locked() and self.take(tokens) == 0

    @override
    async def wait(self, tokens: int) -> None:
        async with self._turn:
            while (pause_s := self.take(tokens)) > 0:  # noqa: ASYNC110 - time is what it waits for
                await asyncio.sleep(pause_s)

    def _fill(self) -> None:
        now_s = self._clock()
        self._left = min(self._size, self._left + (now_s - self._seen_s) * self._size / _MINUTE_S)
        self._seen_s = now_s
