"""Which pairs are judged next: near opponents, many instructions, never a pair twice, the same by the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count

from gradewire_stats.ratings import ChosenPair, Matches, PairCounts, PairPool, bradley_terry, next_pairs, pair_counts

KEYS = [f"q{number}" for number in range(30)]
POOL = PairPool(4, {key: range(4) for key in KEYS})


def outcome(judged: list[ChosenPair], *, models: int = 4) -> Matches:
    """The lower number wins three times of four."""
    return Matches.of(
        [str(number) for number in range(models)],
        [pair.first for pair in judged],
        [pair.second for pair in judged],
        [float(number % 4 != 0) for number, _ in enumerate(judged)],
        [KEYS.index(pair.instruction) for pair in judged],
    )


def test_a_new_model_meets_others_and_old_pairs_are_left_alone() -> None:
    old = [pair for pair in POOL.all_pairs() if pair.second < 3]
    chosen = next_pairs(POOL, old, pair_counts(outcome(old)), uncertain=[3], at_most=30, seed=0)
    assert len(chosen) == 30
    assert all(pair.second == 3 for pair in chosen)
    assert len({pair.instruction for pair in chosen}) == 30, "each on another instruction, while there are others"


def test_near_opponents_are_met_most() -> None:
    """A model that is known to be the weakest learns little from losing to the best, whom everybody knows."""
    strengths = np.array([3.0, 0.0, 0.0, 0.0])
    points = 500 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    points[:, 3] /= 100
    points[3, :] /= 100
    np.fill_diagonal(points, 0.0)
    pool = PairPool(4, {f"further {number}": range(4) for number in range(60)})
    chosen = next_pairs(pool, [], PairCounts(points[None], np.zeros((1, 4, 4))), uncertain=[3], at_most=60, seed=0)
    met = [pair.first for pair in chosen]
    assert all(pair.second == 3 for pair in chosen)
    assert met.count(0) < min(met.count(1), met.count(2)) / 4


def test_chosen_pairs_tell_more_than_all_in_turn() -> None:
    """The variance that the model's information leaves, by hand, after as many pairs of either kind."""
    strengths = np.linspace(2, -2, 6)
    expected = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    points = np.where(np.arange(6)[:, None] == np.arange(6), 0.0, 40 * expected)
    points[5, :], points[:, 5] = points[5, :] / 40, points[:, 5] / 40
    pool = PairPool(6, {f"further {number}": range(6) for number in range(40)})
    chosen = next_pairs(pool, [], PairCounts(points[None], np.zeros((1, 6, 6))), uncertain=[5], at_most=40, seed=0)
    in_turn = [ChosenPair("", other, 5) for _ in range(8) for other in range(5)]

    def left(pairs: list[ChosenPair]) -> float:
        met = points + points.T
        for pair in pairs:
            met[pair.first, pair.second] += 1
            met[pair.second, pair.first] += 1
        bend = met * expected * (1 - expected)
        return float(np.linalg.pinv(np.diag(bend.sum(axis=1)) - bend)[5, 5])

    assert left(chosen) < 0.75 * left(in_turn)


def test_the_end_of_the_pairs_is_the_end() -> None:
    chosen = next_pairs(POOL, [], pair_counts(outcome([])), uncertain=range(4), at_most=1000, seed=0)
    assert sorted(chosen) == sorted(POOL.all_pairs())
    assert POOL.pairs == len(chosen) == 180
    assert next_pairs(POOL, chosen, pair_counts(outcome(chosen)), uncertain=[0], at_most=5, seed=0) == []


def test_instructions_that_lack_an_answer_are_not_asked_for_it() -> None:
    pool = PairPool(3, {"both": [0, 1], "all": [0, 1, 2], "one": [2]})
    chosen = next_pairs(pool, [], pair_counts(outcome([], models=3)), uncertain=range(3), at_most=99, seed=0)
    assert sorted(chosen) == [
        ChosenPair("all", 0, 1),
        ChosenPair("all", 0, 2),
        ChosenPair("all", 1, 2),
        ChosenPair("both", 0, 1),
    ]


@settings(max_examples=example_count(20))
@given(st.integers(0, 5), st.integers(0, 60), st.integers(1, 40))
def test_the_same_again_and_none_twice(seed: int, before: int, at_most: int) -> None:
    judged = POOL.all_pairs()[:before]
    again = [
        next_pairs(POOL, known, pair_counts(outcome(judged)), uncertain=range(4), at_most=at_most, seed=seed)
        for known in (judged, set(judged))
    ]
    assert again[0] == again[1]
    assert len(set(again[0])) == len(again[0]) <= at_most
    assert not set(again[0]) & set(judged)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_pair_is_the_one_that_takes_most_off_the_wanted_variance(seed: int) -> None:
    """Every pair tried in turn: the variance about the mean, with the information of one match with an equal each."""
    random = np.random.default_rng(seed)
    points = random.integers(1, 30, size=(4, 4)) * (1 - np.eye(4))
    counts = PairCounts(points[None], np.zeros((1, 4, 4)))
    strengths = bradley_terry(counts).values[0]
    expected = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))

    def left(met: NDArray[np.float64]) -> float:
        bend = met * expected * (1 - expected)
        variances = np.linalg.inv(np.diag(bend.sum(axis=1) + 0.25) - bend)
        about_mean = np.eye(4) - 1 / 4
        return float((about_mean @ variances @ about_mean.T)[3, 3] + (about_mean @ variances @ about_mean.T)[0, 0])

    def with_one_more(one: int, other: int) -> float:
        more = points + points.T
        more[one, other] += 1
        more[other, one] += 1
        return left(more)

    every = [(one, other) for one in range(4) for other in range(one + 1, 4)]
    (chosen,) = next_pairs(POOL, [], counts, uncertain=[0, 3], at_most=1, seed=0)
    assert (chosen.first, chosen.second) == min(every, key=lambda pair: with_one_more(*pair))
