"""Position and length bias: by hand, and with an interval that knows its instructions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from tests.stats.ratings.tournaments import renumbered, swapped, tournament

from gradewire_stats.bootstrap import draws
from gradewire_stats.ratings import (
    USUAL_SCALE,
    Controls,
    Matches,
    RatingScale,
    RatingTable,
    bradley_terry,
    family_bias,
    length_bias,
    pair_counts,
    position_bias,
    rate,
    system_ranks,
)


def test_by_hand() -> None:
    columns = Matches.of(
        ["x", "y"],
        [0, 0, 0, 1, 1],
        [1, 1, 1, 0, 0],
        [1.0, 0.0, 0.5, 1.0, 0.0],
        range(5),
        shown_first=[1, 1, 1, -1, 0],
        words=[(5, 1), (5, 1), (5, 1), (2, 2), (math.nan, 3)],
    )
    matches = replace(columns, weights=np.array([1.0, 0.5, 1.0, 1.0, 1.0]))
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


STRENGTHS = [0.9, 0.4, 0.0, -0.5, -0.8]


def test_correlations_are_scipys() -> None:
    judge, people = (tournament(STRENGTHS, instructions=25, seed=seed) for seed in (0, 1))
    people = renumbered(people, [1, 0, 2, 4, 3])
    found = system_ranks(judge, people, resamples=100)
    ours, theirs = (bradley_terry(pair_counts(each)).values[0] for each in (judge, people))
    assert found.kendall.value == pytest.approx(kendalltau(ours, theirs).statistic)
    assert found.spearman.value == pytest.approx(spearmanr(ours, theirs).statistic)
    assert found.models == 5
    assert found.kendall.low <= found.kendall.value <= found.kendall.high
    assert found.pearson.low < found.pearson.value < found.pearson.high, "draws of instructions differ"


def test_a_judge_that_says_the_same_ranks_the_same() -> None:
    judge = tournament(STRENGTHS, instructions=40, seed=0)
    found = system_ranks(judge, judge, resamples=50)
    assert (found.kendall.value, found.kendall.low, found.pearson.low) == pytest.approx((1.0, 1.0, 1.0))


def test_two_models_have_no_correlation_and_other_models_are_refused() -> None:
    judge = tournament([0.5, -0.5], instructions=12, seed=0)
    assert math.isnan(system_ranks(judge, judge, resamples=20).kendall.value)
    with pytest.raises(ValueError, match="same models"):
        system_ranks(judge, tournament(STRENGTHS, instructions=12, seed=0))


STRENGTHS_TABLE = [0.9, 0.5, 0.1, -0.4, -1.1]


def by_name(table: RatingTable) -> dict[str, tuple[float, float, float]]:
    return {
        line.model: (line.bradley_terry.value, line.bradley_terry.low, line.bradley_terry.high) for line in table.models
    }


def test_the_order_is_recovered() -> None:
    table = rate(tournament(STRENGTHS_TABLE, instructions=150, seed=0), resamples=200)
    assert [line.model for line in table.models] == [f"model {number}" for number in range(5)]
    elos = [line.elo.value for line in table.models]
    assert elos == sorted(elos, reverse=True)
    assert not table.regularised
    assert table.regularised_draws == 0
    assert (table.instructions, table.resamples) == (150, 200)
    assert {line.matches for line in table.models} == {600}
    assert all(line.elo.low < line.elo.value < line.elo.high for line in table.models)


def test_intervals_hold_the_strengths_about_as_often_as_they_say() -> None:
    """Of 40 tournaments of 5 models; benchmarks/agreement/ratings_coverage.py plays 100, larger ones."""
    strengths = np.array(STRENGTHS_TABLE)
    truth = {
        f"model {number}": 1000 + USUAL_SCALE.per_nat * value
        for number, value in enumerate(strengths - strengths.mean())
    }
    held = []
    for seed in range(40):
        matches = tournament(STRENGTHS_TABLE, instructions=60, seed=100 + seed, ties=0.0)
        table = rate(matches, resamples=300, seed=seed, with_elo=False)
        held += [low <= truth[model] <= high for model, (_, low, high) in by_name(table).items()]
    # Binomial, 200 intervals at 95 %, a tournament's own not quite independent: four standard errors below.
    assert 0.88 <= np.mean(held) <= 0.995


def test_intervals_are_wider_where_instructions_say_the_same_again() -> None:
    """Ten verdicts on each of 20 instructions that always agree are 20 verdicts, not 200."""
    random = np.random.default_rng(0)
    wins = (random.random(20) < 0.6).astype(float)
    again = Matches.of(
        ["x", "y"], [0] * 200, [1] * 200, np.repeat(wins, 10).tolist(), np.repeat(range(20), 10).tolist()
    )
    apart = Matches.of(["x", "y"], [0] * 200, [1] * 200, np.repeat(wins, 10).tolist(), range(200))
    wide, narrow = (by_name(rate(matches, resamples=300))["x"] for matches in (again, apart))
    assert wide[0] == pytest.approx(narrow[0])
    assert wide[2] - wide[1] > 2 * (narrow[2] - narrow[1])


def test_shares_by_hand() -> None:
    rows = [("x", "r", 1.0), ("x", "r", 0.0), ("x", "r", 1.0), ("x", "r", 0.5), ("y", "r", 0.0), ("x", "y", 0.5)]
    names = ["r", "x", "y"]
    matches = Matches.of(
        names,
        [names.index(a) for a, _, _ in rows],
        [names.index(b) for _, b, _ in rows],
        [s for *_, s in rows],
        range(6),
    )
    table = rate(matches, reference="r", anchor="r", resamples=50)
    found = {line.model: line for line in table.models}
    assert found["x"].against_reference.value == pytest.approx(2 / 3), "ties are left out"
    assert found["y"].against_reference.value == 0.0
    assert math.isnan(found["r"].against_reference.value)
    assert found["x"].win_share.value == pytest.approx((2 + 0.5 + 0.5) / 5), "ties count half"
    assert (found["x"].matches, found["x"].won, found["x"].tied) == (5, 2, 2)
    assert found["r"].bradley_terry.value == pytest.approx(1000)
    assert all(line.bradley_terry.bare for line in table.models), "no interval for so few instructions"
    order = [line.model for line in table.models]
    assert table.won[order.index("x"), order.index("r")] == 2
    assert table.tied[order.index("r"), order.index("x")] == 1


def test_a_model_without_a_match_stands_last_without_figures() -> None:
    table = rate(Matches.of(["none", "x", "y"], [1, 2] * 6, [2, 1] * 6, [1.0] * 12, range(12)), resamples=50)
    last = table.models[-1]
    assert (last.model, last.matches) == ("none", 0)
    assert math.isnan(last.bradley_terry.value)
    assert math.isnan(last.elo.value)


def test_wins_that_do_not_connect_are_told() -> None:
    table = rate(Matches.of(["x", "y"], [0] * 12, [1] * 12, [1.0] * 12, range(12)), resamples=50)
    assert table.regularised
    assert table.regularised_draws == 50
    assert table.models[0].bradley_terry.value > 1000


def test_a_model_that_wins_all_has_no_interval_and_the_others_have() -> None:
    """Draws of 40 wins are 40 wins: their spread says nothing of how much stronger it is."""
    random = np.random.default_rng(0)
    rows = [(number, "x", other, 1.0) for number in range(40) for other in "yz"]
    rows += [(number, "y", "z", float(random.random() < 0.6)) for number in range(40)]
    names = ["x", "y", "z"]
    matches = Matches.of(
        names,
        [names.index(a) for _, a, _, _ in rows],
        [names.index(b) for _, _, b, _ in rows],
        [score for *_, score in rows],
        [number for number, *_ in rows],
        shown_first=[1 if number % 2 else -1 for number, *_ in rows],
    )
    for anchor in (None, "z"):
        x, *others = rate(matches, anchor=anchor, resamples=60, with_elo=False).models
        assert (x.model, x.bounded, x.bradley_terry.bare) == ("x", False, True)
        assert x.win_share.value == 1.0
        assert all(line.bounded and not line.bradley_terry.bare for line in others)
    adrift = rate(matches, anchor="x", resamples=60, with_elo=False)
    assert all(line.bradley_terry.bare for line in adrift.models), "nothing says how far x is from any other"
    controlled = rate(matches, controls=Controls(["position"]), resamples=60, with_elo=False).models[0].controlled
    assert controlled is not None
    assert controlled.bare


def test_groups_that_never_met_have_no_intervals() -> None:
    matches = Matches.of(list("wxyz"), [0, 1, 2, 3] * 12, [1, 0, 3, 2] * 12, [1.0] * 48, range(48))
    assert not any(line.bounded for line in rate(matches, resamples=60, with_elo=False).models)
    # A third model makes one group the larger one; it is held together by a circle of wins.
    circle = Matches.of(list("vwxyz"), [1, 2, 0, 3, 4] * 12, [2, 0, 1, 4, 3] * 12, [1.0] * 60, range(60))
    table = rate(circle, resamples=60, with_elo=False)
    assert {line.model for line in table.models if line.bounded} == {"v", "w", "x"}


def test_controls_rule_the_order_and_the_same_seed_gives_the_same() -> None:
    matches = tournament([0.6, 0.0, -0.6], instructions=40, seed=1, first=0.4)
    options = {"controls": Controls(["position"]), "resamples": 60, "seed": 4}
    table = rate(matches, **options)  # type: ignore[arg-type]
    controlled = [line.controlled for line in table.models]
    assert all(each is not None and each.low < each.value < each.high for each in controlled)
    (effect,) = table.effects
    assert (effect.control, effect.odds.value > 1) == ("position", True)
    again = rate(matches, **options)  # type: ignore[arg-type]
    assert repr(again.models) == repr(table.models), "what is not defined is equal to nothing"


def test_what_cannot_be_rated_is_refused() -> None:
    with pytest.raises(ValueError, match="no matches"):
        rate(Matches.of(["x", "y"], [], [], [], []))
    with pytest.raises(ValueError, match=r"no model 'z'\. The models are x, y"):
        rate(Matches.of(["x", "y"], [0], [1], [1.0], [0]), reference="z")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [1, 0], [1.0], [0]), "columns differ in length: 1 and"),
        (([0], [0], [1.0], [0]), "same model twice"),
        (([0], [2], [1.0], [0]), "outside 0 to 1"),
        (([0], [1], [0.7], [0]), "not 0, 0.5 or 1"),
        (([0], [1], [math.nan], [0]), "not 0, 0.5 or 1"),
    ],
)
def test_matches_that_are_none_are_refused(columns: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Matches.of(["x", "y"], *columns)


def test_a_preference_for_the_own_family_by_hand() -> None:
    """Own answers win two of three; ties and pairs of one family do not count."""
    matches = Matches.of(
        ["x", "y"],
        [0, 0, 1, 0, 0],
        [1, 1, 0, 1, 1],
        [1.0, 0.0, 0.0, 0.5, 1.0],
        range(5),
        own_family=[1, 1, -1, 1, 0],
    )
    found = family_bias(matches, resamples=20)
    assert (found.matches, found.won.value) == (3, pytest.approx(2 / 3))
    assert family_bias(tournament([0.5, -0.5], instructions=5, seed=0)).matches == 0


def test_a_scale_moves_all_ratings_and_no_share() -> None:
    matches = tournament([0.7, 0.0, -0.7], instructions=30, seed=2, first=0.3)
    usual = rate(matches, reference="model 1", controls=Controls(["position"]), resamples=50)
    other = rate(
        matches,
        reference="model 1",
        controls=Controls(["position"]),
        scale=RatingScale(k=8, scale=800, start=0),
        resamples=50,
    )
    for line, before in zip(other.models, usual.models, strict=True):
        for name in ("bradley_terry", "controlled", "elo"):
            now, then = getattr(line, name), getattr(before, name)
            # With twice K and twice the scale, every step of Elo is twice as long.
            expected = [2 * (each - 1000) for each in (then.value, then.low, then.high)]
            assert [now.value, now.low, now.high] == pytest.approx(expected, abs=1e-6)
        assert line.win_share == before.win_share
        assert line.decided_against_reference == before.decided_against_reference
    assert {line.model: line.decided_against_reference for line in usual.models}["model 1"] == 0
    assert other.effects == usual.effects
