"""Weighted statistics of a draw equal scipy's on the table that the draw stands for."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support.examples import example_count

from gradewire_stats.agreement import ranks
from gradewire_stats.agreement.rows import right
from gradewire_stats.agreement.statistics import auc

VALUES = st.sampled_from([0.0, 0.1, 0.25, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0])
TABLES = st.lists(st.tuples(VALUES, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 3)), min_size=1, max_size=25)


def columns(table: list[tuple[float, float, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y, times = (np.array(column, dtype=float) for column in zip(*table, strict=True))
    return x, y, times


def same(ours: float, theirs: float) -> bool:
    return (math.isnan(ours) and math.isnan(theirs)) or math.isclose(ours, theirs, abs_tol=1e-9)


@given(TABLES)
@settings(max_examples=example_count(100))
def test_every_statistic_of_a_draw_equals_scipy_on_the_repeated_rows(table: list[tuple[float, float, int]]) -> None:
    x, y, times = columns(table)
    drawn_x, drawn_y = np.repeat(x, times.astype(int)), np.repeat(y, times.astype(int))
    varied = len(drawn_x) > 1 and np.ptp(drawn_x) > 0 and np.ptp(drawn_y) > 0
    expected = {
        "spearman": stats.spearmanr(drawn_x, drawn_y).statistic if varied else math.nan,
        "kendall": stats.kendalltau(drawn_x, drawn_y).statistic if varied else math.nan,
    }
    order_x, order_y = ranks.Ordering.of(x), ranks.Ordering.of(y)
    draws = times[None, :]
    assert same(ranks.spearman(draws, order_x, order_y)[0], expected["spearman"])
    assert same(ranks.kendall(draws, order_x, order_y)[0], expected["kendall"])
    assert same(ranks.two_labels(draws, order_x, y >= 0.5)["auc"][0], auc(drawn_x, drawn_y >= 0.5))
    upper = y >= 0.5
    together = ranks.two_labels(draws, order_x, upper)
    drawn_upper = np.repeat(upper, times.astype(int))
    varied = len(drawn_x) > 1 and np.ptp(drawn_x) > 0 and len(set(drawn_upper)) == 2
    assert same(together["auc"][0], auc(drawn_x, drawn_upper))
    assert same(together["spearman"][0], stats.spearmanr(drawn_x, drawn_upper).statistic if varied else math.nan)
    assert same(together["kendall"][0], stats.kendalltau(drawn_x, drawn_upper).statistic if varied else math.nan)


@given(TABLES)
def test_area_under_the_curve_equals_the_share_of_ordered_pairs(table: list[tuple[float, float, int]]) -> None:
    x, y, _ = columns(table)
    pairs = [(a > b) + (a == b) / 2 for a in x[y >= 0.5] for b in x[y < 0.5]]
    assert same(auc(x, y >= 0.5), sum(pairs) / len(pairs) if pairs else math.nan)


def test_equal_scores_have_an_area_of_one_half_in_every_draw() -> None:
    order, draws = ranks.Ordering.of(np.zeros(40)), np.arange(120.0).reshape(3, 40) % 3
    positive = np.arange(40) % 5 > 0
    assert ranks.two_labels(draws, order, positive)["auc"].tolist() == [0.5] * 3


def test_draws_do_not_touch_each_other() -> None:
    order, labels = (
        ranks.Ordering.of(np.array([0.3, 0.1, 0.9, 0.5])),
        ranks.Ordering.of(np.array([0.0, 0, 1, 1])),
    )
    draws = np.array([[1.0, 1, 1, 1], [2, 0, 1, 1], [1, 1, 0, 0]])
    for statistic in (ranks.spearman, ranks.kendall):
        together = statistic(draws, order, labels)
        alone = [statistic(draw[None, :], order, labels)[0] for draw in draws]
        np.testing.assert_allclose(together, alone, equal_nan=True)
        assert math.isnan(together[2]), "labels of the third draw are all alike"


def test_labels_beyond_one_are_neither_right_nor_wrong() -> None:
    assert right(np.array([1.0, 5.0])) is None


def test_one_class_has_no_auc() -> None:
    assert math.isnan(auc(np.array([0.1, 0.9]), np.array([True, True])))
