"""Batches are split into the shapes that take the least time, by times that are measured at load."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.encoders.gpu_shapes import UNMEASURED, Bucket, Buckets, Part, ShapeTimes, measure, pad

MAX_TOKENS = 200
BUDGET = 4096
LENGTHS = st.lists(st.integers(1, MAX_TOKENS), min_size=1, max_size=120)
TIMES = st.builds(
    lambda start, token: ShapeTimes({Bucket(1, 8): start + 8 * token, Bucket(256, 16): start + 4096 * token}),
    st.floats(1e-5, 1e-2),
    st.floats(1e-8, 1e-4),
)


@settings(max_examples=example_count(200), deadline=None)
@given(LENGTHS, TIMES)
def test_every_text_is_in_one_part_of_a_known_shape_that_holds_it(lengths: list[int], times: ShapeTimes) -> None:
    buckets = Buckets(MAX_TOKENS, BUDGET, times=times)
    parts = list(buckets.cover(lengths))
    assert sorted(place for part in parts for place in part.places) == list(range(len(lengths)))
    for part in parts:
        assert part.bucket in buckets.shapes
        assert 0 < len(part.places) <= part.bucket.rows
        assert max(lengths[place] for place in part.places) <= part.bucket.tokens
    for first, second in pairwise(parts):
        assert first.bucket.tokens >= second.bucket.tokens


def least_s(lengths: Sequence[int], buckets: Buckets, times: ShapeTimes) -> float:
    """The least time of all ways to cut texts, longest first, into runs of any shape that holds them."""
    ordered = sorted(lengths, reverse=True)
    best = [0.0] * (len(ordered) + 1)
    for at in reversed(range(len(ordered))):
        length = min(shape.tokens for shape in buckets.shapes if shape.tokens >= ordered[at])
        best[at] = min(
            times.seconds(shape) + best[min(at + shape.rows, len(ordered))]
            for shape in buckets.shapes
            if shape.tokens == length
        )
    return best[0]


@settings(max_examples=example_count(200), deadline=None)
@given(LENGTHS, TIMES)
def test_no_other_split_is_much_faster(lengths: list[int], times: ShapeTimes) -> None:
    buckets = Buckets(MAX_TOKENS, BUDGET, times=times)
    took_s = sum(times.seconds(part.bucket) for part in buckets.cover(lengths))
    assert took_s <= 1.1 * least_s(lengths, buckets, times)


@pytest.mark.parametrize(
    ("start_s", "shapes"),
    [
        (1e-9, [(1, 64), (4, 8), (4, 8), (1, 8)]),  # only padding costs
        (1.0, [(16, 64)]),  # only the start of a run costs
    ],
)
def test_the_start_of_a_run_decides_how_many_runs_there_are(start_s: float, shapes: list[Bucket]) -> None:
    times = ShapeTimes({Bucket(1, 8): start_s + 8e-6, Bucket(256, 16): start_s + 4096e-6})
    assert [part.bucket for part in Buckets(MAX_TOKENS, BUDGET, times=times).cover([60, *[3] * 9])] == shapes


def test_a_shape_that_does_not_fit_into_memory_is_not_chosen() -> None:
    buckets = Buckets(MAX_TOKENS, BUDGET)
    assert [part.bucket.rows for part in buckets.cover([8] * 256)] == [256]
    times = ShapeTimes({**dict.fromkeys(buckets.shapes, 1.0), Bucket(256, 8): math.inf})
    assert [part.bucket.rows for part in buckets.measured(times, BUDGET).cover([8] * 256)] == [64] * 4


@settings(max_examples=example_count(100), deadline=None)
@given(LENGTHS, st.data())
def test_halves_hold_the_same_texts_in_smaller_shapes(lengths: list[int], data: st.DataObject) -> None:
    buckets = Buckets(MAX_TOKENS, BUDGET)
    part = data.draw(st.sampled_from(list(buckets.cover(lengths))))
    if len(part.places) == 1:
        return
    halves = buckets.halves(part, lengths)
    assert tuple(place for half in halves for place in half.places) == part.places
    for half in halves:
        assert half.bucket in buckets.shapes
        assert len(half.places) <= half.bucket.rows
        assert max(lengths[place] for place in half.places) <= half.bucket.tokens
        assert half.bucket.rows <= part.bucket.rows


def test_a_half_that_no_shape_holds_is_split_again() -> None:
    times = ShapeTimes({Bucket(1, 8): 1.0, Bucket(64, 8): math.inf, Bucket(256, 8): math.inf})
    buckets = Buckets(MAX_TOKENS, BUDGET, times=times)
    lengths = [16, *[8] * 199]
    parts = buckets.halves(Part(tuple(range(200)), Bucket(256, 16)), lengths)
    assert [place for part in parts for place in part.places] == list(range(200))
    for part in parts:
        assert part.bucket in buckets.shapes
        assert len(part.places) <= part.bucket.rows


def test_shapes_end_at_the_models_limit_and_at_the_budget() -> None:
    shapes = Buckets(200, 4096).shapes
    assert {shape.tokens for shape in shapes} == {8, 16, 32, 64, 128, 200}
    assert max(shape.size for shape in shapes) <= 4096
    assert (16, 200) in shapes
    assert (64, 200) not in shapes
    assert Buckets(512, 64).shapes[-1] == (1, 512)  # a text alone always has a shape
    assert Buckets(5, 64).shapes == [(1, 5), (4, 5)]


def test_a_smaller_limit_keeps_the_model_and_the_grid() -> None:
    smaller = Buckets(200, 4096, rows=(1, 2)).measured(UNMEASURED, 300)
    assert smaller.max_run_tokens == 300
    assert smaller.shapes == Buckets(200, 300, rows=(1, 2)).shapes


def test_rows_without_a_text_have_one_token() -> None:
    ids = [np.array([5, 6], np.int32), np.array([7], np.int32), np.array([8, 9, 10], np.int32)]
    padded, mask = pad(ids, Part((2, 1), Bucket(4, 4)))
    assert padded.tolist() == [[8, 9, 10, 0], [7, 0, 0, 0], [0] * 4, [0] * 4]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert {str(padded.dtype), str(mask.dtype)} == {"int64"}


class Card:
    """A card whose runs take `seconds` of a clock of its own."""

    def __init__(self, seconds: Callable[[Bucket], float], *, most: int = 1 << 20) -> None:
        self.seconds = seconds
        self.most = most
        self.now_s = 0.0
        self.runs: list[Bucket] = []

    def run(self, shape: Bucket) -> bool:
        self.runs.append(shape)
        # The first run of a shape is slow, because it records a graph.
        self.now_s += self.seconds(shape) * (20 if self.runs.count(shape) == 1 else 1)
        return shape.size <= self.most

    def measure(self, shapes: Sequence[Bucket], limit_s: float) -> ShapeTimes:
        return measure(self.run, shapes, limit_s=limit_s, clock=lambda: self.now_s)


@settings(max_examples=example_count(100), deadline=None)
@given(start_s=st.floats(1e-6, 1e-2), token_s=st.floats(1e-9, 1e-4), limit_s=st.floats(0.0, 2.0))
def test_times_are_measured_within_the_limit_and_otherwise_estimated(
    start_s: float, token_s: float, limit_s: float
) -> None:
    card = Card(lambda shape: start_s + token_s * shape.size)
    shapes = Buckets(512, 16_384).shapes
    times = card.measure(shapes, limit_s)
    assert {Bucket(1, 8), max(shapes, key=lambda shape: (shape.size, shape.tokens))} <= set(times.measured)
    longest_s = 22 * max(card.seconds(shape) for shape in shapes)
    assert card.now_s <= max(limit_s + longest_s, 2 * longest_s)
    for shape in shapes:
        assert times.seconds(shape) == pytest.approx(card.seconds(shape), rel=1e-6)


def test_all_shapes_are_measured_if_time_allows_and_large_ones_that_do_not_fit_are_known() -> None:
    card = Card(lambda shape: 1e-4 + 1e-7 * shape.size, most=4096)
    shapes = Buckets(512, 16_384).shapes
    times = card.measure(shapes, 10.0)
    assert set(times.measured) == set(shapes)
    for shape in shapes:
        assert math.isinf(times.seconds(shape)) is (shape.size > 4096)


def test_a_single_shape_is_enough() -> None:
    times = Card(lambda _: 0.5).measure([Bucket(1, 8)], 0.0)
    assert times.measured == {Bucket(1, 8): 0.5}
    assert times.best_run_tokens() == 8
    assert times.seconds(Bucket(4, 8)) == pytest.approx(2.0)


H100_TOKENS_PER_S = {
    Bucket(1, 8): 20e3,
    Bucket(64, 8): 583e3,
    Bucket(256, 16): 1.70e6,
    Bucket(256, 64): 3.27e6,
    Bucket(64, 256): 2.93e6,
}


def test_the_largest_run_of_an_h100_is_as_large_as_it_may_be() -> None:
    times = ShapeTimes({shape: shape.size / speed for shape, speed in H100_TOKENS_PER_S.items()})
    assert times.best_run_tokens() == 16_384


def test_a_card_that_is_soon_at_its_limit_gets_short_runs() -> None:
    card = Card(lambda shape: 1e-3 + 1e-5 * shape.size)
    shapes = Buckets(512, 16_384).shapes
    times = card.measure(shapes, 100.0)
    most = times.best_run_tokens()
    # The highest speed is 16 384 / 0.16484 s. Runs of 900 tokens reach 90 % of it.
    assert most == min(shape.size for shape in shapes if shape.size >= 900)
