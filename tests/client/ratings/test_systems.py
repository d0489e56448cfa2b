"""Whether a judge ranks models as people do."""

import math

import pytest
from scipy.stats import kendalltau, spearmanr
from tests.client.ratings.tournaments import renumbered, tournament

from gradewire.ratings import bradley_terry, pair_counts, system_ranks

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
