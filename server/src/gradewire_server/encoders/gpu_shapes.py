"""The input shapes of runs on a GPU, the time that a run of each shape takes, and the cheapest shapes for a batch."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOKENS: Final = (8, 16, 32, 64, 128, 256, 512)
ROWS: Final = (1, 4, 16, 64, 256, 1024)
"""The shapes' row counts. `benchmarks/gpu/buckets.py` found no six counts that take less time for real texts."""
MAX_RUN_TOKENS: Final = 16_384
"""The largest run that is tried when the settings name no limit. An H100 gains nothing from larger runs."""

_MEASURE_S: Final = 1.5
"""Seconds after which no further shape is measured."""
_TIMED_RUNS: Final = 2
_ENOUGH_SPEED: Final = 0.9
"""The share of the highest speed at which a run is large enough. Larger runs only make other calls wait longer."""
_UNMEASURED_START_TOKENS: Final = 512
"""The start of a run in tokens, until times are measured. Only the choice of shapes before that depends on it."""


class Bucket(NamedTuple):
    """A run's input shape."""

    rows: int
    tokens: int

    @property
    def size(self) -> int:
        """The number of padded tokens."""
        return self.rows * self.tokens


@dataclass(frozen=True, slots=True)
class Part:
    """Texts that run together, padded to one shape. `places` are the texts' positions in the input."""

    places: tuple[int, ...]
    bucket: Bucket


class ShapeTimes:
    """The time of a run by shape: measured, or estimated from all measured shapes.

    Args:
        measured: Seconds by shape, infinite for a shape that does not fit into the GPU's memory. Without any finite
            value, times are only relative to each other.
    """

    def __init__(self, measured: Mapping[Bucket, float]) -> None:
        self.measured = dict(measured)
        self.start_s, self.token_s = _line(
            [(float(shape.size), seconds) for shape, seconds in measured.items() if math.isfinite(seconds)]
        )

    def seconds(self, shape: Bucket) -> float:
        """Return a run's time in seconds."""
        known = self.measured.get(shape)
        return self.start_s + self.token_s * shape.size if known is None else known

    def best_run_tokens(self) -> int:
        """Return the size, in padded tokens, of the smallest measured run that is nearly as fast as the fastest.

        Speed is measured in padded tokens per second.

        Raises:
            ValueError: No shape was measured, or none fits into memory.
        """
        speeds = {shape: shape.size / seconds for shape, seconds in self.measured.items() if math.isfinite(seconds)}
        enough = _ENOUGH_SPEED * max(speeds.values())
        return min(shape.size for shape, speed in speeds.items() if speed >= enough)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the fixed time and the time of a token, in seconds, that fit the points (tokens, seconds) best."""
    if not points:
        return float(_UNMEASURED_START_TOKENS), 1.0
    if len(points) == 1:
        ((size, seconds),) = points
        return 0.0, seconds / size
    # Weigh relative errors, because the small shapes' times decide as many splits as the large shapes' times.
    weights = [1 / (seconds * seconds) for _, seconds in points]
    whole = sum(weights)
    mean_size = sum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / whole
    mean_s = sum(weight * seconds for weight, (_, seconds) in zip(weights, points, strict=True)) / whole
    spread = sum(weight * (size - mean_size) ** 2 for weight, (size, _) in zip(weights, points, strict=True))
    together = sum(
        weight * (size - mean_size) * (seconds - mean_s)
        for weight, (size, seconds) in zip(weights, points, strict=True)
    )
    token_s = max(0.0, together / spread) if spread else 0.0
    return max(0.0, mean_s - token_s * mean_size), token_s


UNMEASURED: Final = ShapeTimes({})


def measure(
    run: Callable[[Bucket], bool],
    shapes: Sequence[Bucket],
    *,
    limit_s: float = _MEASURE_S,
    clock: Callable[[], float] = time.perf_counter,
) -> ShapeTimes:
    """Measure the shapes' times, the most informative shapes first.

    The smallest and the largest shape are always measured. No further shape starts after `limit_s`. Each shape's first
    run is not timed, because it allocates buffers and may record a CUDA graph.

    Args:
        run: A function that runs one batch of a shape, or returns False if the shape does not fit into memory.
        shapes: All shapes.
        limit_s: Seconds after which no further shape starts.
        clock: A clock in seconds.
    """
    began_s = clock()
    measured: dict[Bucket, float] = {}
    for number, shape in enumerate(_informative_first(shapes)):
        if number > 1 and clock() - began_s > limit_s:
            break
        measured[shape] = _time_of(run, shape, clock)
    return ShapeTimes(measured)


def _informative_first(shapes: Sequence[Bucket]) -> list[Bucket]:
    """Return the shapes: both extremes, then the middle of the widest gap in size, again and again."""
    left = sorted(shapes, key=lambda shape: (shape.size, shape.tokens))
    order = [left[0], left[-1]] if len(left) > 1 else [*left]
    gaps = [(0, len(left) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(left[middle])
            gaps += [(low, middle), (middle, high)]
    return order


def _time_of(run: Callable[[Bucket], bool], shape: Bucket, clock: Callable[[], float]) -> float:
    best_s = math.inf
    for timed in range(_TIMED_RUNS + 1):
        began_s = clock()
        if not run(shape):
            return math.inf
        if timed:
            best_s = min(best_s, clock() - began_s)
    return best_s


class Buckets:
    """The shapes of one model.

    Args:
        max_tokens: The model's maximum text length in tokens, which is also the longest shape's length.
        max_run_tokens: The maximum of rows x tokens for shapes with more than one row.
        tokens: The shapes' lengths in ascending order.
        rows: The shapes' row counts in ascending order, including 1.
        times: The shapes' times, which decide how a batch is split. Shapes with more than one row and an infinite time
            are left out.
    """

    def __init__(
        self,
        max_tokens: int,
        max_run_tokens: int,
        *,
        tokens: Sequence[int] = TOKENS,
        rows: Sequence[int] = ROWS,
        times: ShapeTimes = UNMEASURED,
    ) -> None:
        self.max_run_tokens = max_run_tokens
        self._tokens = (*(length for length in tokens if length < max_tokens), max_tokens)
        self._all_rows = tuple(rows)
        self._rows = {
            length: tuple(
                count
                for count in rows
                if count == 1
                or (count * length <= max_run_tokens and math.isfinite(times.seconds(Bucket(count, length))))
            )
            for length in self._tokens
        }
        self._seconds = {shape: times.seconds(shape) for shape in self.shapes}

    @property
    def shapes(self) -> list[Bucket]:
        """All shapes, by length, then by rows."""
        return [Bucket(count, length) for length in self._tokens for count in self._rows[length]]

    def measured(self, times: ShapeTimes, max_run_tokens: int) -> "Buckets":
        """Return those of these shapes that have at most `max_run_tokens`, with these times."""
        return Buckets(self._tokens[-1], max_run_tokens, tokens=self._tokens, rows=self._all_rows, times=times)

    def cover(self, lengths: Sequence[int]) -> Iterator[Part]:
        """Split texts into parts with one shape each, the longest texts first, so that all parts take the least time.

        Each part takes the longest texts that are left. Its rows are as many as its own length fills, or hold all texts
        of its length, or all texts; shorter texts fill the rest.

        Args:
            lengths: Numbers of tokens, 1 to `max_tokens`.
        """
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        buckets = [self._length_for(lengths[place]) for place in order]
        ends = {length: end for end, length in enumerate(buckets, 1)}  # the texts that need `length` end there

        best: dict[int, tuple[float, int]] = {len(order): (0.0, 0)}  # the least time from a position, and rows
        for at in reversed(self._reachable(buckets, ends)):
            length = buckets[at]
            best[at] = min(
                (self._seconds[Bucket(rows, length)] + best[min(at + rows, len(order))][0], rows)
                for rows in self._choices(ends[length] - at, len(order) - at, length)
            )
        at = 0
        while at < len(order):
            rows = best[at][1]
            taken = order[at : at + rows]
            yield Part(tuple(taken), Bucket(rows, buckets[at]))
            at += len(taken)

    def halves(self, part: Part, lengths: Sequence[int]) -> list[Part]:
        """Split a part that did not fit into memory into two smaller parts, or more if no shape holds a half."""
        middle = len(part.places) // 2
        halves = []
        for places in (part.places[:middle], part.places[middle:]):
            length = self._length_for(max(lengths[place] for place in places))
            # A shorter length may lack row counts that did not fit when they were measured.
            count = next((each for each in self._rows[length] if each >= len(places)), 0)
            half = Part(places, Bucket(count, length))
            halves += [half] if count else self.halves(half, lengths)
        return halves

    def _choices(self, fitting: int, left: int, length: int) -> set[int]:
        """Return the row counts to try: the largest that are full, and the smallest that hold all of a kind."""
        rows = self._rows[length]
        full = {max(each for each in rows if each <= texts) for texts in (fitting, left)}
        return full | {next((each for each in rows if each >= texts), rows[-1]) for texts in (fitting, left)}

    def _reachable(self, buckets: Sequence[int], ends: Mapping[int, int]) -> list[int]:
        """Return all positions at which a part may begin, in ascending order."""
        found: set[int] = set()
        waiting = [0]
        while waiting:
            at = waiting.pop()
            if at < len(buckets) and at not in found:
                found.add(at)
                length = buckets[at]
                waiting += [at + rows for rows in self._choices(ends[length] - at, len(buckets) - at, length)]
        return sorted(found)

    def _length_for(self, tokens: int) -> int:
        return next(each for each in self._tokens if each >= tokens)


def pad(ids: Sequence[NDArray[np.int32]], part: Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a part's token IDs and attention mask, both int64[rows, tokens].

    An empty row has one token, because an all-zero mask would make its vector NaN.
    """
    texts = [ids[place] for place in part.places]
    lengths = np.ones(part.bucket.rows, np.int64)
    lengths[: len(texts)] = [len(text) for text in texts]
    mask = np.arange(part.bucket.tokens) < lengths[:, None]
    padded = np.zeros(part.bucket, np.int64)
    padded[: len(texts)][mask[: len(texts)]] = np.concatenate(texts)
    return padded, mask.astype(np.int64)
