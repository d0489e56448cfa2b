"""Position and length bias: by hand, and with an interval that knows its instructions."""

import math

import numpy as np
import pytest
from tests.client.ratings.tournaments import swapped, tournament

from gradewire.agreement.resample import draws
from gradewire.ratings import Matches, length_bias, position_bias


def test_by_hand() -> None:
    matches = Matches.of(
        ["x", "y"],
        [0, 0, 0, 1, 1],
        [1, 1, 1, 0, 0],
        [1.0, 0.0, 0.5, 1.0, 0.0],
        range(5),
        shown_first=[1, 1, 1, -1, 0],
        words=[(5, 1), (5, 1), (5, 1), (2, 2), (math.nan, 3)],
        weights=[1.0, 0.5, 1.0, 1.0, 1.0],
    )
    position = position_bias(matches)
    assert position.matches == 2.5, "no tie, and none whose order is not known"
    assert position.won.value == pytest.approx(1 / 2.5)
    length = length_bias(matches)
    assert length.matches == 1.5, "no tie, none of equal length, and none whose length is not known"
    assert length.won.value == pytest.approx(1 / 1.5)
    assert length.won.bare


def test_a_bias_is_found_and_none_where_there_is_none() -> None:
    biased = position_bias(tournament([0.2, -0.2], instructions=400, seed=0, first=0.8)).won
    assert biased.low > 0.5
    matches = tournament([0.2, -0.2], instructions=400, seed=0, first=0.8)
    fair = position_bias(swapped(matches, [number % 2 == 0 for number in range(400)]))
    assert fair.won == biased, "who is called A does not matter"
    assert math.isnan(length_bias(matches).won.value)
    assert length_bias(matches).matches == 0


def test_the_interval_is_that_of_shares_in_draws_of_unequal_instructions() -> None:
    """A draw of instructions with many matches has more of them: the share is of its own matches."""
    random = np.random.default_rng(0)
    of = np.repeat(np.arange(40), random.integers(1, 9, size=40))
    won = (random.random(len(of)) < 0.6).astype(float)
    matches = Matches.of(["x", "y"], [0] * len(of), [1] * len(of), won, of, shown_first=[1] * len(of))
    found = position_bias(matches, resamples=400, seed=3).won
    counts = np.concatenate(list(draws(np.zeros(40, np.intp), resamples=400, seed=3)))
    shares = [np.average(won, weights=drawn[of]) for drawn in counts]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])))
