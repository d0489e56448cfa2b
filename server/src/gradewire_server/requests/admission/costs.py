"""How many tokens a request will have computed, learnt from requests of its kind: a warm one costs nothing."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

_UNKNOWN_TOKENS_PER_BYTE: Final = 1.0
_WEIGHT: Final = 0.1
"""Weight of the newest request of a kind."""
_MAX_CALLERS: Final = 1024
_MAX_KINDS: Final = 32
"""Of one caller, so that nobody can make the server forget what requests of others cost."""


class CostEstimates:
    """Tokens by byte of request, for each kind of request of each caller."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, OrderedDict[Hashable, float]] = OrderedDict()

    def knows(self, caller: str, kind: Hashable) -> bool:
        """Whether one of the kind was done lately."""
        return kind in self._callers.get(caller, ())

    def tokens(self, caller: str, kind: Hashable, size_bytes: int) -> float:
        """What a request of so many bytes will probably cost."""
        kinds = self._callers.get(caller)
        return size_bytes * (_UNKNOWN_TOKENS_PER_BYTE if kinds is None else kinds.get(kind, _UNKNOWN_TOKENS_PER_BYTE))

    def learn(self, caller: str, kind: Hashable, size_bytes: int, tokens: int) -> None:
        """Takes note of what one has cost."""
        if size_bytes <= 0:
            return
        kinds = self._callers.get(caller)
        if kinds is None:
            kinds = self._callers[caller] = OrderedDict()
            if len(self._callers) > _MAX_CALLERS:
                self._callers.popitem(last=False)
        self._callers.move_to_end(caller)
        measured = tokens / size_bytes
        known = kinds.get(kind)
        kinds[kind] = measured if known is None else known + _WEIGHT * (measured - known)
        kinds.move_to_end(kind)
        if len(kinds) > _MAX_KINDS:
            kinds.popitem(last=False)
