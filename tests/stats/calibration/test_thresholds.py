"""Thresholds and weights against brute force, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count

from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.thresholds import (
    WEIGHTS,
    Objective,
    balanced_accuracy,
    fit_threshold,
    fit_weight,
    held_out_verdicts,
)


def value(objective: Objective, called: NDArray[np.bool_], right: NDArray[np.bool_]) -> float:
    """As the words say, one verdict after the other."""
    pairs = list(zip(called.tolist(), right.tolist(), strict=True))
    if objective == "accuracy":
        return sum(one == other for one, other in pairs) / len(pairs)
    if objective == "balanced_accuracy":
        sides = [[one is other for one, other in pairs if other is side] for side in (True, False)]
        return sum(sum(side) / len(side) for side in sides) / 2
    both = sum(one and other for one, other in pairs)
    return 2 * both / (sum(one for one, _ in pairs) + sum(other for _, other in pairs))


ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.9, 1.0]) | st.floats(-1, 1), st.booleans()),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({right for _, right in rows}) == 2)


@pytest.mark.parametrize("objective", ["accuracy", "balanced_accuracy", "f1"])
@settings(max_examples=example_count(60), deadline=None)
@given(rows=ROWS)
def test_no_threshold_does_better(objective: Objective, rows: list[tuple[float, bool]]) -> None:
    scores, right = np.array([score for score, _ in rows]), np.array([each for _, each in rows])
    threshold = fit_threshold(scores, right, objective)
    assert math.isfinite(threshold)
    candidates = [*scores, np.nextafter(scores.max(), math.inf)]
    best = max(value(objective, scores >= cut, right) for cut in candidates)
    assert value(objective, scores >= threshold, right) == pytest.approx(best, abs=1e-9)


def test_ties_go_to_the_middle_of_the_widest_gap() -> None:
    # Any cut in (.2, .8] is right three times of four, as is any in (.85, .9]; the gap of .6 is wider.
    assert fit_threshold(np.array([0.2, 0.8, 0.85, 0.9]), np.array([False, True, False, True])) == 0.5
    # As short as stays in the middle half of the gap: .1233 … .1267 holds no number of two places.
    assert fit_threshold(np.array([0.1216, 0.1284]), np.array([False, True])) == 0.125


def test_neighbouring_floats_have_a_threshold_too() -> None:
    low = 0.3
    high = float(np.nextafter(low, 1))
    assert fit_threshold(np.array([low, high]), np.array([False, True])) == high


def test_where_verdicts_cannot_be_better_than_all_alike() -> None:
    # The only wrong answer has the highest score: call all right, from the lowest score on.
    assert fit_threshold(np.array([0.1, 0.2, 0.3]), np.array([True, True, False])) == 0.1
    # The only right one has the lowest: call all wrong.
    assert fit_threshold(np.array([0.1, 0.2, 0.3]), np.array([True, False, False])) > 0.3


@pytest.mark.parametrize(
    ("scores", "right", "says"),
    [
        ([], [], "no row"),
        ([0.1, 0.2], [True, True], "all answers are right"),
        ([0.1, 0.2], [False, False], "no answer is right"),
        ([0.1, math.nan], [True, False], "not a finite number"),
        ([0.1, math.inf], [True, False], "not a finite number"),
    ],
)
def test_what_cannot_be_fitted_is_named(scores: list[float], right: list[bool], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_threshold(np.array(scores), np.array(right, dtype=bool))


def test_a_row_is_judged_by_the_others_questions() -> None:
    random = np.random.default_rng(3)
    right = random.random(400) < 0.5
    scores = np.where(right, 0.8, 0.2) + random.normal(0, 0.01, 400)
    questions = [f"question {number // 4}?" for number in range(400)]
    verdicts = held_out_verdicts(scores, right, questions)
    assert ((verdicts == 1) == right).all()
    # One question, one fold: there are no others to fit on.
    assert np.isnan(held_out_verdicts(scores, right, ["the same"] * 400)).all()
    # However it is written it stays in its fold.
    assert (held_out_verdicts(scores, right, [question.upper() for question in questions]) == verdicts).all()


def test_noise_gains_nothing_on_rows_held_out() -> None:
    random = np.random.default_rng(5)
    right, scores = random.random(4000) < 0.5, random.random(4000)
    verdicts = held_out_verdicts(scores, right, [str(number) for number in range(4000)])
    assert abs(((verdicts == 1) == right).mean() - 0.5) < 0.03


@pytest.mark.parametrize("objective", ["pearson", "auc"])
def test_the_weight_is_the_best_of_all(objective: str) -> None:
    random = np.random.default_rng(7)
    sentence, lexical = random.random(300), random.random(300)
    labels = (0.35 * sentence + 0.65 * lexical + random.normal(0, 0.05, 300) > 0.5).astype(float)
    weight = fit_weight(sentence, lexical, labels, objective)  # type: ignore[arg-type]

    def agreement(each: float) -> float:
        scores = each * sentence + (1 - each) * lexical
        return auc(scores, labels >= 0.5) if objective == "auc" else float(np.corrcoef(scores, labels)[0, 1])

    assert agreement(weight) == pytest.approx(max(map(agreement, WEIGHTS)), abs=1e-12)
    assert 0.25 <= weight <= 0.45


def test_a_term_that_says_nothing_leaves_the_weight_open() -> None:
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    constant, telling = np.full(4, 0.5), np.array([0.1, 0.2, 0.8, 0.9])
    assert fit_weight(constant, telling, labels) < 1
    assert fit_weight(telling, telling, labels) == 0.5
    with pytest.raises(ValueError, match="needs right and wrong"):
        fit_weight(telling, telling, np.ones(4))


def test_balanced_accuracy_by_hand() -> None:
    right = np.array([True, True, True, False])
    assert balanced_accuracy(np.array([1.0, 1.0, 0.0, 0.0]), right) == pytest.approx((2 / 3 + 1) / 2)
    assert balanced_accuracy(np.array([1.0, math.nan, 0.0, 1.0]), right) == pytest.approx((1 / 2 + 0) / 2)
    assert math.isnan(balanced_accuracy(np.array([1.0, 1.0, 1.0, math.nan]), right))
