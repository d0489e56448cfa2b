"""The answers that are sent: made up by a mix, or rows of a file."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gradewire_proto.v1 import types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_POOL_ITEMS: Final = 500
_POOL_SEED: Final = 1
_SHORT_WORDS: Final = 6


def _words(text: str) -> list[str]:
    return text.split()


# Common words, so that answers have as many tokens as real ones to questions about pictures.
_COLOURS: Final = _words("red blue green yellow black white brown orange purple grey pink golden")
_LOOKS: Final = _words(
    "large small old new wooden plastic shiny broken round square tall narrow empty full wet dry dark bright soft "
    "striped dirty clean heavy thin wide painted"
)
_THINGS: Final = _words(
    "dog cat horse bird table chair bottle bowl plate bench bicycle bus train truck boat umbrella suitcase kite "
    "surfboard skateboard racket cup fork knife spoon banana apple sandwich cake pizza carrot clock vase book lamp "
    "mirror window door fence bridge tree flower rock river beach mountain field street sign fountain statue"
)
_PLACES: Final = _words("beside behind under above near inside outside across below against around between")
_ACTIONS: Final = _words("stands lies rests sits leans waits hangs moves turns shines")
_TEMPLATES: Final = (
    ("what colour is the {}?", _COLOURS),
    ("what is next to the {}?", _THINGS),
    ("how does the {} look?", _LOOKS),
    ("where is the {}?", _PLACES),
)
# Questions with their references: few, as a test set has, so references are soon in the cache.
_QUESTIONS: Final = tuple(
    (template.format(thing), answers[position % len(answers)])
    for template, answers in _TEMPLATES
    for position, thing in enumerate(_THINGS)
)


class SentItem(NamedTuple):
    """An item of a call, and whether it was sent before."""

    item: types_pb2.Item
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Answers that are made up.

    Attributes:
        min_words: Least words of an answer; beyond 6 it is made of sentences.
        max_words: Most words of an answer.
        repeat_share: Share of items from a pool of 500 that is sent once before anything is measured; the others are
            new, but for one in a hundred at most.
    """

    min_words: int
    max_words: int
    repeat_share: float = 0.0

    def supply(self, seed: int, part: int, parts: int) -> Iterator[SentItem]:
        """Yield the items of client process `part`: other answers in every process, the same for the same seed."""
        del parts
        source = random.Random(f"{seed}/{part}")  # noqa: S311 - test data, not a secret
        pool = self.pool()
        while True:
            if pool and source.random() < self.repeat_share:
                yield SentItem(source.choice(pool), repeated=True)
            else:
                yield SentItem(self._made(source), repeated=False)

    def pool(self) -> list[types_pb2.Item]:
        """Return the items that are repeated: the same in every process; empty without any."""
        source = random.Random(_POOL_SEED)  # noqa: S311 - test data, not a secret
        return [self._made(source) for _ in range(_POOL_ITEMS)] if self.repeat_share else []

    def _made(self, source: random.Random) -> types_pb2.Item:
        question, reference = source.choice(_QUESTIONS)
        words = source.randint(self.min_words, self.max_words)
        answer = _verbose_answer(source, words, reference) if words > _SHORT_WORDS else _short_answer(source, words)
        return types_pb2.Item(question=question, references=[reference], prediction=answer)


MIXES: Final = {
    "short": Mix(min_words=3, max_words=6),
    "verbose": Mix(min_words=40, max_words=60),
    "repeats": Mix(min_words=3, max_words=6, repeat_share=0.5),
    "judge": Mix(min_words=3, max_words=6),
}
"""Mixes by name."""


class OwnRows:
    """Rows of a file, sent in their order, round after round.

    The client processes share them out. A row counts as repeated if an earlier one has its content, and from the second
    round on.

    Args:
        items: The rows, at least one.
    """

    def __init__(self, items: Sequence[types_pb2.Item]) -> None:
        self._encoded = [item.SerializeToString() for item in items]
        first_with: dict[bytes, int] = {}
        for position, item in enumerate(items):
            first_with.setdefault(_content(item), position)
        self._first = frozenset(first_with.values())

    def __len__(self) -> int:
        return len(self._encoded)

    def supply(self, seed: int, part: int, parts: int) -> Iterator[SentItem]:
        """Yield every `parts`-th row, each once before any comes again."""
        del seed
        own = range(part, len(self), parts)
        # With fewer rows than processes, the last processes have none of their own and send what others send.
        is_new = bool(own)
        while True:
            for position in own or range(len(self)):
                repeated = not (is_new and position in self._first)
                yield SentItem(types_pb2.Item.FromString(self._encoded[position]), repeated)
            is_new = False

    def pool(self) -> list[types_pb2.Item]:
        """Return nothing: a row that is sent before anything is measured is not new any more."""
        return []


def _content(item: types_pb2.Item) -> bytes:
    bare = types_pb2.Item()
    bare.CopyFrom(item)
    bare.ClearField("id")
    return bare.SerializeToString(deterministic=True)


def _short_answer(source: random.Random, words: int) -> str:
    """Return up to 6 words that begin with a number: of three words there are 600 000 different answers."""
    colour, look, thing = source.choice(_COLOURS), source.choice(_LOOKS), source.choice(_THINGS)
    number, other, place = str(source.randint(2, 999)), source.choice(_THINGS), source.choice(_PLACES)
    parts = [number, colour, thing] if words <= 3 else [number, look, colour, thing]
    return " ".join([*parts, place, other][:words])


def _verbose_answer(source: random.Random, words: int, reference: str) -> str:
    """Return so many words in sentences, one of them the reference."""
    made: list[str] = []
    while len(made) < words:
        lists = (_COLOURS, _LOOKS, _THINGS, _ACTIONS, _PLACES, ["the"], _LOOKS, _THINGS)
        made += ["The", *(source.choice(each) for each in lists)]
        made[-1] += "."
    made = made[:words]
    made[source.randrange(words)] = reference
    return " ".join(made)
