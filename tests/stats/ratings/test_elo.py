"""Elo: against a plain loop over the same order, by hand, and by what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.ratings.tournaments import drawn_matches, renumbered, swapped, tournament
from tests.support.examples import example_count

from gradewire_stats.bootstrap import draws
from gradewire_stats.ratings import Matches, RatingScale, elo_draws, elo_ratings


def plain_elo(matches: Matches, order: list[int]) -> list[float]:
    """The definition, one match after the other, in plain numbers."""
    ratings = [1000.0] * len(matches.models)
    for number in order:
        a, b, score = int(matches.a[number]), int(matches.b[number]), float(matches.score_a[number])
        expected_a = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        expected_b = 1 / (1 + 10 ** ((ratings[a] - ratings[b]) / 400))
        ratings[a], ratings[b] = ratings[a] + 4 * (score - expected_a), ratings[b] + 4 * (1 - score - expected_b)
    return ratings


def test_one_match_by_hand() -> None:
    """Equals meet: the winner gains half of K."""
    assert elo_ratings(Matches.of(["x", "y", "z"], [0], [1], [1.0], [0])).tolist()[:2] == [1002.0, 998.0]
    assert np.isnan(elo_ratings(Matches.of(["x", "y", "z"], [0], [1], [1.0], [0]))[2]), "z never played"
    assert elo_ratings(Matches.of(["x", "y"], [0], [1], [0.5], [0])).tolist() == [1000.0, 1000.0]


def test_a_pass_is_that_of_a_plain_loop_over_the_seeds_order() -> None:
    matches = tournament([0.8, 0.1, -0.2, -0.7], instructions=60, seed=3)
    for seed in (0, 7):
        order = np.random.default_rng([seed, 1]).permutation(len(matches)).tolist()
        assert elo_ratings(matches, seed=seed) == pytest.approx(plain_elo(matches, order), abs=1e-9)


def test_draws_are_those_of_a_plain_loop() -> None:
    matches = tournament([0.5, 0.0, -0.5], instructions=25, seed=1)
    chunks = list(draws(np.zeros(25, np.intp), resamples=7, seed=2))
    random = np.random.default_rng([5, 1])
    expected = []
    for counts in np.concatenate(chunks):
        taken = [number for number in range(len(matches)) for _ in range(int(counts[matches.instructions[number]]))]
        expected.append(plain_elo(matches, random.permutation(np.array(taken, dtype=np.int32)).tolist()))
    assert elo_draws(matches, chunks, seed=5) == pytest.approx(np.array(expected), abs=1e-9)


def test_draws_do_not_depend_on_how_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = tournament([0.5, 0.0, -0.5], instructions=12, seed=1)
    (chunk,) = draws(np.zeros(12, np.intp), resamples=9, seed=0)
    at_once = elo_draws(matches, [chunk], seed=1)
    assert np.array_equal(at_once, elo_draws(matches, [chunk[:4], chunk[4:]], seed=1))
    monkeypatch.setattr("gradewire_stats.ratings.elo._STEPS_AT_A_TIME", 50)
    assert np.array_equal(at_once, elo_draws(matches, [chunk], seed=1))
    assert elo_draws(matches, []).shape == (0, 3)


def test_points_are_kept() -> None:
    matches = tournament([1.0, 0.3, -0.4, -1.5], instructions=40, seed=9)
    assert elo_ratings(matches).mean() == pytest.approx(1000.0)


@settings(max_examples=example_count(60))
@given(drawn_matches(), st.permutations(range(4)), st.integers(0, 3))
def test_names_do_not_matter(matches: Matches, numbers: list[int], seed: int) -> None:
    there = elo_ratings(matches, seed=seed)
    assert elo_ratings(renumbered(matches, numbers), seed=seed)[numbers] == pytest.approx(there, nan_ok=True)


@settings(max_examples=example_count(60))
@given(drawn_matches(), st.data())
def test_sides_do_not_matter(matches: Matches, data: st.DataObject) -> None:
    sides = data.draw(st.lists(st.booleans(), min_size=len(matches), max_size=len(matches)))
    assert elo_ratings(swapped(matches, sides)) == pytest.approx(elo_ratings(matches), nan_ok=True)


@settings(max_examples=example_count(20))
@given(
    st.floats(0.5, 64), st.floats(50, 2000), st.floats(-500, 3000), drawn_matches(models=3), st.integers(0, 2**32 - 1)
)
def test_k_scale_and_start_are_those_of_the_definition(
    k: float, points: float, start: float, matches: Matches, seed: int
) -> None:
    order = np.random.default_rng([seed, 1]).permutation(len(matches)).tolist()
    ratings = [start] * len(matches.models)
    for number in order:
        a, b, score = int(matches.a[number]), int(matches.b[number]), float(matches.score_a[number])
        moved = k * (score - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / points)))
        ratings[a], ratings[b] = ratings[a] + moved, ratings[b] - moved
    found = elo_ratings(matches, scale=RatingScale(k, points, start), seed=seed)
    there = ~np.isnan(found)
    assert found[there] == pytest.approx(np.array(ratings)[there], rel=1e-9, abs=1e-6)
    (drawn,) = elo_draws(
        matches, [np.ones((1, matches.instruction_count))], scale=RatingScale(k, points, start), seed=seed
    )
    assert np.nansum(drawn) == pytest.approx(start * there.sum(), rel=1e-9, abs=1e-6), "points are only exchanged"


@pytest.mark.parametrize("scale", [(0, 400, 1000), (4, -1, 1000), (4, 400, float("inf")), (float("nan"), 400, 0)])
def test_a_scale_without_a_meaning_is_refused(scale: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        RatingScale(*scale)
