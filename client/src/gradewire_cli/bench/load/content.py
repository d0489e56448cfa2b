"""Supply the answers to send, from a mix or from a file's rows."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from gradewire_proto.v1 import types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_POOL_ITEMS: Final = 500
_POOL_SEED: Final = 1
_SHORT_WORDS: Final = 6


_TEXTS: Final = tomllib.loads(resources.files(__package__).joinpath("mixes.toml").read_text("utf-8"))
_WORDS: Final[Mapping[str, list[str]]] = {kind: words.split() for kind, words in _TEXTS["words"].items()}
# Like a test set, use few questions, so that the server soon caches all references.
_QUESTIONS: Final = tuple(
    (template.format(thing), _WORDS[kind][position % len(_WORDS[kind])])
    for template, kind in _TEXTS["questions"].items()
    for position, thing in enumerate(_WORDS["things"])
)
_SENTENCE: Final = ("colours", "looks", "things", "actions", "places", "the", "looks", "things")


class SentItem(NamedTuple):
    """An item of a call. `repeated` is True if the item was sent before."""

    item: types_pb2.Item
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Generated answers.

    Attributes:
        min_words: Minimum number of words in an answer. Answers of more than 6 words consist of sentences.
        max_words: Maximum number of words in an answer.
        repeat_share: Share of items that come from a pool of 500 items. The pool is sent once before measuring.
    """

    min_words: int
    max_words: int
    repeat_share: float = 0.0

    def supply(self, seed: int, part: int, parts: int) -> Iterator[SentItem]:
        """Yield the items of client process `part`, which depend only on the seed and the process."""
        del parts
        source = random.Random(f"{seed}/{part}")  # noqa: S311 - test data, not a secret
        pool = self.pool()
        while True:
            if pool and source.random() < self.repeat_share:
                yield SentItem(source.choice(pool), repeated=True)
            else:
                yield SentItem(self._made(source), repeated=False)

    def pool(self) -> list[types_pb2.Item]:
        """Return the items to repeat, which are the same in every process."""
        source = random.Random(_POOL_SEED)  # noqa: S311 - test data, not a secret
        return [self._made(source) for _ in range(_POOL_ITEMS)] if self.repeat_share else []

    def _made(self, source: random.Random) -> types_pb2.Item:
        question, reference = source.choice(_QUESTIONS)
        words = source.randint(self.min_words, self.max_words)
        answer = _verbose_answer(source, words, reference) if words > _SHORT_WORDS else _short_answer(source, words)
        return types_pb2.Item(question=question, references=[reference], prediction=answer)


MIXES: Final = {name: Mix(**mix) for name, mix in _TEXTS["mixes"].items()}


class OwnRows:
    """A file's rows, which the client processes share and send in order, round after round.

    A row counts as repeated if an earlier row has the same content.
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
        """Yield the rows of client process `part`: every `parts`-th row, round after round."""
        del seed
        own = range(part, len(self), parts)
        # A process without rows of its own sends all rows as repeated rows.
        is_new = bool(own)
        while True:
            for position in own or range(len(self)):
                repeated = not (is_new and position in self._first)
                yield SentItem(types_pb2.Item.FromString(self._encoded[position]), repeated)
            is_new = False

    def pool(self) -> list[types_pb2.Item]:
        """Return [], because a file has no items to repeat."""
        return []


def _content(item: types_pb2.Item) -> bytes:
    bare = types_pb2.Item()
    bare.CopyFrom(item)
    bare.ClearField("id")
    return bare.SerializeToString(deterministic=True)


def _short_answer(source: random.Random, words: int) -> str:
    """Return an answer of up to 6 words, the first of which is a number. Three words allow 600 000 answers."""
    colour, look, thing = (source.choice(_WORDS[kind]) for kind in ("colours", "looks", "things"))
    number, other, place = str(source.randint(2, 999)), source.choice(_WORDS["things"]), source.choice(_WORDS["places"])
    parts = [number, colour, thing] if words <= 3 else [number, look, colour, thing]
    return " ".join([*parts, place, other][:words])


def _verbose_answer(source: random.Random, words: int, reference: str) -> str:
    made: list[str] = []
    while len(made) < words:
        made += ["The", *(source.choice(_WORDS.get(kind, [kind])) for kind in _SENTENCE)]
        made[-1] += "."
    made = made[:words]
    made[source.randrange(words)] = reference
    return " ".join(made)
