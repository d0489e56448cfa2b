"""Which rows are out of order, and which of them are shown."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire.report.worst import worst


def test_wrong_answers_with_high_scores_and_right_ones_with_low_scores_worst_first() -> None:
    scores = np.array([0.9, 0.8, 0.1, 0.2, 0.95, 0.05])
    labels = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    found = worst(scores, labels, most=25)
    assert found["high"].rows.tolist() == [0, 1]
    assert found["low"].rows.tolist() == [2, 3]


def test_a_metric_that_orders_all_rows_rightly_has_none() -> None:
    found = worst(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]), most=25)
    assert [found["high"].total, found["low"].total] == [0, 0]


def test_labels_and_scores_of_any_range_compare_by_rank() -> None:
    # Labels of 0 to 10, scores of 0 to 1000: only the first two are exchanged, and further apart than the others.
    found = worst(np.array([900.0, 1.0, 400.0, 500.0]), np.array([0.0, 10.0, 4.0, 5.0]), most=1)
    assert found["high"].rows.tolist() == [0]
    assert found["low"].rows.tolist() == [1]


def test_the_order_is_by_ranks_where_values_would_say_otherwise() -> None:
    # A metric of 0 to 10 whose scores crowd below 1. Ranks of the scores: 8, 9, 1, 2 to 7; of the labels (one 0, two
    # 0.5, six 1): 1, 2.5, 2.5, 6.5. So row 0 is 7 too high and row 1 is 6.5, though 9.5 lie between its score and
    # its label and only 3 between row 0's. Row 2 is 1.5 too low like row 6, though its values are nearer than row 7's.
    scores = np.array([3.0, 10.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    labels = np.array([0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    found = worst(scores, labels, most=25)
    assert found["high"].rows.tolist() == [0, 1]
    assert found["low"].rows.tolist() == [3, 4, 5, 2, 6, 7, 8]


def test_failed_rows_and_tables_without_a_score_are_left_out() -> None:
    labels = np.array([0.0, 1.0, 1.0])
    assert worst(np.array([np.nan, 0.1, 0.2]), labels, most=5)["high"].total == 0
    assert worst(np.full(3, np.nan), labels, most=5)["low"].total == 0


def test_rows_equally_bad_are_spread_over_the_file() -> None:
    # 100 wrong answers with a match, 1 right answer without: all equally bad.
    scores, labels = np.array([1.0] * 100 + [0.0]), np.array([0.0] * 100 + [1.0])
    found = worst(scores, labels, most=5)["high"]
    assert found.total == 100
    assert found.rows.tolist() == [0, 25, 50, 74, 99]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=30))
def test_out_of_order_means_that_some_row_with_another_label_says_so(pairs: list[tuple[int, int]]) -> None:
    scores, labels = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    found = worst(scores, labels, most=100)
    rows = range(len(pairs))
    high = {i for i in rows if any(labels[j] > labels[i] and scores[j] < scores[i] for j in rows)}
    low = {i for i in rows if any(labels[j] < labels[i] and scores[j] > scores[i] for j in rows)}
    assert set(found["high"].rows.tolist()) == high
    assert set(found["low"].rows.tolist()) == low
