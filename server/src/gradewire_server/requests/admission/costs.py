"""How many tokens a request will have computed, learnt from requests of its kind: a warm one costs nothing."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

_UNKNOWN_TOKENS_PER_BYTE: Final = 1.0
_WEIGHT: Final = 0.1
"""Weight of the newest request of a kind."""
_MAX_KINDS: Final = 1024


class CostEstimates:
    """Tokens by byte of request, for each kind of request."""

    def __init__(self) -> None:
        self._tokens_per_byte: OrderedDict[Hashable, float] = OrderedDict()

    def knows(self, kind: Hashable) -> bool:
        """Whether one of the kind was done lately."""
        return kind in self._tokens_per_byte

    def tokens(self, kind: Hashable, size_bytes: int) -> float:
        """What a request of so many bytes will probably cost."""
        return size_bytes * self._tokens_per_byte.get(kind, _UNKNOWN_TOKENS_PER_BYTE)

    def learn(self, kind: Hashable, size_bytes: int, tokens: int) -> None:
        """Takes note of what one has cost."""
        if size_bytes <= 0:
            return
        measured = tokens / size_bytes
        known = self._tokens_per_byte.get(kind)
        self._tokens_per_byte[kind] = measured if known is None else known + _WEIGHT * (measured - known)
        self._tokens_per_byte.move_to_end(kind)
        if len(self._tokens_per_byte) > _MAX_KINDS:
            self._tokens_per_byte.popitem(last=False)
