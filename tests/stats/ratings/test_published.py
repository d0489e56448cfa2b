"""Ratings held against published ones: by scipy, by hand, and by what must not matter."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr
from tests.stats.ratings.tournaments import tournament
from tests.support.examples import example_count

from gradewire_stats.bootstrap import draws
from gradewire_stats.ratings import Matches, bradley_terry, pair_counts, published_ranks

STRENGTHS = [0.9, 0.1, 0.4, -0.6, -0.8]
PUBLISHED = {"model 0": 1100.0, "model 1": 1080.0, "model 2": 1010.0, "model 4": 900.0, "of nobody": 1.0}


def test_correlations_and_intervals_are_those_of_scipy_over_the_same_draws() -> None:
    matches = tournament(STRENGTHS, instructions=40, seed=4)
    found = published_ranks(matches, PUBLISHED, gap=60, resamples=200, seed=3)
    assert list(found.models) == ["model 0", "model 1", "model 2", "model 4"]
    assert list(found.published) == [1100, 1080, 1010, 900]
    columns = [0, 1, 2, 4]
    ours = bradley_terry(pair_counts(matches)).values[0, columns]
    for name, how in (("spearman", spearmanr), ("kendall", kendalltau), ("pearson", pearsonr)):
        drawn = [
            how(line[columns], found.published)[0]
            for chunk in draws(np.zeros(40, np.intp), resamples=200, seed=3)
            for line in bradley_terry(pair_counts(matches, chunk)).values
        ]
        estimate = getattr(found, name)
        assert estimate.value == pytest.approx(how(ours, found.published)[0])
        assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
        assert estimate.questions == 40


def test_pairs_further_apart_than_the_gap_are_in_the_published_order_or_not() -> None:
    """By hand: 1 and 2 have the wrong order. The gap itself is not enough."""
    rows = [(0, 2, 1), (2, 1, 1), (0, 1, 1), (0, 2, 0), (2, 1, 0), (0, 1, 0), (0, 2, 1), (2, 1, 1), (0, 1, 1)]
    matches = Matches.of(["x", "y", "z"], *np.array(rows).T, np.arange(9) // 3)
    found = published_ranks(matches, {"x": 1100, "y": 1050, "z": 990}, gap=50)
    assert [(pair.higher, pair.lower, pair.apart, pair.is_right) for pair in found.distant] == [
        ("x", "z", 110, True),
        ("y", "z", 60, False),
    ]
    assert found.right.value == 0.5


def test_equal_ratings_have_no_order() -> None:
    matches = Matches.of(["x", "y", "z"], [0, 1, 2], [1, 2, 0], [0.5] * 3, [0, 1, 2])
    found = published_ranks(matches, {"x": 3, "y": 2, "z": 1}, gap=0.5)
    assert not any(pair.is_right for pair in found.distant)
    assert found.right.value == 0
    assert np.isnan(found.spearman.value)


def test_few_models_have_no_correlation_and_none_is_refused() -> None:
    matches = tournament([0.5, -0.5], instructions=10, seed=0)
    found = published_ranks(matches, {"model 0": 5, "model 1": 1}, gap=10)
    assert np.isnan(found.spearman.value)
    assert (found.distant, np.isnan(found.right.value)) == ([], True)
    with pytest.raises(ValueError, match="no model has a published rating"):
        published_ranks(matches, {"other": 1.0}, gap=1)


@settings(max_examples=example_count(20))
@given(
    st.permutations(range(5)),
    st.lists(st.integers(0, 400), min_size=5, max_size=5, unique=True),
    st.floats(0, 200),
    st.integers(-1000, 1000),
)
def test_shift_and_order_of_models_do_not_matter(order: list[int], given_: list[int], gap: float, shift: int) -> None:
    matches = tournament(STRENGTHS, instructions=12, seed=1)
    published = {f"model {number}": float(value) for number, value in enumerate(given_)}
    there = published_ranks(matches, published, gap=gap, resamples=20)
    other = published_ranks(
        matches, {f"model {number}": published[f"model {number}"] + shift for number in order}, gap=gap, resamples=20
    )
    assert other.models == there.models
    assert other.right == there.right or np.isnan(there.right.value)
    assert other.spearman == there.spearman
    pairs = [(one, two) for one, two in itertools.combinations(sorted(given_), 2) if two - one > gap]
    assert len(there.distant) == len(pairs)
