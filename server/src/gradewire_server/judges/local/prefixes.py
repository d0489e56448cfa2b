"""Fixed prompts whose state the worker keeps: which ones, how far they are computed, which one is dropped next."""

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Prefix:
    """Fixed turns of some items.

    Attributes:
        ids: Token ids.
        state: Number of its state in the worker.
        computed: How many tokens of it are there.
        users: States that stand behind it and are not done.
    """

    ids: tuple[int, ...]
    state: int
    computed: int = 0
    users: int = 0

    @property
    def ready(self) -> bool:
        """Whether items can be computed behind it."""
        return self.computed == len(self.ids)


@dataclass(slots=True)
class PrefixStore:
    """The prefixes that the worker keeps; the least recently used one is dropped first.

    Attributes:
        max_prefixes: How many.
        max_tokens: Of all together; a single longer one stays as long as it is used.
    """

    max_prefixes: int
    max_tokens: int
    _kept: OrderedDict[tuple[int, ...], Prefix] = field(default_factory=OrderedDict)

    def find(self, ids: tuple[int, ...], *, state: int) -> Prefix:
        """The prefix with these token ids, a new one under number `state` where it is not kept."""
        prefix = self._kept.get(ids)
        if prefix is None:
            prefix = self._kept[ids] = Prefix(ids, state)
        self._kept.move_to_end(ids)
        return prefix

    def make_room(self) -> list[int]:
        """Drops what exceeds the limits, but never the latest one nor one in use; returns the states to drop."""
        dropped = []
        tokens = sum(len(ids) for ids in self._kept)
        for ids in list(self._kept)[:-1]:
            if len(self._kept) <= self.max_prefixes and tokens <= self.max_tokens:
                break
            if not self._kept[ids].users:
                dropped.append(self._kept.pop(ids).state)
                tokens -= len(ids)
        return dropped

    def forget_all(self) -> None:
        """Forgets everything: the worker is gone, and all states with it."""
        self._kept.clear()
