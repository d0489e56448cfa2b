"""Fits of metric `correctness`: what is learnt, from whom, and that it is the same each time."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from gradewire_stats.calibration import fit_correctness as probability
from gradewire_stats.calibration.evaluate_fit import probabilities
from gradewire_stats.calibration.fit_correctness import CorrectnessFitResult, fit_correctness
from gradewire_stats.calibration.labelled_rows import FOLDS, FittedFeature, checked, folds_of_keys, question_keys
from gradewire_stats.calibration.serialise_fit import tree_form

# A fit takes seconds; beside other programs its threads wait for each other.
pytestmark = pytest.mark.timeout(600)


FEATURES = (FittedFeature("match", 1, 0.02), FittedFeature("noise", 0, 0.0), FittedFeature("refusals", -1, 0.0))
PROVENANCE = {"metric_version": 1, "model": "m", "model_digest": "0" * 64, "rows": {"count": 480}}


def rows(count: int = 480, seed: int = 3) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Four rows a question; right where match and a little noise exceed one half and nothing is refused."""
    draw = np.random.default_rng(seed)
    values = np.column_stack([draw.uniform(size=count), draw.uniform(size=count), draw.uniform(size=count) < 0.1])
    values[draw.uniform(size=count) < 0.1, 1] = np.nan
    right = (values[:, 0] + 0.15 * draw.standard_normal(count) > 0.5) & (values[:, 2] == 0)
    return values, right.astype(np.float64), [f"Question {row // 4}?" for row in range(count)]


def fitted(*data: Any) -> CorrectnessFitResult:
    return fit_correctness(checked(FEATURES, *(data or rows())), provenance=PROVENANCE)


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """Thirty small trees tell these rows apart, so 300 would only take longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(probability.TREES, "max_iter", 30)
        patch.setitem(probability.TREES, "max_bins", 32)
        yield


@pytest.fixture(scope="module")
def result(few_trees: None) -> CorrectnessFitResult:  # noqa: ARG001 - its setting has to be there when this fits
    """Return a fit of the usual rows."""
    return fitted()


def test_a_fit_tells_right_from_wrong_on_rows_it_has_not_seen(result: CorrectnessFitResult) -> None:
    """Noise of 0.15 around the cut makes about a tenth of the verdicts wrong for any rule."""
    values, labels, _ = rows(2000, seed=4)
    found = probabilities(result.fit, values)
    hits = np.mean((found >= 0.5) == (labels >= 0.5))
    assert hits > 0.83
    assert result.quality["accuracy"] == pytest.approx(hits, abs=0.06)
    assert result.quality["ece"] < 0.1
    assert result.warnings == ("there are only 480 rows, and probabilities are inaccurate with fewer than 1000",)
    assert {key: result.fit[key] for key in PROVENANCE} == PROVENANCE


def test_the_same_rows_give_the_same_fit(result: CorrectnessFitResult) -> None:
    assert json.dumps(fitted().fit) == json.dumps(result.fit)


def test_rows_of_one_source_give_the_trees_that_their_equal_weights_give() -> None:
    few = checked(FEATURES, *rows(240))
    trees = HistGradientBoostingClassifier(**probability.TREES, monotonic_cst=[each.monotone for each in FEATURES])
    trees.fit(few.values, few.right, sample_weight=few.weights)
    expected = tree_form([trees], FEATURES, weight=1 - probability.LINEAR_SHARE)["trees"]
    assert probability.fitted_model(few)["trees"] == expected


def test_probabilities_keep_the_directions(result: CorrectnessFitResult) -> None:
    fit = result.fit
    values, _, _ = rows(200, seed=5)
    better, worse = values.copy(), values.copy()
    better[:, 0] += 0.1
    worse[:, 2] += 1
    # Shares of ramps are rounded, so that equal sums may differ in the last bit.
    assert (probabilities(fit, better) >= probabilities(fit, values) - 1e-12).all()
    assert (probabilities(fit, worse) <= probabilities(fit, values) + 1e-12).all()


@pytest.mark.usefixtures("few_trees")
def test_labels_that_features_say_nothing_about_are_no_fit_to_be_proud_of() -> None:
    """Figures are held out: trees that learn their rows by heart do not look good in them."""
    values, labels, questions = rows()
    shuffled = np.random.default_rng(0).permutation(labels)
    try:
        result = fitted(values, shuffled, questions)
    except ValueError as error:
        assert "no fit is possible" in str(error)  # noqa: PT017 - either is right, depending on chance
    else:
        assert abs(result.quality["auc"] - 0.5) < 0.12


def test_rows_of_a_question_are_in_one_fold() -> None:
    folds = folds_of_keys(question_keys([f"Question {row % 40}?" for row in range(400)]))
    assert sorted(set(folds.tolist())) == list(range(FOLDS))
    assert all(len(set(folds[row::40].tolist())) == 1 for row in range(40))
    # A row without a question is one of its own.
    assert len(set(folds_of_keys(question_keys([""] * 16)).tolist())) == FOLDS


def test_folds_do_not_depend_on_the_order_of_rows() -> None:
    questions = [f"question {row}" for row in range(50)]
    assert folds_of_keys(questions[::-1]).tolist() == folds_of_keys(questions)[::-1].tolist()


@pytest.mark.usefixtures("few_trees")
def test_a_feature_that_no_row_has_is_left_alone() -> None:
    values, labels, questions = rows()
    values[:, 1] = np.nan
    fit = fitted(values, labels, questions).fit
    assert 1 not in fit["trees"]["feature"]
    assert fit["linear"]["weight"][1] == 0
    there = values.copy()
    there[:, 1] = 7.0
    assert (probabilities(fit, there) == probabilities(fit, values)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, _, q: (v, np.ones(len(v)), q), "0 answers are wrong"),
        (lambda v, _, q: (v, np.zeros(len(v)), q), "0 answers are right"),
        (lambda v, y, q: (v, y + 0.7, q), "from 0 to 1"),
        (lambda v, y, q: (v, np.where(np.arange(len(y)) == 0, np.nan, y), q), "from 0 to 1"),
        (lambda v, y, q: (v, y[1:], q), "480 rows, 479 labels and 480 questions"),
        (lambda v, y, q: (np.where(v > 0.999, np.inf, v), y, q), "infinite"),
        (lambda v, y, q: (v, y, ["one question"] * len(q)), "too few questions"),
    ],
)
def test_rows_that_nothing_can_be_fitted_to_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(*change(*rows()))
