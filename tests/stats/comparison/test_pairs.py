"""Consistency and position bias, worked out on paper."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gradewire_stats.comparison import PairedRows, compare_pairs, preferences
from gradewire_stats.comparison.pairs import OrderStatistics, order_statistics

Said = list[dict[str, object]]
WINNERS = st.sampled_from(["a", "b", "tie", None])


def said(a_first: str | None, b_first: str | None) -> Said:
    return [{"first": "a", "winner": a_first}, {"first": "b", "winner": b_first}]


def figures(orders: list[Said]) -> OrderStatistics | None:
    return order_statistics(orders, list(range(len(orders))), [0] * len(orders), resamples=200)


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


RANDOM = np.random.default_rng(5)


def rows_of(scores: np.ndarray, verdicts: np.ndarray | None = None, *, margin: float = 0.2) -> PairedRows:
    verdicts = np.full(scores.shape, math.nan) if verdicts is None else verdicts
    return PairedRows(
        scores={"m": scores},
        verdicts={"m": verdicts},
        empty={"m": np.zeros(scores.shape, dtype=np.bool_)},
        failed={"m": np.isnan(scores)},
        preferred={"m": preferences(scores, verdicts, margin)},
        questions=np.arange(len(scores)),
        strata=np.zeros(len(scores), dtype=np.intp),
    )


def test_means_and_their_difference_are_over_pairs_that_both_scored() -> None:
    scores = np.array([[0.1, 0.4], [0.5, math.nan], [math.nan, 0.9], [0.3, 0.2]])
    found = compare_pairs(rows_of(scores)).metrics["m"]
    assert (found.pairs, found.scored, found.failed) == (4, 2, (1, 1))
    assert (found.baseline.value, found.candidate.value) == pytest.approx((0.2, 0.3))
    assert found.difference.value == pytest.approx(0.1)
    assert math.isnan(found.difference.low)


def test_the_interval_of_the_difference_is_that_of_its_mean() -> None:
    scores = RANDOM.random((400, 2))
    found = compare_pairs(rows_of(scores), resamples=4000).metrics["m"].difference
    apart = scores[:, 1] - scores[:, 0]
    half = 1.96 * apart.std(ddof=1) / math.sqrt(len(apart))
    assert found.value == pytest.approx(apart.mean())
    assert found.low == pytest.approx(apart.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(apart.mean() + half, abs=0.1 * half)


def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs() -> None:
    # 101 right on both, 121 and 59 on one, 33 on neither.
    table = [(1, 1, 101), (1, 0, 121), (0, 1, 59), (0, 0, 33)]
    verdicts = np.array([(a, b) for a, b, times in table for _ in range(times)], dtype=np.float64)
    found = compare_pairs(rows_of(verdicts, verdicts)).metrics["m"].verdicts
    assert found is not None
    assert (found.both, found.only_baseline, found.only_candidate, found.neither) == (101, 121, 59, 33)
    by_hand = 2 * sum(math.comb(180, k) for k in range(60)) / 2**180
    assert found.p_value == pytest.approx(by_hand, rel=1e-9)
    assert found.p_value == pytest.approx(4.434e-6, rel=1e-3)
    assert found.difference.value == pytest.approx((59 - 121) / 314)


def test_shares_of_wins_ties_and_losses_with_their_sign_test() -> None:
    scores = np.array([(0.0, 0.9)] * 14 + [(0.9, 0.0)] * 4 + [(0.5, 0.6)] * 12)
    found = compare_pairs(rows_of(scores), resamples=4000).outcomes["m"]
    assert (found.wins, found.ties, found.losses, found.undecided) == (14, 12, 4, 0)
    assert found.win_share.value == pytest.approx(14 / 30)
    assert found.p_value == pytest.approx(stats.binomtest(14, 18).pvalue)
    half = 1.96 * math.sqrt(14 / 30 * 16 / 30 / 29)
    assert found.win_share.low == pytest.approx(14 / 30 - half, abs=0.03)
    assert found.win_share.high == pytest.approx(14 / 30 + half, abs=0.03)


def test_pairs_without_a_winner_are_counted_beside_the_shares() -> None:
    scores = np.array([(0.0, 0.9), (math.nan, 0.5), (0.5, 0.5)])
    found = compare_pairs(rows_of(scores)).outcomes["m"]
    assert (found.pairs, found.undecided, found.win_share.value) == (2, 1, 0.5)


def test_sides_that_are_alike_differ_by_nothing_and_p_is_one() -> None:
    verdicts = np.tile(RANDOM.integers(0, 2, size=(40, 1)).astype(np.float64), 2)
    found = compare_pairs(rows_of(verdicts, verdicts))
    difference, right = found.metrics["m"].difference, found.metrics["m"].verdicts
    assert (difference.value, difference.low, difference.high, difference.p_value) == (0, 0, 0, 1)
    assert right is not None
    assert (right.p_value, found.outcomes["m"].p_value, found.outcomes["m"].ties) == (1, 1, 40)


def test_without_any_score_figures_are_not_defined() -> None:
    found = compare_pairs(rows_of(np.full((20, 2), math.nan)))
    assert found.metrics["m"].scored == 0
    assert math.isnan(found.metrics["m"].difference.value)
    assert math.isnan(found.outcomes["m"].win_share.value)
    assert math.isnan(found.outcomes["m"].p_value)
    assert found.metrics["m"].verdicts is None


def test_a_question_that_many_rows_ask_weighs_as_many_rows_in_means_and_difference() -> None:
    # 40 rows ask one question, 20 others one each.
    verdicts = np.concatenate([np.tile([[0.0, 1.0]], (40, 1)), np.tile([[1.0, 0.0]], (20, 1))])
    questions = np.concatenate([np.zeros(40, dtype=np.intp), np.arange(1, 21)])
    rows = replace(rows_of(verdicts, verdicts), questions=questions, strata=np.zeros(21, dtype=np.intp))
    found = compare_pairs(rows, resamples=500).metrics["m"]
    right = found.verdicts
    assert right is not None
    for figures in (found, right):
        assert figures.difference.value == pytest.approx((40 - 20) / 60)
        assert figures.difference.value == pytest.approx(figures.candidate.value - figures.baseline.value)
    # The 40 come and go together, so that the 60 pairs tell little.
    assert found.difference.low == pytest.approx(-1)
    assert found.difference.high > 0.5
    assert found.difference.p_value > 0.3


def test_an_empty_answer_counts_as_wrong_beside_the_mean_of_those_that_have_a_score() -> None:
    scores = np.array([[0.8, math.nan], [0.6, 0.7], [math.nan, 0.5], [0.4, math.nan]])
    empty = np.array([[False, True], [False, False], [True, False], [False, False]])
    rows = replace(rows_of(scores), empty={"m": empty}, failed={"m": np.isnan(scores) & ~empty})
    found = compare_pairs(rows).metrics["m"]
    assert (found.scored, found.empty, found.failed) == (1, (1, 1), (0, 1))
    assert found.difference.value == pytest.approx(0.1)
    # The last pair has an answer that failed: what it is worth nobody knows.
    assert found.empty_as_wrong.scored == 3
    assert found.empty_as_wrong.baseline.value == pytest.approx(1.4 / 3)
    assert found.empty_as_wrong.difference.value == pytest.approx(1.2 / 3 - 1.4 / 3)


def test_no_pairs_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="no pairs of answers to compare"):
        compare_pairs(rows_of(np.zeros((0, 2))))


def test_part_of_the_pairs_has_the_figures_of_a_table_of_its_own() -> None:
    scores = RANDOM.random((60, 2))
    rows = PairedRows(
        scores={"m": scores},
        verdicts={"m": np.full((60, 2), math.nan)},
        empty={"m": np.zeros((60, 2), dtype=np.bool_)},
        failed={"m": np.zeros((60, 2), dtype=np.bool_)},
        preferred={"m": preferences(scores, scores, 0.1)},
        questions=np.arange(60) // 2,
        strata=np.repeat([0, 1], 15),
    )
    where = np.arange(10, 50)
    alone = PairedRows(
        scores={"m": scores[where]},
        verdicts={"m": np.full((40, 2), math.nan)},
        empty={"m": np.zeros((40, 2), dtype=np.bool_)},
        failed={"m": np.zeros((40, 2), dtype=np.bool_)},
        preferred={"m": preferences(scores[where], scores[where], 0.1)},
        questions=np.arange(40) // 2,
        strata=np.repeat([0, 1], 10),
    )
    assert str(compare_pairs(rows.at(where), seed=3)) == str(compare_pairs(alone, seed=3))


def test_the_interval_covers_the_difference_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        shared = random.random((60, 1))
        scores = shared + random.normal([0.0, 0.05], 0.2, size=(60, 2))
        found = compare_pairs(rows_of(scores), resamples=400, seed=seed).metrics["m"].difference
        covered += found.low <= 0.05 <= found.high
    assert 180 <= covered <= 198
