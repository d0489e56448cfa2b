"""Pairwise votes: strata, baselines, the coin, and failures."""

import math

import numpy as np
import pytest

from gradewire_stats.preferences import Choice, JudgedPairs, PreferenceReport, choices_from_scores, preference_agreement

VOTES: list[list[Choice]] = [
    ["A"] * 5,
    ["B"] * 5,
    ["A"] * 4 + ["B"],
    ["B"] * 4 + ["A"],
    ["A"] * 3 + ["B"] * 2,
    ["A", "A", "B", "B", "tie"],
    ["tie"] * 3 + ["A"] * 2,
    ["B", "B", "A"],
]


def figures(report: PreferenceReport, evaluator: str) -> dict[str, tuple[int, int, int, float]]:
    (found,) = (each for each in report.evaluators if each.evaluator == evaluator)
    return {line.stratum: (line.pairs, line.failed, line.ties, line.reproduced.value) for line in found.strata}


def test_strata_by_hand() -> None:
    choices: dict[str, list[Choice | None]] = {
        "right": ["A", "B", "A", "B", "A", "A", "A", "B"],
        "failing": ["A", None, "B", "B", None, None, "A", None],
    }
    report = preference_agreement(JudgedPairs(VOTES, choices, ([9, 1, 1, 2, 7, 0, 0, 3], [1, 9, 5, 2, 1, 0, 0, 4])))
    assert (report.no_majority, report.voted_tie) == (1, 1)
    assert [each.evaluator for each in report.evaluators] == ["right", "failing", "length", "random"]
    assert figures(report, "right") == {
        "5/5": (2, 0, 0, 1.0),
        "4/5": (2, 0, 0, 1.0),
        "2/3": (1, 0, 0, 1.0),
        "3/5": (1, 0, 0, 1.0),
        "all": (6, 0, 0, 1.0),
    }
    found = figures(report, "failing")
    assert found["5/5"] == (1, 1, 0, 1.0)
    assert found["4/5"] == (2, 0, 0, 0.5)
    assert found["all"] == (3, 3, 0, pytest.approx(2 / 3))
    assert found["2/3"][:3] == (0, 1, 0)
    assert math.isnan(found["2/3"][3])
    # The longer answer: right on both unanimous pairs; wrong on one of the 4/5 pairs, of equal length on the other.
    length = figures(report, "length")
    assert length["5/5"] == (2, 0, 0, 1.0)
    assert length["4/5"][:3] == (2, 0, 1)
    assert length["4/5"][3] in {0.0, 0.5}


def many(count: int = 4000) -> tuple[list[list[Choice]], list[Choice]]:
    random = np.random.default_rng(0)
    majorities: list[Choice] = ["A" if draw < 0.5 else "B" for draw in random.random(count)]
    other: dict[Choice, Choice] = {"A": "B", "B": "A"}
    votes = [[winner] * 4 + [other[winner]] for winner in majorities]
    return votes, majorities


def test_chance_reproduces_half_and_a_coin_decides_ties_the_same_way_for_all() -> None:
    votes, majorities = many()
    choices: dict[str, list[Choice | None]] = {"always ties": ["tie"] * 4000, "ties too": ["tie"] * 4000}
    report = preference_agreement(JudgedPairs(votes, choices), resamples=100, seed=1)
    assert figures(report, "always ties") == figures(report, "ties too")
    pairs, failed, ties, share = figures(report, "always ties")["all"]
    assert (pairs, failed, ties) == (4000, 0, 4000)
    # Four standard deviations of a fair coin thrown 4 000 times are 0.032.
    assert share == pytest.approx(0.5, abs=0.032)
    assert figures(report, "random")["all"][3] == pytest.approx(0.5, abs=0.032)
    assert figures(report, "random")["all"][3] != share, "the baseline has a coin of its own"
    again = preference_agreement(JudgedPairs(votes, choices), resamples=100, seed=1)
    assert again == report
    other = preference_agreement(JudgedPairs(votes, choices), resamples=100, seed=2)
    assert figures(other, "always ties") != figures(report, "always ties")
    assert majorities.count("A") > 1000


def test_with_30_percent_failed_the_share_is_that_of_the_rest() -> None:
    votes, majorities = many(600)
    random = np.random.default_rng(3)
    said: list[Choice] = [winner if random.random() < 0.8 else "A" for winner in majorities]
    failed = random.random(600) < 0.3
    choices: list[Choice | None] = [None if gone else choice for gone, choice in zip(failed, said, strict=True)]
    kept = np.flatnonzero(~failed)
    whole = preference_agreement(JudgedPairs(votes, {"e": choices}), resamples=50)
    rest = preference_agreement(
        JudgedPairs([votes[row] for row in kept], {"e": [said[row] for row in kept]}), resamples=50
    )
    assert figures(whole, "e")["all"] == (len(kept), int(failed.sum()), 0, figures(rest, "e")["all"][3])


def test_intervals_widen_when_pairs_share_an_instruction() -> None:
    votes, majorities = many(400)
    random = np.random.default_rng(3)
    # All pairs of an instruction are right or wrong together.
    right = np.repeat(random.random(20) < 0.7, 20)
    other: dict[Choice, Choice] = {"A": "B", "B": "A"}
    said: list[Choice | None] = [winner if ok else other[winner] for winner, ok in zip(majorities, right, strict=True)]
    apart = preference_agreement(JudgedPairs(votes, {"e": said}), resamples=500)
    shared = preference_agreement(
        JudgedPairs(votes, {"e": said}, instructions=[f"do {row // 20}" for row in range(400)]), resamples=500
    )
    wide, narrow = (each.evaluators[0].strata[-1].reproduced for each in (shared, apart))
    assert wide.value == narrow.value
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_scores_choose_and_failures_choose_nothing() -> None:
    found = choices_from_scores(np.array([0.2, 0.5, 0.1, math.nan]), np.array([0.1, 0.5, 0.3, 0.1]))
    assert found == ["A", "tie", "B", None]


def test_nothing_to_reproduce_is_undefined() -> None:
    for votes in ([], [[]], [["A", "B"]]):
        report = preference_agreement(JudgedPairs(votes, {"e": ["A"] * len(votes)}), resamples=5)
        assert math.isnan(report.evaluators[0].strata[-1].reproduced.value)
        assert report.no_majority == len(votes)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (JudgedPairs([["A"]], {"e": ["A", "B"]}), "1 pairs with votes and 2 choices of e"),
        (JudgedPairs([["A"]], {"e": ["A"]}, ([1], [])), "0 lengths of B"),
        (JudgedPairs([["A"]], {"random": ["A"]}), "the name of a baseline"),
        (JudgedPairs([["C"]], {"e": ["A"]}), "a vote is 'C'"),  # type: ignore[list-item]
        (JudgedPairs([["A"]], {"e": ["a"]}), "a choice is 'a'"),  # type: ignore[dict-item,list-item]
    ],
)
def test_unreadable_pairs_are_refused(pairs: JudgedPairs, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preference_agreement(pairs)
