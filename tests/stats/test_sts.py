"""Correlations on test sets, against scipy's over the same pairs."""

import math

import numpy as np
import pytest
from scipy import stats

from gradewire_stats.sts import Aggregation, StsPairs, sts_result

SIZES = {("STS12", "a"): 40, ("STS12", "b"): 15, ("SICK-R", ""): 30}


def pairs(seed: int = 3) -> StsPairs:
    random = np.random.default_rng(seed)
    keys = [key for key, size in SIZES.items() for _ in range(size)]
    grades = random.integers(0, 6, len(keys)).astype(float)
    # The second subset has another level, so that pooling its pairs differs from averaging.
    scores = np.round(grades / 5 + random.normal(0, 0.4, len(keys)), 1) + [key[1] == "b" for key in keys]
    return StsPairs(scores, grades, [key[0] for key in keys], [key[1] for key in keys])


def spearman(given: StsPairs, task: str, subset: str | None = None) -> float:
    chosen = [
        place
        for place, key in enumerate(zip(given.tasks, given.subsets, strict=True))
        if key[0] == task and subset in {None, key[1]} and not math.isnan(given.scores[place])
    ]
    return 100 * float(stats.spearmanr(given.scores[chosen], given.grades[chosen]).statistic)


@pytest.mark.parametrize("aggregation", ["all", "mean", "weighted-mean"])
def test_a_test_set_is_one_correlation_or_a_mean_of_its_subsets(aggregation: Aggregation) -> None:
    given = pairs()
    found = sts_result(given, aggregation=aggregation, resamples=200)
    first, second = spearman(given, "STS12", "a"), spearman(given, "STS12", "b")
    expected = {
        "all": spearman(given, "STS12"),
        "mean": (first + second) / 2,
        "weighted-mean": (40 * first + 15 * second) / 55,
    }
    assert len(set(expected.values())) == 3
    assert found.tasks["STS12"].value == pytest.approx(expected[aggregation])
    assert found.tasks["SICK-R"].value == pytest.approx(spearman(given, "SICK-R"))
    assert found.average.value == pytest.approx((expected[aggregation] + spearman(given, "SICK-R")) / 2)
    assert [(each.task, each.subset, each.pairs, each.failed) for each in found.subsets] == [
        ("STS12", "a", 40, 0),
        ("STS12", "b", 15, 0),
        ("SICK-R", "", 30, 0),
    ]
    assert found.subsets[1].correlation == pytest.approx(second)
    for each in (found.average, *found.tasks.values()):
        assert each.low < each.value < each.high
        assert each.resamples == 200


def test_pairs_without_a_score_are_counted_and_left_out() -> None:
    given = pairs()
    given.scores[[0, 1, 41]] = math.nan
    found = sts_result(given)
    assert found.tasks["STS12"].value == pytest.approx(spearman(given, "STS12"))
    assert [(each.pairs, each.failed) for each in found.subsets] == [(38, 2), (14, 1), (30, 0)]


def test_a_test_set_without_scores_has_no_value_and_no_average() -> None:
    given = pairs()
    given.scores[-SIZES["SICK-R", ""] :] = math.nan
    found = sts_result(given)
    assert math.isnan(found.tasks["SICK-R"].value)
    assert math.isnan(found.average.value)
    assert found.tasks["STS12"].value == pytest.approx(spearman(given, "STS12"))


def test_no_pairs_give_nothing() -> None:
    found = sts_result(StsPairs(np.array([]), np.array([]), [], []))
    assert (found.tasks, found.subsets) == ({}, [])
    assert math.isnan(found.average.value)


def test_columns_that_do_not_fit_are_refused() -> None:
    given = pairs()
    with pytest.raises(ValueError, match="different lengths"):
        sts_result(StsPairs(given.scores[1:], given.grades, given.tasks, given.subsets))
    given.grades[0] = math.nan
    with pytest.raises(ValueError, match="a grade is not a finite number"):
        sts_result(given)
