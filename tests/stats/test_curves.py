"""ROC curves, calibration and histograms of a metric, against other implementations."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from sklearn import metrics as sk

from gradewire_stats.curves import metric_curves

NAN = math.nan

SCORES = st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0, math.nan]), st.floats(0, 1))
ROWS = st.lists(st.tuples(SCORES, st.sampled_from([0.0, 1.0])), max_size=60)


@given(ROWS)
@settings(deadline=None)
def test_roc_and_brier_equal_those_of_scikit_learn_on_what_was_scored(rows: list[tuple[float, float]]) -> None:
    scores, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metric_curves(scores, labels)
    kept = ~np.isnan(scores)
    assert sum(counts.sum() for counts in found.distribution.counts.values()) == kept.sum()
    if not kept.any():
        assert found.roc is None
        assert found.calibration is None
        assert math.isnan(found.brier)
        return
    assert found.brier == pytest.approx(np.mean((scores[kept] - labels[kept]) ** 2))
    if len(set(labels[kept])) < 2:
        assert found.roc is None
        return
    assert found.roc is not None
    fpr, tpr, _ = sk.roc_curve(labels[kept], scores[kept], drop_intermediate=False)
    np.testing.assert_allclose(found.roc.false_positive_rate, fpr)
    np.testing.assert_allclose(found.roc.true_positive_rate, tpr)
    assert found.roc.auc == pytest.approx(sk.roc_auc_score(labels[kept], scores[kept]))


def noisy(count: int = 20_000, *, failed: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    scores = random.random(count)
    labels = (random.random(count) < scores).astype(float)
    scores[random.random(count) < failed] = math.nan
    return scores, labels


def test_a_thinned_curve_keeps_its_ends_its_area_and_its_shape() -> None:
    scores, labels = noisy()
    roc = metric_curves(scores, labels).roc
    assert roc is not None
    assert len(roc.true_positive_rate) <= 200
    assert (roc.false_positive_rate[0], roc.true_positive_rate[0]) == (0, 0)
    assert (roc.false_positive_rate[-1], roc.true_positive_rate[-1]) == (1, 1)
    assert integrate.trapezoid(roc.true_positive_rate, roc.false_positive_rate) == pytest.approx(roc.auc, abs=1e-3)
    # 198 steps along a way of length 2.
    steps = np.diff(roc.true_positive_rate) + np.diff(roc.false_positive_rate)
    assert steps.max() < 2 / 198 + 2 / 5000
    fpr, tpr, _ = sk.roc_curve(labels, scores, drop_intermediate=False)
    every = set(zip(fpr.round(9).tolist(), tpr.round(9).tolist(), strict=True))
    shown = zip(roc.false_positive_rate.round(9).tolist(), roc.true_positive_rate.round(9).tolist(), strict=True)
    assert set(shown) <= every


def test_calibration_by_hand() -> None:
    # Two bins of three rows: the third row ties with the second, so the first bin takes both.
    found = metric_curves(np.array([0.1, 0.2, 0.2, 0.7, 0.8, 0.9]), np.array([0.0, 0, 1, 1, 1, 0]), bins=2).calibration
    assert found is not None
    first, second = found.bins
    assert (first.rows, first.low_score, first.high_score) == (3, 0.1, 0.2)
    assert (first.mean_score, first.share_right) == pytest.approx((0.5 / 3, 1 / 3))
    assert (second.mean_score, second.share_right) == pytest.approx((0.8, 2 / 3))
    assert found.ece == pytest.approx((abs(0.5 / 3 - 1 / 3) + abs(0.8 - 2 / 3)) / 2)


@given(ROWS.filter(lambda rows: any(not math.isnan(score) for score, _ in rows)), st.integers(1, 12))
@settings(deadline=None)
def test_bins_hold_every_row_once_and_equal_scores_together(rows: list[tuple[float, float]], bins: int) -> None:
    scores, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = metric_curves(scores, labels, bins=bins).calibration
    assert found is not None
    assert len(found.bins) <= bins
    assert sum(each.rows for each in found.bins) == (~np.isnan(scores)).sum()
    for lower, upper in zip(found.bins, found.bins[1:], strict=False):
        assert lower.high_score < upper.low_score
    for each in found.bins:
        inside = (scores >= each.low_score) & (scores <= each.high_score)
        assert each.rows == inside.sum()
        assert each.share_right == pytest.approx(labels[inside].mean())


def test_correctness_scores_have_almost_no_error_and_bins_of_equal_size() -> None:
    calibration = metric_curves(*noisy()).calibration
    assert calibration is not None
    assert calibration.ece < 0.02
    assert [each.rows for each in calibration.bins] == [2000] * 10


def test_with_30_percent_failed_the_curves_are_those_of_the_rest() -> None:
    scores, labels = noisy(2000, failed=0.3)
    kept = ~np.isnan(scores)
    found, rest = metric_curves(scores, labels), metric_curves(scores[kept], labels[kept])
    assert found.brier == rest.brier
    assert found.calibration == rest.calibration
    assert found.roc is not None
    assert rest.roc is not None
    assert found.roc.auc == rest.roc.auc
    np.testing.assert_array_equal(found.roc.true_positive_rate, rest.roc.true_positive_rate)
    for name, counts in found.distribution.counts.items():
        np.testing.assert_array_equal(counts, rest.distribution.counts[name])


def test_histograms_by_label() -> None:
    found = metric_curves(np.array([0.0, 0.24, 0.25, 1.0, 0.6]), np.array([0, 0, 1, 1, 0.5]), histogram_bins=4)
    assert found.distribution.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert {name: counts.tolist() for name, counts in found.distribution.counts.items()} == {
        "wrong": [2, 0, 0, 0],
        "right": [0, 1, 0, 1],
        "between": [0, 0, 1, 0],
    }


def test_scores_beyond_one_are_no_probabilities_and_labels_beyond_one_no_classes() -> None:
    cosines = metric_curves(np.array([-0.5, 0.5, 0.9]), np.array([0.0, 1, 1]))
    assert cosines.calibration is not None
    assert math.isnan(cosines.calibration.ece)
    assert math.isnan(cosines.brier)
    assert cosines.distribution.edges[0] == -0.5
    graded = metric_curves(np.array([0.1, 0.5, 0.9]), np.array([1.0, 3, 5]))
    assert graded.roc is None
    assert graded.calibration is None
    assert {name: int(counts.sum()) for name, counts in graded.distribution.counts.items()} == {"low": 2, "high": 1}
    constant = metric_curves(np.full(3, 7.0), np.array([0.0, 1, 1]))
    assert constant.distribution.edges[[0, -1]].tolist() == [6.5, 7.5]
    with pytest.raises(ValueError, match="2 scores and 1 labels differ"):
        metric_curves(np.zeros(2), np.zeros(1))
