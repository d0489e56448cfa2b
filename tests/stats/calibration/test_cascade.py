"""Fits of `auto`: bands of risks and budgets, what they promise on drawn rows, and which judge is asked."""

import json
import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.judged.auto_fit import AutoFit, read_auto_fit
from gradewire_stats.calibration.cascade import (
    BUDGETS,
    EVERYWHERE,
    EXACT,
    RISKS,
    CascadeRows,
    budget_threshold,
    exact_p_values,
    fit_cascade,
    fitted_risks,
    held_risks,
    judge_gains,
    judged_below,
    judged_rows,
    last_rejected,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


PROVENANCE: dict[str, Any] = {
    "metric_version": 1,
    "model": "m",
    "model_digest": "5" * 64,
    "correctness_fit": "1" * 12,
    "judge": "lave",
    "judge_model": "j",
    "judge_digest": "7" * 64,
    "prompt_digest": "8" * 64,
}


def drawn(count: int, seed: int, *, each: int = 1, judge: float = 0.8) -> CascadeRows:
    """Rows whose probabilities are true: an answer with the probability p is right with that probability.

    Args:
        count: Of rows.
        seed: Of the draw.
        each: Rows of a question.
        judge: Probability with which the judge is right, wherever it is asked.
    """
    random = np.random.default_rng(seed)
    probability = random.beta(0.6, 0.4, count)
    right = random.random(count) < probability
    exact = (random.random(count) < 0.2) & right
    said = np.where(random.random(count) < judge, right, ~right).astype(np.float64)
    return CascadeRows(
        exact=exact,
        probability=probability,
        denied=np.zeros(count, np.bool_),
        right=right,
        judge_verdicts=said,
        judge_scores=said,
        questions=[f"question {row // each}" for row in range(count)],
    )


def risk_of(accepts_from: float) -> float:
    """The true risk of a threshold on such rows, by a draw of many."""
    rows = MANY
    accepted = rows.confidence >= accepts_from
    return float((rows.verdicts != rows.right)[accepted].mean()) if accepted.any() else 0.0


MANY = drawn(100_000, 99)


@pytest.mark.parametrize("each", [1, 4])
def test_the_bound_fails_no_more_often_than_delta(each: int) -> None:
    failed = dict.fromkeys((0.05, 0.1), 0)
    fits = 120
    for seed in range(fits):
        for found in fitted_risks(drawn(600, seed, each=each), 0.1):
            if found.risk in failed:
                failed[found.risk] += risk_of(found.accepts_from) > found.risk
    # 0.1 and three standard errors of so many draws.
    assert all(count <= 0.1 * fits + 3 * math.sqrt(0.1 * 0.9 * fits) for count in failed.values()), failed


def test_with_many_rows_nearly_all_that_may_be_accepted_is() -> None:
    best = {risk: min(t for t in np.linspace(0.5, 1, 101) if risk_of(t) <= risk) for risk in (0.05, 0.1)}
    for found in fitted_risks(drawn(20_000, 3), 0.1):
        if found.risk in best:
            assert best[found.risk] - 0.01 <= found.accepts_from <= best[found.risk] + 0.04


def test_one_answer_of_each_question_is_tested() -> None:
    """Forty answers to a question say hardly more than one; counted as forty they would prove a risk by themselves."""
    rows = drawn(600, 1, each=40)
    for found in fitted_risks(rows, 0.1):
        assert found.accepted <= 15
    assert math.isinf(next(each.accepts_from for each in fitted_risks(rows, 0.1) if each.risk == 0.05))


def test_few_of_the_surest_do_not_end_the_sequence() -> None:
    """20 wrong verdicts at the top of 5000 are no reason to accept nothing at a risk of a half."""
    confidence = np.linspace(0.999, 0.51, 5000)
    right = np.arange(5000) >= 20
    nothing = np.full(5000, math.nan)
    rows = CascadeRows(
        exact=np.zeros(5000, np.bool_),
        probability=confidence,
        denied=np.zeros(5000, np.bool_),
        right=right,
        judge_verdicts=nothing,
        judge_scores=nothing,
        questions=[str(row) for row in range(5000)],
    )
    assert fitted_risks(rows, 0.1)[-1].accepts_from == 0.5


def test_the_sequence_ends_at_the_first_that_is_not_rejected() -> None:
    assert last_rejected([0.5, 0.01, 0.1, 0.11, 0.01], 1, 0.1) == 2
    assert last_rejected([0.11, 0.01], 0, 0.1) is None
    assert last_rejected([0.01], 1, 0.1) is None


def test_intervals_of_the_gain_are_corrected_for_the_looks_and_count_questions() -> None:
    single, copied = drawn(1000, 5, judge=0.7), drawn(1000, 5, judge=0.7)
    gain = judge_gains(single, resamples=4000, seed=0)[-1]
    differences = (single.judge_verdicts == single.right) * 1.0 - (single.verdicts == single.right)
    error = differences.std() / math.sqrt(1000)
    z = NormalDist().inv_cdf(1 - 0.05 / 7 / 2)
    assert gain.high - gain.low == pytest.approx(2 * z * error, rel=0.07)
    copied = replace(
        copied,
        **{
            name: np.repeat(getattr(copied, name)[:250], 4)
            for name in ("exact", "probability", "denied", "right", "judge_verdicts", "judge_scores")
        },
        questions=[f"question {row // 4}" for row in range(1000)],
    )
    again = judge_gains(copied, resamples=4000, seed=0)[-1]
    assert again.high - again.low == pytest.approx(4 * z * error, rel=0.15)


def test_with_too_few_rows_nothing_is_accepted() -> None:
    assert all(math.isinf(each.accepts_from) for each in fitted_risks(drawn(5, 1), 0.1))


@settings(max_examples=example_count(25), deadline=None)
@given(st.integers(1, 400), st.integers(0, 10_000), st.sampled_from([1, 3]), st.floats(0.01, 0.5))
def test_a_fit_is_one_that_a_server_reads_and_keeps_its_order(count: int, seed: int, each: int, delta: float) -> None:
    rows = drawn(count, seed, each=each)
    fit = fit_cascade(rows, PROVENANCE, delta=delta, resamples=20)
    edges = [found.accepts_from for found in fit.risks]
    assert edges == sorted(edges, reverse=True)
    assert [found.risk for found in fit.risks] == list(RISKS)
    read = read_auto_fit(json.dumps(fit.form))
    assert isinstance(read, AutoFit), read
    for (budget, edge), stored in zip(fit.budgets, read.form.budgets, strict=True):
        assert stored.share == budget
        assert stored.accepts_from == (None if math.isinf(edge) else edge)


@settings(max_examples=example_count(50), deadline=None)
@given(st.lists(st.sampled_from([0.5, 0.6, 0.75, 0.9, 0.99, EXACT]), min_size=1, max_size=80), st.sampled_from(BUDGETS))
def test_a_budget_is_never_exceeded_on_its_rows(confidence: list[float], budget: float) -> None:
    values: NDArray[np.float64] = np.array(confidence)
    below = int((values < budget_threshold(values, budget)).sum())
    assert below <= budget * len(values) + 1e-9


def test_budgets_of_nothing_and_of_all() -> None:
    values = np.array([0.5, 0.7, EXACT])
    assert (values < budget_threshold(values, 0.0)).sum() == 0
    assert (values < budget_threshold(values, 1.0)).sum() == 3


def test_a_judge_that_is_better_is_asked_as_far_as_it_is() -> None:
    gains = judge_gains(drawn(4000, 1, judge=0.97), resamples=500, seed=0)
    assert all(each.adds for each in gains)
    assert judged_below(gains) == EVERYWHERE
    some = judge_gains(drawn(4000, 1, judge=0.85), resamples=500, seed=0)
    assert [each.adds for each in some] == sorted((each.adds for each in some), reverse=True)
    assert 0.5 < (judged_below(some) or 0) < 1


@pytest.mark.parametrize("judge", [0.3, 0.55])
def test_a_judge_that_adds_nothing_is_asked_nowhere(judge: float) -> None:
    gains = judge_gains(drawn(2000, 2, judge=judge), resamples=500, seed=0)
    assert not any(each.adds for each in gains)
    assert judged_below(gains) is None


def test_of_few_judged_rows_nothing_is_said() -> None:
    rows = drawn(300, 4, judge=1.0)
    rows.judge_verdicts[19:] = math.nan
    gains = judge_gains(rows, resamples=100, seed=0)
    assert [each.rows for each in gains][-1] == 19
    assert all(math.isnan(each.low) and not each.adds for each in gains)
    assert all("low" not in each.to_dict() for each in gains)


def test_a_judge_that_is_as_good_rarely_passes_by_luck() -> None:
    """Right with the same probability as the cheap verdict, row by row, it passes one of the looks in 5 % of fits."""
    passed = 0
    for seed in range(60):
        rows = drawn(300, seed)
        correct = np.random.default_rng(1000 + seed).random(300) < rows.confidence
        rows.judge_verdicts[:] = np.where(correct, rows.right, ~rows.right)
        passed += judged_below(judge_gains(rows, resamples=400, seed=seed)) is not None
    assert passed <= 7  # two standard errors above 3


def test_how_it_held_on_other_rows() -> None:
    fit = fit_cascade(drawn(3000, 1, judge=0.9), PROVENANCE, resamples=200)
    other = drawn(3000, 2, judge=0.9)
    for found, fitted in zip(held_risks(fit, other), fit.risks, strict=True):
        accepted = other.confidence >= fitted.accepts_from
        assert found.accepted == accepted.sum()
        assert found.wrong == (accepted & (other.verdicts != other.right)).sum()
        assert found.held == (found.wrong <= found.risk * found.accepted)
        asked = judged_rows(fit, other, fitted.accepts_from)
        assert found.judged == asked.sum() <= found.rows - found.accepted
        verdicts = np.where(asked, other.judge_verdicts == 1, other.verdicts)
        assert found.accuracy == pytest.approx((verdicts == other.right).mean())


def test_where_a_row_was_not_judged_its_accuracy_is_unknown() -> None:
    fit = fit_cascade(drawn(3000, 1, judge=0.95), PROVENANCE, resamples=200)
    other = drawn(300, 2)
    other.judge_verdicts[:] = math.nan
    assert math.isnan(held_risks(fit, other)[0].accuracy)


def test_what_cannot_be_fitted_is_told() -> None:
    with pytest.raises(ValueError, match="no row"):
        fit_cascade(drawn(0, 1), PROVENANCE)
    with pytest.raises(ValueError, match="delta"):
        fit_cascade(drawn(10, 1), PROVENANCE, delta=1.0)


def test_confidence_of_matches_and_denials() -> None:
    rows = CascadeRows(
        exact=np.array([True, False, False]),
        probability=np.array([0.2, 0.1, 0.97]),
        denied=np.array([False, False, True]),
        right=np.array([True, False, False]),
        judge_verdicts=np.full(3, math.nan),
        judge_scores=np.full(3, math.nan),
        questions=["a", "b", " "],
    )
    assert rows.confidence.tolist() == [EXACT, 0.9, 0.5]
    assert rows.verdicts.tolist() == [True, False, True]
    assert rows.scores.tolist() == [1.0, 0.1, 0.97]
    assert rows.clusters.tolist() == [0, 1, 2]
    halves = rows.half("a"), rows.half("b")
    assert sum(map(len, halves)) == 3


def exact_p_value(wrong: int, accepted: int, risk: float) -> float:
    return float(exact_p_values(np.array([wrong]), np.array([accepted]), risk)[0])


def binomial_cdf(count: int, trials: int, share: float) -> float:
    """By its definition."""
    return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count + 1))


@pytest.mark.parametrize(("wrong", "accepted", "risk"), [(0, 20, 0.1), (3, 50, 0.1), (7, 200, 0.05), (200, 200, 0.05)])
def test_the_exact_p_value_is_the_binomials(wrong: int, accepted: int, risk: float) -> None:
    assert exact_p_value(wrong, accepted, risk) == pytest.approx(binomial_cdf(wrong, accepted, risk))


def test_without_rows_nothing_is_rejected() -> None:
    assert exact_p_value(0, 0, 0.1) == 1.0


@given(st.integers(0, 50), st.floats(0.01, 0.9))
def test_more_wrong_verdicts_and_a_smaller_risk_are_less_sure(wrong: int, risk: float) -> None:
    assert exact_p_value(wrong, 60, risk) <= exact_p_value(wrong + 1, 60, risk)
    assert exact_p_value(wrong, 60, risk) <= exact_p_value(wrong, 60, risk * 0.9) + 1e-12


@pytest.mark.parametrize(
    ("p_values", "start", "last"),
    [([0.01, 0.05, 0.2, 0.01], 0, 1), ([0.2, 0.01], 0, None), ([0.2, 0.01], 1, 1), ([0.01], 0, 0), ([], 0, None)],
)
def test_a_sequence_ends_at_the_first_that_is_not_rejected(p_values: list[float], start: int, last: int | None) -> None:
    assert last_rejected(p_values, start, 0.1) == last


def test_a_true_hypothesis_is_rejected_no_more_often_than_said() -> None:
    """A tenth of the verdicts is wrong, and each row is accepted or not by itself."""
    random = np.random.default_rng(5)
    accepted = (random.random((4000, 120)) < 0.7).sum(axis=1)
    wrong = random.binomial(accepted, 0.1)
    rejected = np.mean(exact_p_values(wrong, accepted, 0.1) <= 0.1)
    assert 0.04 < rejected <= 0.1 + 3 * (0.1 * 0.9 / 4000) ** 0.5
