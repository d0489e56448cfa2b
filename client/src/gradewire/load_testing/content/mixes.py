"""What is sent: answers made up by a mix."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gradewire.load_testing.content.texts import QUESTIONS, short_answer, verbose_answer
from gradewire_proto.v1 import types_pb2

POOL_ITEMS: Final = 500
"""Items that are repeated, at most."""
_POOL_SEED: Final = 1
_SHORT_WORDS: Final = 6


class DrawnItem(NamedTuple):
    """An item of a call.

    Attributes:
        item: What is sent.
        repeated: Whether it was sent before.
        words: Of its answer.
        again: Whether it was to be new, and there is no further row.
    """

    item: types_pb2.Item
    repeated: bool
    words: int
    again: bool = False


class Items(Protocol):
    """An endless supply of items."""

    def next(self) -> DrawnItem:
        """The next one."""
        ...


Supply = Callable[[int], Items]
"""What a client process sends, by the number of the order that it carries out."""


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

    def supply(self, seed: int, part: int, parts: int) -> Supply:
        """What client process `part` sends: other answers in every process and for every order."""
        del parts
        return lambda order: self.items(f"{seed}/{part}/{order}")

    def pool(self) -> list[types_pb2.Item]:
        """The items that are repeated: the same in every process; empty where none is."""
        source = random.Random(_POOL_SEED)  # noqa: S311 - test data, not a secret
        return [self.made(source).item for _ in range(POOL_ITEMS)] if self.repeat_share else []

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


MIXES: Final = {
    "short": Mix(min_words=3, max_words=6),
    "verbose": Mix(min_words=40, max_words=60),
    "repeats": Mix(min_words=3, max_words=6, repeat_share=0.5),
    "judge": Mix(min_words=3, max_words=6),
}
"""By name."""
