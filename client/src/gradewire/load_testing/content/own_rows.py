"""What is sent: rows of a file, new until all of them have been sent."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gradewire.load_testing.content.mixes import POOL_ITEMS, DrawnItem
from gradewire_proto.v1 import types_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.load_testing.content.mixes import Supply


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows of a file, in the order in which they are sent; made by `of`.

    The client processes share them out, and each goes on where it was in the step before. A row counts as repeated
    where one of the same content comes before it, and from the second time on that it is sent.

    Attributes:
        encoded: Serialized items.
        known: Places of those whose content, but for the id, an earlier one has.
        repeat_share: Share of items that are taken from a pool, which is sent once before anything is measured. As
            large a share of the rows, the first and 500 at most, are the pool; the others are new.
    """

    encoded: Sequence[bytes]
    known: frozenset[int]
    repeat_share: float = 0.0

    @classmethod
    def of(cls, items: Sequence[types_pb2.Item], repeat_share: float = 0.0) -> Self:
        """Those of items, at least one."""
        contents: set[bytes] = set()
        known = []
        for place, item in enumerate(items):
            content = _content(item)
            if content in contents:
                known.append(place)
            contents.add(content)
        return cls([item.SerializeToString() for item in items], frozenset(known), repeat_share)

    @property
    def pool_rows(self) -> int:
        """Rows of the pool; one row at least stays new, unless none is to be."""
        wanted = min(POOL_ITEMS, math.ceil(self.repeat_share * len(self.encoded)))
        return wanted if self.repeat_share >= 1 else min(wanted, len(self.encoded) - 1)

    def pool(self) -> list[types_pb2.Item]:
        """The items that are repeated from the first; empty where none is."""
        return [types_pb2.Item.FromString(one) for one in self.encoded[: self.pool_rows]]

    def supply(self, seed: int, part: int, parts: int) -> Supply:
        """What client process `part` of `parts` sends: every `parts`-th row, each once before any comes again."""
        items = RowItems(self, random.Random(f"{seed}/{part}"), part, parts)  # noqa: S311 - test data, not a secret
        return lambda _: items


class RowItems:
    """The rows of one client process, round after round.

    Args:
        rows: All rows.
        source: Of all random choices.
        part: Which of `parts` processes it is, from 0.
        parts: Processes that share the rows out.
    """

    def __init__(self, rows: OwnRows, source: random.Random, part: int, parts: int) -> None:
        self._rows = rows
        self._source = source
        new = range(rows.pool_rows, len(rows.encoded))
        # Of fewer rows than processes the last ones have none of their own, and send what others send.
        self._own = new[part::parts] or range(len(rows.encoded))
        self._is_second_round = not new[part::parts]
        self._at = 0

    def next(self) -> DrawnItem:
        """The next one."""
        rows = self._rows
        if rows.pool_rows and self._source.random() < rows.repeat_share:
            return self._drawn(self._source.randrange(rows.pool_rows), repeated=True)
        if self._at == len(self._own):
            self._at, self._is_second_round = 0, True
        place = self._own[self._at]
        self._at += 1
        return self._drawn(place, repeated=self._is_second_round or place in rows.known, again=self._is_second_round)

    def _drawn(self, place: int, *, repeated: bool, again: bool = False) -> DrawnItem:
        item = types_pb2.Item.FromString(self._rows.encoded[place])
        return DrawnItem(item, repeated, len(item.prediction.split()), again)


def _content(item: types_pb2.Item) -> bytes:
    bare = types_pb2.Item()
    bare.CopyFrom(item)
    bare.ClearField("id")
    return bare.SerializeToString(deterministic=True)
