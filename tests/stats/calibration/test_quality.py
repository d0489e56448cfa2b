"""Calibration error, Brier score and risk at coverage, worked out on paper."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.features import INPUT_KIND, Feature
from gradewire_server.metrics.correctness.fit import read_fit
from gradewire_stats.calibration import fit_correctness as probability
from gradewire_stats.calibration import quality
from gradewire_stats.calibration.evaluate_fit import far_shares, probabilities, uncertain
from gradewire_stats.calibration.fit_correctness import fit_correctness, fitted_form
from gradewire_stats.calibration.labelled_rows import FittedFeature, InputKinds, LabelledFeatures, checked
from gradewire_stats.calibration.quality import (
    Abstention,
    abstention,
    accuracy_at_coverage,
    brier_score,
    calibration_error,
    measured,
    transfer_statistics,
    transfer_warnings,
)

PROBABILITIES = np.array([0.9, 0.1, 0.6, 0.2, 0.8])
RIGHT = np.array([True, False, False, True, True])


def test_calibration_error_of_two_bins() -> None:
    """Sorted: .1 .2 .6 | .8 .9. Means .3 and .85, shares of right 1/3 and 1: (3 · .0333 + 2 · .15) / 5 = .08."""
    assert calibration_error(PROBABILITIES, RIGHT, bins=2) == pytest.approx(0.08)


def test_more_bins_than_rows_are_as_many_as_rows() -> None:
    """|.1| + |.8| + |.6| + |.2| + |.1| = 1.8, over 5."""
    assert calibration_error(PROBABILITIES, RIGHT) == pytest.approx(0.36)


def test_brier_score() -> None:
    """(.01 + .01 + .36 + .64 + .04) / 5."""
    assert brier_score(PROBABILITIES, RIGHT) == pytest.approx(0.212)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1), st.integers(1, 20))
def test_errors_are_shares(rows: list[tuple[float, bool]], bins: int) -> None:
    probabilities, right = np.array([p for p, _ in rows]), np.array([r for _, r in rows])
    assert -1e-12 <= calibration_error(probabilities, right, bins=bins) <= 1 + 1e-12
    assert 0 <= brier_score(probabilities, right) <= 1
    assert calibration_error(right.astype(float), right, bins=bins) == pytest.approx(0, abs=1e-12)


def test_risk_at_coverage() -> None:
    """By confidence: .9 right, .1 right, .2 wrong and .8 right (both .8, in order of rows), .6 wrong."""
    accuracies = accuracy_at_coverage(PROBABILITIES, RIGHT, (1.0, 0.6, 0.4, 0.01))
    assert accuracies == pytest.approx([3 / 5, 2 / 3, 1.0, 1.0])


# A fit takes seconds; beside other programs its threads wait for each other.
pytestmark = pytest.mark.timeout(600)

FEATURES = (FittedFeature("match", 1, 0.02), FittedFeature("noise", 0, 0.0))
PROVENANCE = {"metric_version": 1, "model": "m", "model_digest": "0" * 64}
NAMES = INPUT_KIND[:2]


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(probability.TREES, "max_iter", 10)
    # Most of a fit's time goes into the usual 255 quantiles of each feature.
    monkeypatch.setitem(probability.TREES, "max_bins", 8)


def source(name: str, count: int, *, cut: float, kind: float, noise: float = 0.15, seed: int = 3) -> LabelledFeatures:
    """Rows right where match and noise exceed the cut; `kind` is what tells its items from others."""
    draw = np.random.default_rng(seed)
    values = np.column_stack([draw.uniform(size=count), draw.uniform(size=count)])
    right = values[:, 0] + noise * draw.standard_normal(count) > cut
    shapes = InputKinds(NAMES, np.column_stack([kind + draw.normal(size=count), draw.normal(size=count)]))
    questions = [f"{name}, question {row // 2}?" for row in range(count)]
    return checked(FEATURES, values, right.astype(np.float64), questions, sources=[name] * count, shapes=shapes)


def joined(*parts: LabelledFeatures) -> LabelledFeatures:
    shapes = np.concatenate([part.shapes.values for part in parts if part.shapes])
    return LabelledFeatures(
        FEATURES,
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.right for part in parts]),
        [key for part in parts for key in part.keys],
        [each for part in parts for each in part.sources],
        InputKinds(NAMES, shapes),
    )


def test_every_source_has_the_same_weight() -> None:
    rows = joined(source("a", 300, cut=0.5, kind=0), source("b", 100, cut=0.5, kind=0))
    assert rows.weights[:300].sum() == pytest.approx(rows.weights[300:].sum())
    assert rows.weights.mean() == pytest.approx(1)


def test_many_rows_of_one_source_do_not_decide_alone() -> None:
    """Between the cuts of 0.35 and 0.65 the larger source says "right"; of equal weight it is undecided."""
    large, small = source("a", 1200, cut=0.35, kind=0), source("b", 300, cut=0.65, kind=0, seed=4)
    rows = joined(large, small)
    between = np.array([[0.5, 0.5]])
    shapes = np.zeros((1, 2))
    of_one = replace(rows, sources=["a"] * len(rows.right))
    assert probabilities(fitted_form(of_one), between, shapes)[0] > 0.6
    assert probabilities(fitted_form(rows), between, shapes)[0] == pytest.approx(0.5, abs=0.12)


def test_a_source_is_left_out_with_its_questions() -> None:
    one, other = source("a", 300, cut=0.5, kind=0), source("b", 300, cut=0.5, kind=0, seed=5)
    seen: list[LabelledFeatures] = []

    def fit(rows: LabelledFeatures) -> dict[str, Any]:
        seen.append(rows)
        return fitted_form(rows)

    shared = replace(other, keys=[*one.keys[:100], *other.keys[100:]])
    found = list(transfer_statistics(joined(one, shared), fit))
    assert [(each.source, each.rows) for each in found] == [("a", 300), ("b", 300)]
    assert [set(rows.sources) for rows in seen] == [{"b"}, {"a"}]
    assert [len(rows.right) for rows in seen] == [200, 200]
    assert all(each.auc > 0.9 for each in found)


def test_a_fit_that_does_not_travel_is_told_with_the_rule() -> None:
    """What is right in one source is wrong in the other half of the time: between 0.2 and 0.8 they disagree."""
    rows = joined(
        source("easy", 400, cut=0.2, kind=0, noise=0.02), source("hard", 400, cut=0.8, kind=0, noise=0.02, seed=6)
    )
    result = fit_correctness(rows, provenance=PROVENANCE)
    assert [each.transfers for each in result.transfer] == [False, False]
    told = [warning for warning in result.warnings if "does not transfer" in warning]
    assert len(told) == 2
    assert "at most 0.1 is good" in told[0]
    assert "at least 33% are needed" in told[0]
    alike = joined(source("a", 400, cut=0.5, kind=0), source("b", 400, cut=0.5, kind=0, seed=6))
    assert [each.ece < 0.1 for each in fit_correctness(alike, provenance=PROVENANCE).transfer] == [True, True]


def test_one_source_is_not_left_out() -> None:
    result = fit_correctness(source("a", 400, cut=0.5, kind=0), provenance=PROVENANCE)
    assert result.transfer == ()
    assert "far" not in result.fit


def test_far_from_one_source_no_verdict_is_trusted_and_near_it_most_are() -> None:
    rows = source("a", 600, cut=0.5, kind=0)
    form = fitted_form(rows)
    assert rows.shapes is not None
    found = probabilities(form, rows.values, rows.shapes.values)
    assert uncertain(form, found, 0.9, rows.shapes.values).mean() < 0.6
    assert uncertain(form, found, 0.9, rows.shapes.values + 100).all()
    assert probabilities(form, rows.values, rows.shapes.values + 100) == pytest.approx(found, abs=1e-12)


def test_far_items_get_what_log_odds_meant_for_sources_that_were_left_out() -> None:
    """Each source is of a kind of its own, and says nothing of the other: far away a probability is near one half."""
    rows = joined(source("a", 400, cut=0.2, kind=0, noise=0.02), source("b", 400, cut=0.8, kind=30, noise=0.02, seed=6))
    form = fitted_form(rows)
    high = np.array([[0.7, 0.5]])
    near, far = (probabilities(form, high, np.array([[place, 0.0]]))[0] for place in (0.0, 400.0))
    assert far_shares(form, np.array([[0.0, 0.0], [400.0, 0.0]])).tolist() == [0.0, 1.0]
    assert abs(far - 0.5) < abs(near - 0.5) + 1e-9


def test_a_server_says_the_same_of_rows_near_and_far() -> None:
    rows = joined(source("a", 400, cut=0.4, kind=0), source("b", 400, cut=0.6, kind=3, seed=6))
    form = fit_correctness(rows, provenance=PROVENANCE).fit
    served = read_fit(json.dumps(form), [Feature(each.name, each.monotone, each.width) for each in FEATURES], version=1)
    values = rows.values.copy()
    values[::7, 1] = np.nan
    assert rows.shapes is not None
    shapes = rows.shapes.values * 3
    found = probabilities(form, values, shapes)
    flags = uncertain(form, found, 0.9, shapes)
    padded = np.zeros((len(shapes), len(INPUT_KIND)))
    padded[:, : len(NAMES)] = shapes
    for row in range(0, len(values), 9):
        place = served.position_of(padded[row])
        assert served(values[row], place) == pytest.approx(found[row], abs=1e-10)
        assert served.band(0.9, place).holds(found[row]) == flags[row]


def test_the_same_rows_give_the_same_fit() -> None:
    rows = joined(source("a", 300, cut=0.4, kind=0), source("b", 300, cut=0.6, kind=3, seed=6))
    assert json.dumps(fitted_form(rows)) == json.dumps(fitted_form(rows))


def found(*values: float) -> NDArray[np.float64]:
    return np.array(values)


def test_figures_worked_out_on_paper() -> None:
    right = np.array([True, False, False, True])
    figures = measured("s", found(0.9, 0.6, 0.2, 0.3), right, np.array([False, True, False, False]))
    assert (figures.source, figures.rows, figures.accuracy, figures.auc) == ("s", 4, 0.5, 0.75)
    assert (figures.uncertain, figures.held) == (0.25, 0.5)
    assert figures.accuracy_certain == pytest.approx(2 / 3)
    assert figures.at_coverage == pytest.approx((0.5, 2 / 3, 1.0))
    assert figures.transfers == (figures.ece <= 0.1)


def test_figures_that_are_not_defined_are_no_numbers() -> None:
    figures = measured("s", found(0.9, 0.8), np.array([True, True]), np.array([True, True]))
    assert all(map(math.isnan, (figures.pearson, figures.auc, figures.accuracy_certain, figures.held)))
    assert list(transfer_warnings((replace(figures, ece=0.05),))) == []
    (told,) = transfer_warnings((replace(figures, ece=0.3),))
    assert "mean error of 0.30" in told
    assert "no verdict is wrong" in told
    assert "nan" not in told


def test_rows_that_a_rule_overrules_are_uncertain_as_they_are_when_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Best matches of one source are ruled out; of the other source nothing is, so that no fit learns of it."""
    rows = joined(source("a", 300, cut=0.5, kind=0), source("b", 300, cut=0.5, kind=0, seed=5))
    rules = np.where((rows.values[:, 0] > 0.9) & rows.of_source("b"), 1.0, 0.0)
    ruled = FittedFeature("ruled", -1, 0.0, rules_out=True)
    rows = replace(rows, features=(*FEATURES, ruled), values=np.column_stack([rows.values, rules]))
    monkeypatch.setattr(quality, "uncertain", lambda _, found, *__: np.zeros(len(found), np.bool_))
    of_a, of_b = transfer_statistics(rows, fitted_form)
    assert rules.sum() > 10
    assert (of_a.uncertain, of_b.uncertain) == (0, pytest.approx(rules.sum() / 300))


def test_doubted_rows_are_uncertain_as_they_are_when_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the second source has doubted rows, its best matches, so no fit can learn what a doubt means."""
    rows = joined(source("a", 300, cut=0.5, kind=0), source("b", 300, cut=0.5, kind=0, seed=5))
    doubts = np.where((rows.values[:, 0] > 0.9) & rows.of_source("b"), 1.0, 0.0)
    doubted = FittedFeature("doubted", -1, 0.0, doubts=True)
    rows = replace(rows, features=(*FEATURES, doubted), values=np.column_stack([rows.values, doubts]))
    monkeypatch.setattr(quality, "uncertain", lambda _, found, *__: np.zeros(len(found), np.bool_))
    of_a, of_b = transfer_statistics(rows, fitted_form)
    assert doubts.sum() > 10
    assert rows.doubts.tolist() == (doubts == 1).tolist()
    assert (of_a.uncertain, of_b.uncertain) == (0, pytest.approx(doubts.sum() / 300))


def test_a_band_leaves_doubted_rows_to_the_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three in ten of the best matches are wrong, and doubted. The fit must not learn of it, so the band would have to.

    Where nothing doubts them, the band holds their probabilities.
    """
    rows = source("a", 600, cut=0.4, kind=0)
    doubts = (rows.values[:, 0] > 0.7) & (np.random.default_rng(8).uniform(size=600) < 0.3)
    feature = FittedFeature("doubted", -1, 0.0, doubts=True)
    values = np.column_stack([rows.values, doubts.astype(float)])
    rows = replace(rows, features=(*FEATURES, feature), values=values, right=rows.right & ~doubts)
    fit_model = probability.fitted_model
    ignorant = np.array([1.0, 1.0, 0.0])
    monkeypatch.setattr(
        probability, "fitted_model", lambda found: fit_model(replace(found, values=found.values * ignorant))
    )
    undoubted = replace(rows, features=(*FEATURES, replace(feature, doubts=False)))
    narrow, wide = (fitted_form(each, PROVENANCE)["conformal"] for each in (rows, undoubted))
    assert narrow["right"] == wide["right"]
    assert narrow["wrong"]["values"][5] < wide["wrong"]["values"][5] - 0.1
    assert max(wide["wrong"]["values"]) > 0.6


def test_more_sources_than_can_be_left_out_are_an_error_that_says_what_to_do() -> None:
    rows = source("a", 300, cut=0.5, kind=0)
    many = replace(rows, sources=[f"row {row}" for row in range(300)])
    with pytest.raises(ValueError, match=r"300 sources.*at most 24.*--source"):
        fit_correctness(many, provenance=PROVENANCE)


def test_a_small_source_that_weighs_as_much_as_a_large_one_is_told() -> None:
    rows = joined(source("large", 400, cut=0.5, kind=0), source("small", 100, cut=0.5, kind=0, seed=6))
    rows = rows.where(np.arange(500) < 420)
    told = fit_correctness(rows, provenance=PROVENANCE, with_transfer=False).warnings
    assert any("source 'small' has only 20 rows" in each and "10.5 times the mean" in each for each in told)
    assert not any("source 'large'" in each for each in told)


def test_sources_of_one_kind_give_a_distance_that_a_server_reads() -> None:
    """All items are alike: nothing lies between near and far, and a fit without a ramp would be refused."""
    rows = joined(source("a", 300, cut=0.5, kind=0), source("b", 300, cut=0.5, kind=0, seed=5))
    alike = np.zeros((600, 2))
    alike[::10, 0] = 0.0005  # less than a server's least ramp
    form = fitted_form(replace(rows, shapes=InputKinds(NAMES, alike)), PROVENANCE)
    known = [Feature(each.name, each.monotone, each.width) for each in FEATURES]
    served = read_fit(json.dumps(form), known, version=1)
    assert served.position_of(np.zeros(len(INPUT_KIND))) is not None


def test_abstention_worked_out_by_hand() -> None:
    """Five judged rows: two of the three certain ones are right, and one of the two uncertain ones."""
    verdicts = np.array([1, 0, 1, 1, 0, math.nan])
    certain = np.array([True, True, True, False, False, True])
    labels = np.array([1.0, 0.0, 0.4, 0.5, 1.0, 1.0])
    found = abstention(verdicts, certain, labels)
    assert found == Abstention(judged=5, uncertain=2, accuracy=3 / 5, accuracy_certain=pytest.approx(2 / 3))


def test_without_any_certain_row_there_is_no_accuracy_of_them() -> None:
    found = abstention(np.array([1.0, 0.0]), np.array([False, False]), np.array([1.0, 1.0]))
    assert found is not None
    assert (found.uncertain, found.accuracy) == (2, 0.5)
    assert math.isnan(found.accuracy_certain)


@pytest.mark.parametrize(
    ("verdicts", "certain", "labels"),
    [
        ([1.0, 0.0], [True, True], [1.0, 1.0]),
        ([1.0, math.nan], [True, False], [1.0, 1.0]),  # an uncertain row without a verdict is none
        ([math.nan, math.nan], [False, False], [1.0, 1.0]),
        ([1.0, 0.0], [True, False], [1.0, 3.0]),  # nobody said from where 1 to 5 is right
        ([], [], []),
    ],
)
def test_there_is_nothing_to_tell(verdicts: list[float], certain: list[bool], labels: list[float]) -> None:
    assert abstention(np.array(verdicts), np.array(certain, dtype=bool), np.array(labels)) is None
