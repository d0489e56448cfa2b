"""The few shapes that runs on a GPU have: each can be recorded as a CUDA graph, and needs memory of its own."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOKENS: Final = (8, 16, 32, 64, 128, 256, 512)
ROWS: Final = (1, 4, 16, 64, 256)
"""`benchmarks/gpu/buckets.py` compares grids on real texts: with so many shapes none pads less in as few runs."""


class Bucket(NamedTuple):
    """Shape of a run: rows x tokens."""

    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Part:
    """Texts that run together.

    Attributes:
        places: Which of the texts that were given, at most `bucket.rows`, none longer than `bucket.tokens`.
        bucket: Shape that they are padded to.
    """

    places: tuple[int, ...]
    bucket: Bucket


class Buckets:
    """The shapes of one model.

    Args:
        max_tokens: Longest text of the model; the longest shape is as long, and no shape longer.
        max_run_tokens: Rows times tokens of a shape, at most; a shape of one row may be larger.
        tokens: Lengths, ascending.
        rows: Numbers of rows, ascending, 1 among them.
    """

    def __init__(
        self, max_tokens: int, max_run_tokens: int, *, tokens: Sequence[int] = TOKENS, rows: Sequence[int] = ROWS
    ) -> None:
        self._tokens = (*(length for length in tokens if length < max_tokens), max_tokens)
        self._rows = {
            length: tuple(count for count in rows if count == 1 or count * length <= max_run_tokens)
            for length in self._tokens
        }

    @property
    def shapes(self) -> list[Bucket]:
        """All of them; the place in the list is the number of its CUDA graph."""
        return [Bucket(count, length) for length in self._tokens for count in self._rows[length]]

    def cover(self, lengths: Sequence[int]) -> Iterator[Part]:
        """Cuts texts into parts with a shape each, the longest first.

        Args:
            lengths: Tokens of each text, 1 to `max_tokens`.
        """
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        at = 0
        while at < len(order):
            length = next(each for each in self._tokens if each >= lengths[order[at]])
            # Texts that a shorter shape holds are left to it, unless few would fill this one up.
            fitting = sum(1 for place in order[at:] if lengths[place] > self._shorter(length))
            count = _rows_for(fitting, self._rows[length])
            taken = order[at : at + count]
            yield Part(tuple(taken), Bucket(count, length))
            at += len(taken)

    def halves(self, part: Part, lengths: Sequence[int]) -> list[Part]:
        """The same texts in two smaller parts, for a run that did not fit into memory.

        Args:
            part: Of more than one text.
            lengths: As given to `cover`.
        """
        middle = len(part.places) // 2
        halves = []
        for places in (part.places[:middle], part.places[middle:]):
            longest = max(lengths[place] for place in places)
            length = next(each for each in self._tokens if each >= longest)
            count = next(each for each in self._rows[length] if each >= len(places))
            halves.append(Part(places, Bucket(count, length)))
        return halves

    def _shorter(self, length: int) -> int:
        return max((each for each in self._tokens if each < length), default=0)


def _rows_for(texts: int, rows: Sequence[int]) -> int:
    """The largest shape that the texts fill, or the next one where they fill half of it."""
    for smaller, larger in itertools.pairwise(rows):
        if texts < larger:
            return larger if 2 * texts >= larger else smaller
    return rows[-1]


def pad(ids: Sequence[NDArray[np.int32]], part: Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids and attention mask of a part, int64[rows, tokens] each.

    A row without a text gets one token: a mask of zeros alone would make NaN of its own row.

    Args:
        ids: int32[tokens] of each text that was given to `Buckets.cover`.
        part: Which of them, and their shape.
    """
    padded = np.zeros(part.bucket, np.int64)
    mask = np.zeros(part.bucket, np.int64)
    mask[len(part.places) :, 0] = 1
    for row, place in enumerate(part.places):
        text = ids[place]
        padded[row, : len(text)], mask[row, : len(text)] = text, 1
    return padded, mask
