"""Consistency and position bias, worked out on paper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.comparison.order_figures import OrderFigures, order_figures

Said = list[dict[str, object]]
WINNERS = st.sampled_from(["a", "b", "tie", None])


def said(a_first: str | None, b_first: str | None) -> Said:
    return [{"first": "a", "winner": a_first}, {"first": "b", "winner": b_first}]


def figures(orders: list[Said]) -> OrderFigures | None:
    return order_figures(orders, list(range(len(orders))), [0] * len(orders), resamples=200)


def test_by_hand() -> None:
    # Agree: 1, 0, 1, 0 of four. Leaning: (1, -1), (1, 1), (0, 0), (1, 0).
    found = figures([said("a", "a"), said("a", "b"), said("tie", "tie"), said("a", "tie")])
    assert found is not None
    assert (found.pairs, found.consistent) == (4, 2)
    assert found.consistency.value == pytest.approx(0.5)
    assert found.position_bias.value == pytest.approx((0 + 1 + 0 + 0.5) / 4)


def test_pairs_without_both_orders_do_not_count() -> None:
    found = figures([said("a", "a"), said("a", None), []])
    assert found is not None
    assert (found.pairs, found.consistent) == (1, 1)
    assert figures([said(None, "a"), []]) is None


def test_intervals_need_some_questions() -> None:
    found = figures([said("a", "b")] * 10 + [said("a", "a")] * 10)
    assert found is not None
    assert 0.2 < found.consistency.low < 0.5 < found.consistency.high < 0.8
    few = figures([said("a", "b")] * 3)
    assert few is not None
    assert few.consistency.bare


@given(st.lists(st.tuples(WINNERS, WINNERS), min_size=1, max_size=20))
def test_answers_that_change_places_change_neither_figure(winners: list[tuple[str | None, str | None]]) -> None:
    swapped = {"a": "b", "b": "a", "tie": "tie", None: None}
    found = figures([said(*each) for each in winners])
    other = figures([said(swapped[second], swapped[first]) for first, second in winners])
    assert (found is None) == (other is None)
    if found is not None and other is not None:
        assert found.consistency.value == pytest.approx(other.consistency.value)
        assert found.position_bias.value == pytest.approx(other.position_bias.value)


@given(st.lists(WINNERS, min_size=1, max_size=20))
def test_an_unbiased_judge_that_agrees_with_itself_has_no_bias(winners: list[str | None]) -> None:
    found = figures([said(each, each) for each in winners])
    if found is not None:
        assert found.consistency.value == 1.0
        assert found.position_bias.value == pytest.approx(0.0)
