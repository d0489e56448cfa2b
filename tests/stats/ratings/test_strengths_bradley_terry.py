"""Strengths with length and position held fixed: known effects are found, and none is found where there is none."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit
from tests.stats.ratings.tournaments import drawn_matches, renumbered, swapped, tournament
from tests.support.examples import example_count

from gradewire_stats.bootstrap import draws
from gradewire_stats.ratings import Matches, NotIdentifiedError, bradley_terry, controlled_fit, pair_counts
from gradewire_stats.ratings.strengths import length_difference


def wordy(seed: int = 0, *, effect: float = 0.8) -> Matches:
    """Two equal models and a weaker one; the second writes twice as much, which alone makes it win."""
    random = np.random.default_rng(seed)
    strengths, lengths = np.array([0.3, 0.3, -0.6]), np.array([40.0, 80.0, 40.0])
    rows = []
    for instruction in range(700):
        for one, other in ((0, 1), (0, 2), (1, 2)):
            a, b = (one, other) if random.random() < 0.5 else (other, one)
            words = lengths[[a, b]] * random.uniform(0.5, 1.5, size=2)
            pull = effect * (words[0] - words[1]) / words.sum() / 0.4
            wins = random.random() < 1 / (1 + np.exp(strengths[b] - strengths[a] - pull))
            rows.append((a, b, float(wins), instruction, tuple(words)))
    a, b, score, of, words = zip(*rows, strict=True)
    return Matches.of(["brief", "wordy", "weak"], a, b, score, of, words=words)


def test_length_that_makes_a_model_win_is_taken_out() -> None:
    matches = wordy()
    plain = bradley_terry(pair_counts(matches)).ratings()[0]
    fit = controlled_fit(matches, ["length"])
    assert plain[1] - plain[0] > 80, "it wins by its words"
    assert fit.ratings[0, 1] == pytest.approx(fit.ratings[0, 0], abs=45)
    assert fit.ratings[0, 0] - fit.ratings[0, 2] == pytest.approx(0.9 * 400 / np.log(10), abs=45)
    assert fit.effects[0, 0] > 0.5
    assert fit.ratings[0].mean() == pytest.approx(1000)


def test_position_is_found_and_does_not_move_ratings_where_sides_are_drawn() -> None:
    matches = tournament([0.7, 0.0, -0.7], instructions=800, seed=5, ties=0.0, first=0.5)
    fit = controlled_fit(matches, ["position"])
    assert fit.effects[0, 0] == pytest.approx(0.5, abs=0.12)
    assert fit.ratings[0, 0] - fit.ratings[0, 2] == pytest.approx(1.4 * 400 / np.log(10), abs=30)


def test_the_fit_is_that_of_an_optimiser() -> None:
    matches = wordy(seed=3)
    length = length_difference(matches)
    fit = controlled_fit(matches, ["length"], [np.ones((1, 700)), 2 * np.ones((1, 700))], anchor=0)

    def loss(free: np.ndarray) -> float:
        strengths = np.array([0.0, *free[:2]])
        apart = strengths[matches.a] - strengths[matches.b] + free[2] * length
        return float(
            (matches.score_a * np.log1p(np.exp(-apart)) + (1 - matches.score_a) * np.log1p(np.exp(apart))).sum()
        )

    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    assert fit.ratings[0] == pytest.approx([1000, *(1000 + found[:2] * 400 / np.log(10))], abs=0.05)
    assert fit.effects[0, 0] == pytest.approx(found[2], abs=1e-4)
    assert fit.ratings[1] == pytest.approx(fit.ratings[0])
    assert fit.ratings[2] == pytest.approx(fit.ratings[0]), "a sample twice over has the same maximum"


def test_draws_that_lack_a_model_leave_it_undefined() -> None:
    rows = [(0, 1, 1), (1, 0, 1), (0, 1, 1), (1, 0, 0), (0, 1, 0), (1, 0, 1), (0, 2, 1), (2, 0, 1)]
    matches = Matches.of(["x", "y", "z"], *np.array([(*row, 2 in row[:2]) for row in rows]).T, shown_first=[1] * 8)
    (ratings,) = controlled_fit(matches, ["position"], [np.array([[1.0, 0.0]])]).ratings[1:]
    assert np.isnan(ratings[2])
    assert ratings[:2].mean() == pytest.approx(1000)


def test_what_the_matches_cannot_tell_is_refused() -> None:
    unknown = tournament([0.5, 0.0], instructions=5, seed=0)
    for control in ("length", "position"):
        with pytest.raises(NotIdentifiedError, match=f"{control} is unknown"):
            controlled_fit(unknown, [control])
    one_sided = Matches.of(["x", "y"], [0] * 4, [1] * 4, [1, 0, 1, 1], range(4), shown_first=[1] * 4)
    with pytest.raises(NotIdentifiedError, match="depends on the models"):
        controlled_fit(one_sided, ["position"])
    first_wins = Matches.of(["x", "y"], [0, 1] * 3, [1, 0] * 3, [1] * 6, range(6), shown_first=[1] * 6)
    with pytest.raises(NotIdentifiedError, match="do not bound the effect"):
        controlled_fit(first_wins, ["position"])


@settings(max_examples=example_count(25))
@given(st.integers(0, 2**32 - 1))
def test_sides_do_not_matter(seed: int) -> None:
    matches = tournament([0.7, 0.0, -0.7], instructions=30, seed=5, first=0.5)
    sides = np.random.default_rng(seed).random(len(matches)) < 0.5
    there = controlled_fit(matches, ["position"])
    other = controlled_fit(swapped(matches, sides.tolist()), ["position"])
    assert other.ratings == pytest.approx(there.ratings, abs=1e-4)
    assert other.effects == pytest.approx(there.effects, abs=1e-6)


def test_intervals_of_draws_hold_the_effect() -> None:
    matches = tournament([0.4, -0.4], instructions=300, seed=8, first=0.6)
    fit = controlled_fit(matches, ["position"], draws(np.zeros(300, np.intp), resamples=200, seed=0))
    low, high = np.quantile(fit.effects[1:, 0], [0.025, 0.975])
    assert low < fit.effects[0, 0] < high
    assert high - low < 1.2


def test_a_unit_of_length_is_its_root_mean_square() -> None:
    matches = wordy(seed=1)
    relative = (matches.words[:, 0] - matches.words[:, 1]) / matches.words.sum(axis=1)
    found = length_difference(matches)
    assert np.sqrt((found**2).mean()) == pytest.approx(1.0)
    assert found == pytest.approx(relative / np.sqrt((relative**2).mean()))


def test_a_model_without_a_match_moves_no_mean() -> None:
    matches = tournament([0.7, 0.0, -0.7], instructions=60, seed=5, first=0.5)
    with_more = Matches.of(
        [*matches.models, "away"],
        matches.a,
        matches.b,
        matches.score_a,
        matches.instructions,
        shown_first=matches.shown_first,
    )
    found = controlled_fit(with_more, ["position"]).ratings[0]
    assert found[:3] == pytest.approx(controlled_fit(matches, ["position"]).ratings[0])
    assert np.isnan(found[3])


def test_what_wins_do_not_connect_is_held_as_without_controls() -> None:
    """Sides are balanced, so that position has no effect and the fit is that of Bradley and Terry."""
    rows = [(0, 1, 1.0), (1, 0, 0.0)] * 20
    a, b, score = zip(*rows, strict=True)
    matches = Matches.of(["x", "y"], a, b, score, range(40), shown_first=[1] * 40)
    fit = controlled_fit(matches, ["position"])
    assert fit.regularised
    assert fit.effects[0, 0] == pytest.approx(0.0, abs=1e-6)
    assert fit.ratings[0] == pytest.approx(bradley_terry(pair_counts(matches)).ratings()[0], abs=1e-3)


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
def test_sides_do_not_matter_maximum_likelihood(matches: Matches, data: st.DataObject) -> None:
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


def judged_by_two(effect: float, *, instructions: int = 500) -> Matches:
    """Four models by two judges; the first judge is of the family of models 0 and 1, the second of no family."""
    random = np.random.default_rng(11)
    strengths = [0.4, -0.2, 0.3, -0.5]
    rows = []
    for instruction in range(instructions):
        for (a, b), judge in itertools.product(itertools.combinations(range(4), 2), (0, 1)):
            own = 0 if judge else (a < 2) - (b < 2)
            wins = random.random() < 1 / (1 + np.exp(strengths[b] - strengths[a] - effect * own))
            rows.append((a, b, float(wins), instruction, own))
    a, b, score, of, own = zip(*rows, strict=True)
    return Matches.of(["own 1", "own 2", "other 1", "other 2"], a, b, score, of, own_family=own)


def test_a_judges_preference_for_its_family_is_found_and_taken_out() -> None:
    matches = judged_by_two(0.7)
    fit = controlled_fit(matches, ["own-family"])

    def loss(free: np.ndarray) -> float:
        strengths = np.append(free[:3], -free[:3].sum())
        apart = strengths[matches.a] - strengths[matches.b] + free[3] * matches.own_family
        return float(
            (matches.score_a * np.log1p(np.exp(-apart)) + (1 - matches.score_a) * np.log1p(np.exp(apart))).sum()
        )

    found = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    assert fit.effects[0, 0] == pytest.approx(found[3], abs=1e-4)
    assert fit.effects[0, 0] == pytest.approx(0.7, abs=0.15)
    assert fit.ratings[0, :3] == pytest.approx(1000 + found[:3] * 400 / np.log(10), abs=0.05)
    plain = bradley_terry(pair_counts(matches)).ratings()[0]
    assert plain[0] - plain[2] > fit.ratings[0, 0] - fit.ratings[0, 2] + 30, "the judge lifts its own models"
    assert controlled_fit(judged_by_two(0.0), ["own-family"]).effects[0, 0] == pytest.approx(0.0, abs=0.15)


def test_one_judge_alone_cannot_show_a_preference_for_its_family() -> None:
    matches = judged_by_two(0.7, instructions=30)
    first = np.arange(len(matches)) % 2 == 0
    alone = Matches.of(
        matches.models,
        matches.a[first],
        matches.b[first],
        matches.score_a[first],
        matches.instructions[first],
        own_family=matches.own_family[first],
    )
    with pytest.raises(NotIdentifiedError, match="own-family depends on the models"):
        controlled_fit(alone, ["own-family"])
