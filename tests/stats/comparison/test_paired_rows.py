import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_stats.comparison.paired_rows import preferences

SCORES = st.one_of(st.just(math.nan), st.floats(0, 1))
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=20)


def columns(rows: list[tuple[float, float]]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_scores_beyond_the_margin_win() -> None:
    scores = columns([(0.1, 0.9), (0.9, 0.1), (0.5, 0.55), (0.4, 0.4), (math.nan, 0.4), (0.4, math.nan)])
    preferred = preferences(scores, np.full((6, 2), math.nan), 0.1)
    np.testing.assert_array_equal(preferred, [1, -1, 0, 0, math.nan, math.nan])


def test_a_difference_as_large_as_the_margin_is_a_tie_whatever_its_rounding() -> None:
    assert 0.5 - 0.3 > 0.2 or 0.8 - 0.6 > 0.2
    scores = columns([(0.3, 0.5), (0.6, 0.8), (0.8, 0.6), (0.7, 0.9)])
    np.testing.assert_array_equal(preferences(scores, scores, 0.2), [0, 0, 0, 0])


def test_verdicts_decide_where_they_are_asked_for() -> None:
    scores = columns([(0.1, 0.9), (0.6, 0.4), (0.6, 0.4)])
    verdicts = columns([(0, 1), (0, 1), (1, math.nan)])
    np.testing.assert_array_equal(preferences(scores, verdicts, "verdict"), [1, 1, math.nan])


@given(PAIRS, st.floats(0, 1))
def test_turned_sides_turn_the_preference(rows: list[tuple[float, float]], margin: float) -> None:
    scores = columns(rows)
    turned = preferences(scores[:, ::-1], scores[:, ::-1], margin)
    np.testing.assert_array_equal(turned, -preferences(scores, scores, margin))


@given(PAIRS, st.floats(0, 1), st.floats(0, 1))
def test_a_wider_margin_makes_ties_and_no_other_winner(
    rows: list[tuple[float, float]], one: float, other: float
) -> None:
    scores = columns(rows)
    narrow, wide = (preferences(scores, scores, margin) for margin in sorted((one, other)))
    assert all(
        right in {0, left} or (math.isnan(right) and math.isnan(left)) for left, right in zip(narrow, wide, strict=True)
    )
