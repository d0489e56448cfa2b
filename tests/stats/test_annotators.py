"""Labels of several annotators: consensus by hand, alpha and kappa against krippendorff and scikit-learn."""

import math
import warnings
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from tests.support.examples import example_count

from gradewire_stats.annotators import (
    LEVELS,
    MAX_COLUMNS,
    alpha_of_draws,
    annotator_agreement,
    kappa_of_draws,
    verdict_agreement,
)
from gradewire_stats.consensus import consensus, ratings_of

NAN = math.nan
LABEL = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.5, -3.0, NAN, NAN])
MATRICES = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.lists(LABEL, min_size=width, max_size=width), min_size=1, max_size=15)
)


def with_weights(matrix: list[list[float]], times: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items with two labels at least, how often each was drawn, and the table that this draw stands for."""
    ratings = np.array(matrix)
    usable = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    weights = np.resize(np.array(times, dtype=float), len(usable))
    return usable, weights[None, :], np.repeat(usable, weights.astype(int), axis=0)


@given(MATRICES, st.lists(st.integers(0, 3), min_size=1, max_size=15))
@settings(max_examples=example_count(60), deadline=None)
def test_alpha_of_a_draw_is_that_of_krippendorff_on_the_drawn_items(
    matrix: list[list[float]], times: list[int]
) -> None:
    usable, weights, drawn = with_weights(matrix, times)
    found = alpha_of_draws(usable, weights)
    for level in LEVELS:
        if len(np.unique(drawn[~np.isnan(drawn)])) < 2:
            assert math.isnan(found[level][0]), "one value only: nothing to agree about"
            continue
        assert found[level][0] == pytest.approx(krippendorff.alpha(drawn.T, level_of_measurement=level), abs=1e-9)


@given(MATRICES, st.lists(st.integers(0, 3), min_size=1, max_size=15))
@settings(max_examples=example_count(60), deadline=None)
def test_kappa_of_a_draw_is_that_of_scikit_learn_on_the_drawn_items(
    matrix: list[list[float]], times: list[int]
) -> None:
    usable, weights, drawn = with_weights(matrix, times)
    found = kappa_of_draws(usable, weights).values()
    for kappa, (first, second) in zip(found, combinations(drawn.T, 2), strict=True):
        both = ~np.isnan(first) & ~np.isnan(second)
        if len(np.unique(np.concatenate([first[both], second[both]]))) < 2:
            assert math.isnan(kappa[0])
            continue
        names = [[f"{label:g}" for label in side[both]] for side in (first, second)]
        assert kappa[0] == pytest.approx(cohen_kappa_score(*names), abs=1e-9)


def test_alpha_of_krippendorffs_own_example() -> None:
    # The table of his 2011 text, four observers and twelve units; he prints .743 nominal, .815 ordinal, .849 interval.
    table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    found = annotator_agreement(np.array(table).T, resamples=200)
    assert {level: round(found.alpha[level].value, 3) for level in LEVELS} == {
        "nominal": 0.743,
        "ordinal": 0.815,
        "interval": 0.849,
    }
    assert (found.items, found.annotators, len(found.pairs)) == (11, 4, 6)
    for each in (*found.alpha.values(), found.pairs[0].kappa):
        assert each.low < each.value < each.high
        assert each.resamples == 200


def test_items_with_fewer_than_two_labels_change_nothing() -> None:
    # Of 10 items 3 lost all labels but one: the figures are those of the 7 that are left.
    random = np.random.default_rng(1)
    ratings = random.integers(0, 3, size=(10, 3)).astype(float)
    ratings[[1, 4, 8], 1:] = NAN
    whole, rest = (
        annotator_agreement(ratings, seed=3),
        annotator_agreement(np.delete(ratings, [1, 4, 8], axis=0), seed=3),
    )
    assert whole == rest
    assert whole.items == 7


@pytest.mark.parametrize(
    "ratings", [np.empty((0, 0)), np.full((4, 3), NAN), np.ones((5, 3)), np.array([[1.0, NAN]] * 3)]
)
def test_labels_without_anything_to_agree_about_are_undefined(ratings: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = annotator_agreement(ratings, resamples=20)
    figures = (*found.alpha.values(), *(pair.kappa for pair in found.pairs))
    assert all(math.isnan(each.value) and math.isnan(each.low) for each in figures)


def test_a_column_filled_only_where_others_differ_hides_nothing_of_the_others() -> None:
    # 100 items, half of them right: the first two differ in 10, on which the third sides with each 5 times.
    first = np.repeat([0.0, 1.0], 50)
    second, third = first.copy(), np.full(100, NAN)
    disputed = [*range(5), *range(50, 55)]
    second[disputed] = 1 - first[disputed]
    third[disputed] = [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    found = annotator_agreement(np.column_stack([first, second, third]), resamples=500)
    assert [(pair.first, pair.second, pair.items) for pair in found.pairs] == [(1, 2, 100), (1, 3, 10), (2, 3, 10)]
    full, of_first, of_second = (pair.kappa for pair in found.pairs)
    # p_o = .9, p_e = .5: .8. In the disputed ten the first says 0 five times and the third four times: p_e = .5, and
    # they agree on 2 + 3 of them, so that p_o = .5 too; the second, always the opposite, agrees on the other five.
    assert full.value == pytest.approx(0.8)
    assert of_first.value == pytest.approx(0)
    assert of_second.value == pytest.approx(0)
    assert 0.6 < full.low < 0.8 < full.high < 1
    assert full.high - full.low < of_first.high - of_first.low


def test_pairs_come_by_their_items_and_those_without_any_not_at_all() -> None:
    # Column 1 shares 12 items with 2 and 3 with 4; 3 shares none with 1 but 20 with 4.
    ratings = np.full((35, 4), NAN)
    ratings[:12, [0, 1]], ratings[12:15, [0, 3]], ratings[15:, [2, 3]] = [0, 1], [1, 1], [0, 0]
    ratings[20:, 2:] = 1
    found = annotator_agreement(ratings, resamples=50)
    assert [(pair.first, pair.second, pair.items) for pair in found.pairs] == [(3, 4, 20), (1, 2, 12), (1, 4, 3)]
    assert [pair.kappa.value for pair in found.pairs] == pytest.approx([1, 0, NAN], nan_ok=True)


def test_kappa_of_very_many_columns_is_not_computed() -> None:
    found = annotator_agreement(np.tile([0.0, 1.0], (5, MAX_COLUMNS)), resamples=5)
    assert not found.pairs
    assert not math.isnan(found.alpha["nominal"].value)


def test_kappa_of_verdicts_with_each_annotator_is_that_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    ratings = random.choice([0.0, 0.5, 1.0, NAN], size=(80, 3))
    verdicts = random.choice([0.0, 1.0, NAN], size=80)
    verdicts[ratings[:, 0] == 1.0] = 1.0
    ratings[:, 2] = NAN
    found = verdict_agreement(verdicts, ratings, resamples=100)
    assert [each.annotator for each in found] == [1, 2]
    for each in found:
        labels = ratings[:, each.annotator - 1]
        both = ~np.isnan(labels) & ~np.isnan(verdicts)
        assert each.items == both.sum()
        assert each.kappa.value == pytest.approx(cohen_kappa_score(labels[both] >= 0.5, verdicts[both] == 1))
        assert each.kappa.low < each.kappa.value < each.kappa.high


def test_kappa_of_verdicts_needs_verdicts_and_labels_from_0_to_1() -> None:
    labels = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert verdict_agreement(np.array([NAN, NAN]), labels) == []
    assert verdict_agreement(np.array([1.0, 0.0]), labels * 5) == []
    assert verdict_agreement(np.array([1.0, 0.0]), np.tile(labels, MAX_COLUMNS)) == []
    assert [math.isnan(each.kappa.value) for each in verdict_agreement(np.ones(2), labels)] == [False, True]


def test_lave_maps_five_annotators_as_its_paper_says_and_others_by_share() -> None:
    five = [[1.0] * right + [0.0] * (5 - right) for right in range(6)]
    assert consensus(np.array(five), "lave").tolist() == [0, 0, 0.5, 0.5, 1, 1]
    # 2/4 and 3/4 lie from 2/5 below 4/5; 8/10 is just 4/5, 4/10 just 2/5; 1/3 is below 2/5.
    others = [[1, 1, 0, 0], [1, 1, 1, 0], [1] * 8 + [0] * 2, [1] * 4 + [0] * 6, [1, 0, 0], [1, 1, NAN], [NAN]]
    found = consensus(ratings_of(others), "lave")
    np.testing.assert_array_equal(found, [0.5, 0.5, 1, 0.5, 0, 1, NAN])


def test_mean_and_majority_leave_missing_labels_out() -> None:
    ratings = ratings_of([[1, 1, 0], [2, 2, 3, NAN], [1, 2, 3], [], [1, 0], [NAN, 4]])
    np.testing.assert_allclose(consensus(ratings, "mean"), [2 / 3, 7 / 3, 2, NAN, 0.5, 4])
    # Equally frequent labels give their mean: three of three, and one of each of two.
    np.testing.assert_array_equal(consensus(ratings, "majority"), [1, 2, 2, NAN, 0.5, 4])


@given(MATRICES)
def test_majority_is_the_most_frequent_label(matrix: list[list[float]]) -> None:
    for given_labels, found in zip(matrix, consensus(np.array(matrix), "majority"), strict=True):
        labels = [label for label in given_labels if not math.isnan(label)]
        most = max((labels.count(label) for label in labels), default=0)
        best = sorted({label for label in labels if labels.count(label) == most})
        assert found == pytest.approx(np.mean(best) if best else NAN, nan_ok=True)


def test_rules_refuse_what_they_are_not_for() -> None:
    with pytest.raises(ValueError, match="Use mean or majority"):
        consensus(np.array([[1.0, 5.0]]), "lave")
    with pytest.raises(ValueError, match="Use mean, majority or lave"):
        consensus(np.array([[1.0]]), "median")
    with pytest.raises(ValueError, match="an item has 1001 labels"):
        ratings_of([[1.0] * 1001])
    assert consensus(np.empty((3, 0)), "mean").tolist() == pytest.approx([NAN] * 3, nan_ok=True)
    assert consensus(np.empty((3, 0)), "majority").tolist() == pytest.approx([NAN] * 3, nan_ok=True)
