import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.encoders.local.cuda.buckets import Bucket, Buckets, Part, pad

MAX_TOKENS = 200
BUDGET = 4096
LENGTHS = st.lists(st.integers(1, MAX_TOKENS), min_size=1, max_size=120)


@settings(max_examples=example_count(200), deadline=None)
@given(LENGTHS)
def test_every_text_is_in_one_part_of_a_known_shape_that_holds_it(lengths: list[int]) -> None:
    buckets = Buckets(MAX_TOKENS, BUDGET)
    parts = list(buckets.cover(lengths))
    assert sorted(place for part in parts for place in part.places) == list(range(len(lengths)))
    for part in parts:
        assert part.bucket in buckets.shapes
        assert 0 < len(part.places) <= part.bucket.rows
        assert max(lengths[place] for place in part.places) <= part.bucket.tokens
        # Half of the rows are texts, unless what is left fills no smaller shape.
        assert 2 * len(part.places) >= part.bucket.rows


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


def test_shapes_end_at_the_models_limit_and_at_the_budget() -> None:
    shapes = Buckets(200, 4096).shapes
    assert {shape.tokens for shape in shapes} == {8, 16, 32, 64, 128, 200}
    assert max(shape.rows * shape.tokens for shape in shapes) <= 4096
    assert (16, 200) in shapes
    assert (64, 200) not in shapes
    assert Buckets(512, 64).shapes[-1] == (1, 512)  # a text alone always has a shape
    assert Buckets(5, 64).shapes == [(1, 5), (4, 5)]


@pytest.mark.parametrize(
    ("lengths", "shapes"),
    [
        ([3], [(1, 8)]),
        ([3, 3], [(4, 8)]),
        ([3] * 5, [(4, 8), (1, 8)]),
        ([3] * 8, [(16, 8)]),
        ([60, 3, 3, 3, 3], [(1, 64), (4, 8)]),
        ([9, 3, 3, 3], [(1, 16), (4, 8)]),
    ],
)
def test_shapes_are_half_full_at_least(lengths: list[int], shapes: list[Bucket]) -> None:
    assert [part.bucket for part in Buckets(MAX_TOKENS, BUDGET).cover(lengths)] == shapes


def test_rows_without_a_text_have_one_token() -> None:
    ids = [np.array([5, 6], np.int32), np.array([7], np.int32), np.array([8, 9, 10], np.int32)]
    padded, mask = pad(ids, Part((2, 1), Bucket(4, 4)))
    assert padded.tolist() == [[8, 9, 10, 0], [7, 0, 0, 0], [0] * 4, [0] * 4]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert {str(padded.dtype), str(mask.dtype)} == {"int64"}
