"""Bradley and Terry's strengths: against scipy's optimiser, by hand, and where the wins do not connect the models."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit
from tests.client.ratings.tournaments import drawn_matches, renumbered, swapped, tournament
from tests.support.examples import example_count

from gradewire.agreement.resample import draws
from gradewire.ratings import Matches, bradley_terry, pair_counts


def by_optimiser(matches: Matches, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The maximum of the likelihood of the matches themselves, found by a general optimiser."""
    weights = np.ones(len(matches)) if weights is None else weights

    def loss(free: NDArray[np.float64]) -> float:
        strengths = np.append(free, -free.sum())
        apart = strengths[matches.a] - strengths[matches.b]
        wins = matches.score_a * np.log1p(np.exp(-apart)) + (1 - matches.score_a) * np.log1p(np.exp(apart))
        return float((weights * wins).sum())

    found = minimize(loss, np.zeros(len(matches.models) - 1), method="BFGS", options={"gtol": 1e-9})
    return np.append(found.x, -found.x.sum())


def test_two_models_by_hand() -> None:
    """Three wins of four, a tie counting half: the odds are 3.5 to 0.5."""
    matches = Matches.of(["x", "y"], [0, 0, 1, 0], [1, 1, 0, 1], [1.0, 1.0, 0.0, 0.5], [0, 1, 2, 3])
    found = bradley_terry(pair_counts(matches))
    assert not found.regularised[0]
    assert found.values[0, 0] - found.values[0, 1] == pytest.approx(math.log(3.5 / 0.5))
    points = 400 * math.log10(7)
    assert found.ratings()[0] == pytest.approx([1000 + points / 2, 1000 - points / 2])
    assert found.ratings(anchor=1)[0] == pytest.approx([1000 + points, 1000.0])


def test_strengths_are_those_of_an_optimiser() -> None:
    matches = tournament([1.2, 0.4, 0.0, -0.4, -1.2], instructions=40, seed=2)
    assert bradley_terry(pair_counts(matches)).values[0] == pytest.approx(by_optimiser(matches), abs=1e-4)


def test_draws_are_those_of_an_optimiser() -> None:
    matches = tournament([0.6, 0.0, -0.6], instructions=30, seed=4)
    (chunk,) = draws(np.zeros(30, np.intp), resamples=5, seed=0)
    found = bradley_terry(pair_counts(matches, chunk)).values
    for values, counts in zip(found, chunk, strict=True):
        assert values == pytest.approx(by_optimiser(matches, counts[matches.instructions]), abs=1e-4)


def test_a_model_that_wins_all_is_held_and_said() -> None:
    matches = Matches.of(["x", "y", "z"], [0, 0, 1, 2], [1, 2, 2, 1], [1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3])
    found = bradley_terry(pair_counts(matches))
    assert found.regularised[0]
    assert np.isfinite(found.values[0]).all()
    assert found.values[0, 0] > found.values[0, 1] == pytest.approx(found.values[0, 2])


def test_models_that_never_met_are_held_and_said() -> None:
    """Two pairs apart: each has its own order, and nothing tells one pair from the other."""
    matches = Matches.of(list("wxyz"), [0, 1, 0, 2, 3, 2], [1, 0, 1, 3, 2, 3], [1.0] * 6, [0, 1, 2, 3, 4, 5])
    found = bradley_terry(pair_counts(matches))
    assert found.regularised[0]
    assert found.values[0, 0] == pytest.approx(found.values[0, 2])
    assert found.values[0, 1] == pytest.approx(found.values[0, 3])


def test_a_model_without_a_match_has_no_strength() -> None:
    matches = Matches.of(["x", "y", "away"], [0, 1], [1, 0], [1.0, 1.0], [0, 1])
    found = bradley_terry(pair_counts(matches))
    assert found.values[0, :2] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert np.isnan(found.values[0, 2])
    assert not found.regularised[0]


@pytest.mark.parametrize("ratio", [1, 1000, 1_000_000])
def test_far_apart_strengths_are_found(ratio: int) -> None:
    counts = pair_counts(Matches.of(["x", "y"], [0, 1], [1, 0], [1.0, 1.0], [0, 1]), np.array([[float(ratio), 1.0]]))
    values = bradley_terry(counts).values[0]
    assert values[0] - values[1] == pytest.approx(math.log(ratio), abs=1e-3)


@settings(max_examples=example_count(60))
@given(drawn_matches(), st.permutations(range(4)))
def test_names_do_not_matter(matches: Matches, numbers: list[int]) -> None:
    there = bradley_terry(pair_counts(matches))
    other = bradley_terry(pair_counts(renumbered(matches, numbers)))
    assert other.values[0][numbers] == pytest.approx(there.values[0], abs=1e-5, nan_ok=True)
    assert other.regularised == there.regularised


@settings(max_examples=example_count(60))
@given(drawn_matches(), st.data())
def test_sides_do_not_matter(matches: Matches, data: st.DataObject) -> None:
    sides = data.draw(st.lists(st.booleans(), min_size=len(matches), max_size=len(matches)))
    there = bradley_terry(pair_counts(matches)).values
    assert bradley_terry(pair_counts(swapped(matches, sides))).values == pytest.approx(there, abs=1e-9, nan_ok=True)


@settings(max_examples=example_count(60))
@given(drawn_matches())
def test_every_table_has_a_maximum_and_points_are_explained(matches: Matches) -> None:
    counts = pair_counts(matches)
    found = bradley_terry(counts)
    played = counts.played[0]
    assert np.isfinite(found.values[0][played]).all()
    if not found.regularised[0]:
        values = np.nan_to_num(found.values[0])
        points = counts.points[0]
        expected = (points + points.T) / (1 + np.exp(values[None, :] - values[:, None]))
        assert expected.sum(axis=1) == pytest.approx(points.sum(axis=1), abs=1e-6)


@pytest.mark.parametrize("wins", [1, 12, 80])
def test_what_wins_do_not_connect_has_half_a_win_and_half_a_loss_more(wins: int) -> None:
    matches = Matches.of(["x", "y"], [0] * wins, [1] * wins, [1.0] * wins, range(wins))
    apart = brentq(lambda d: wins * (1 - expit(d)) + 0.5 - expit(d / 2), 0.0, 50.0)
    found = bradley_terry(pair_counts(matches)).values[0]
    assert found[0] - found[1] == pytest.approx(apart, abs=1e-6)
