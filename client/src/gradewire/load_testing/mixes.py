"""What is sent: answers made up by a mix, or rows of a file."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gradewire.load_testing.texts import QUESTIONS, short_answer, verbose_answer
from gradewire_proto.v1 import types_pb2

_POOL_ITEMS: Final = 500
_POOL_SEED: Final = 1
_SHORT_WORDS: Final = 6


class DrawnItem(NamedTuple):
    """An item, whether it was sent before, and the words of its answer."""

    item: types_pb2.Item
    repeated: bool
    words: int


class Items(Protocol):
    """An endless supply of items."""

    def next(self) -> DrawnItem:
        """The next one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Answers that are made up.

    Attributes:
        min_words: Of an answer; beyond 6 it is made of sentences.
        max_words: Of an answer.
        repeat_share: Share of items that are taken from a pool of 500, which is sent once before anything is measured;
            the others are new, but for one in a hundred at most.
    """

    min_words: int
    max_words: int
    repeat_share: float = 0.0

    def items(self, seed: str) -> "MadeItems":
        """A supply; the same for the same seed."""
        return MadeItems(self, random.Random(seed))  # noqa: S311 - test data, not a secret

    def pool(self) -> list[types_pb2.Item]:
        """The items that are repeated: the same in every process; empty where none is."""
        source = random.Random(_POOL_SEED)  # noqa: S311 - test data, not a secret
        return [self.made(source).item for _ in range(_POOL_ITEMS)] if self.repeat_share else []

    def made(self, source: random.Random) -> DrawnItem:
        """A new item."""
        question, reference = source.choice(QUESTIONS)
        words = source.randint(self.min_words, self.max_words)
        answer = verbose_answer(source, words, reference) if words > _SHORT_WORDS else short_answer(source, words)
        item = types_pb2.Item(question=question, references=[reference], prediction=answer)
        return DrawnItem(item, repeated=False, words=words)


class MadeItems:
    """Items of a mix.

    Args:
        mix: Says which.
        source: Of all random choices.
    """

    def __init__(self, mix: Mix, source: random.Random) -> None:
        self._mix = mix
        self._source = source
        self._pool = mix.pool()

    def next(self) -> DrawnItem:
        """The next one."""
        if self._pool and self._source.random() < self._mix.repeat_share:
            item = self._source.choice(self._pool)
            return DrawnItem(item, repeated=True, words=len(item.prediction.split()))
        return self._mix.made(self._source)


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows of a file, as serialized items: in their order, again and again from the first.

    All that are sent in measured steps count as repeated, since each was sent once before them.
    """

    encoded: Sequence[bytes]

    def items(self, seed: str) -> "RowItems":
        """A supply that begins anywhere; the same for the same seed."""
        return RowItems(self.pool(), random.Random(seed).randrange(len(self.encoded)))  # noqa: S311 - no secret

    def pool(self) -> list[types_pb2.Item]:
        """All of them."""
        return [types_pb2.Item.FromString(one) for one in self.encoded]


class RowItems:
    """Rows one after the other, beginning at `place`."""

    def __init__(self, rows: Sequence[types_pb2.Item], place: int) -> None:
        self._rows = rows
        self._place = place

    def next(self) -> DrawnItem:
        """The next one."""
        item = self._rows[self._place % len(self._rows)]
        self._place += 1
        return DrawnItem(item, repeated=True, words=len(item.prediction.split()))


MIXES: Final = {
    "short": Mix(min_words=3, max_words=6),
    "verbose": Mix(min_words=40, max_words=60),
    "repeats": Mix(min_words=3, max_words=6, repeat_share=0.5),
    "judge": Mix(min_words=3, max_words=6),
}
"""By name."""
