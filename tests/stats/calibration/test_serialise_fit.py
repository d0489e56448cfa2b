"""What is written of fitted trees says what scikit-learn says, and what a server says of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from gradewire_server.metrics.correctness.features import Feature
from gradewire_server.metrics.correctness.fit import CorrectnessFit, read_fit
from gradewire_stats.calibration.evaluate_fit import log_odds
from gradewire_stats.calibration.labelled_rows import FittedFeature
from gradewire_stats.calibration.serialise_fit import DistanceBand, Points, fit_form, tree_form

ROWS = 1500
DIRECTIONS = (1, -1, 0, 0)
NAMES = ("up", "down", "count", "rare")
BASIC = {"name", "monotone", "width"}


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float64]:
    """Continuous columns, one of few values, one that is mostly absent; absence matters, as the labels below know."""
    random = np.random.default_rng(3)
    rows = random.normal(size=(ROWS, len(NAMES)))
    rows[:, 2] = rows[:, 2].round()
    rows[random.random(ROWS) < 0.1, 0] = np.nan
    rows[random.random(ROWS) < 0.7, 3] = np.nan
    return rows


@pytest.fixture(scope="module")
def labels(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    noise = np.random.default_rng(4).normal(size=ROWS)
    up, down, count, rare = np.nan_to_num(rows).T
    return (up - down + count * up + np.isnan(rows[:, 3]) + 2 * rare + noise > 0.5).astype(np.bool_)


@pytest.fixture(scope="module")
def models(rows: NDArray[np.float64], labels: NDArray[np.bool_]) -> list[HistGradientBoostingClassifier]:
    return [
        HistGradientBoostingClassifier(
            max_iter=30, max_leaf_nodes=8, min_samples_leaf=10, monotonic_cst=DIRECTIONS, random_state=seed
        ).fit(rows[seed:], labels[seed:])
        for seed in (0, 1)
    ]


def columns(width: float) -> list[FittedFeature]:
    return [FittedFeature(name, monotone, width) for name, monotone in zip(NAMES, DIRECTIONS, strict=True)]


def test_with_steps_it_is_scikit_learns_own_prediction(rows: Any, models: Any) -> None:
    """At values that it has seen, at all thresholds' both sides, and with every column absent in turn."""
    absent = np.repeat(rows[:50], len(NAMES), axis=0)
    absent[np.arange(len(absent)), np.arange(len(absent)) % len(NAMES)] = np.nan
    form = tree_form(models[:1], columns(0.0))
    trees = form["trees"]
    edges = np.array(
        [
            [0.0 if f != c else t for c in range(len(NAMES))]
            for f, t in zip(trees["feature"], trees["threshold"], strict=True)
        ]
    )
    everything = np.concatenate((rows, absent, edges, np.nextafter(edges, np.inf), np.full((1, len(NAMES)), np.nan)))
    mine = 1 / (1 + np.exp(-log_odds(form, everything)))
    assert np.abs(mine - models[0].predict_proba(everything)[:, 1]).max() < 1e-8


def test_rules_and_doubts_are_stored_where_there_are_some(models: Any) -> None:
    plain, down, rule, doubt = columns(0.0)
    stored = tree_form(models, [plain, down, replace(rule, rules_out=True), replace(doubt, doubts=True)])["features"]
    flags = [{name: value for name, value in each.items() if name not in BASIC} for each in stored]
    assert flags == [{}, {}, {"rules_out": True}, {"doubts": True}]


def test_several_models_are_averaged_as_log_odds(rows: Any, models: Any) -> None:
    expected = np.mean([np.log(p[:, 1] / p[:, 0]) for p in (model.predict_proba(rows) for model in models)], axis=0)
    assert np.abs(log_odds(tree_form(models, columns(0.0)), rows) - expected).max() < 1e-7


@pytest.fixture(scope="module")
def served(rows: Any, labels: Any, models: Any) -> Callable[[float], tuple[dict[str, Any], CorrectnessFit]]:
    def build(width: float) -> tuple[dict[str, Any], CorrectnessFit]:
        trees = tree_form(models, columns(width))
        x = np.linspace(-6, 6, 50)
        points = Points(x, 1 / (1 + np.exp(-x)))
        probabilities = points(log_odds(trees, rows))
        provenance = {"metric_version": 1, "model": "m", "model_digest": "a" * 64, "rows": {"count": ROWS}}
        form = fit_form(trees, DistanceBand(points, probabilities, labels, np.ones(ROWS)), provenance)
        # The metric has them in another order, and one more.
        known = [Feature("other", 0), *map(Feature, reversed(NAMES), reversed(DIRECTIONS))]
        return form, read_fit(json.dumps(form), known, version=1)

    return build


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_a_server_says_the_same(served: Any, rows: Any, width: float) -> None:
    form, fit = served(width)
    reordered = np.concatenate((np.zeros((ROWS, 1)), rows[:, ::-1]), axis=1)
    assert np.abs(log_odds(form, rows) - [fit.raw(row) for row in reordered]).max() < 1e-10


def test_ramps_change_little_that_is_far_from_thresholds(served: Any, rows: Any) -> None:
    hard, soft = log_odds(served(0.0)[0], rows), log_odds(served(0.05)[0], rows)
    assert np.abs(hard - soft).max() > 0
    assert np.corrcoef(hard, soft)[0, 1] > 0.98


@pytest.mark.parametrize("column", [0, 1])
def test_directions_are_kept_through_ramps(served: Any, rows: Any, column: int) -> None:
    form, _ = served(0.3)
    raised = rows.copy()
    raised[:, column] += np.abs(np.random.default_rng(5).normal(size=ROWS))
    assert (DIRECTIONS[column] * (log_odds(form, raised) - log_odds(form, rows)) >= -1e-12).all()


LINE = Points(np.zeros(1), np.ones(1))


def regime(
    values: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> DistanceBand:
    return DistanceBand(LINE, values, right, np.ones(len(values)) if weights is None else weights)


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (9, 5), (300, 151), (20_000, 512)])
def test_order_statistics_are_kept_up_to_the_middle_and_rounded_towards_caution(count: int, kept: int) -> None:
    values = np.random.default_rng(6).random(count)
    both, right = np.tile(values, 2), np.arange(2 * count) < count
    form = fit_form({}, regime(both, right), {})["conformal"]
    for side, ordered in (("right", np.sort(values)), ("wrong", np.sort(values)[::-1])):
        ranks, found = form[side]["ranks"], np.array(form[side]["values"])
        assert form[side]["count"] == count
        assert ranks[0] == 1
        assert ranks[-1] == count // 2 + 1
        assert len(ranks) <= max(kept, 1)
        assert len(ranks) > kept * 0.9
        exact = ordered[np.array(ranks) - 1]
        assert ((found <= exact) if side == "right" else (found >= exact)).all()
        assert np.abs(found - exact).max() <= 1e-6


def test_certainty_of_wrong_verdicts_is_kept_from_the_highest_to_the_lowest() -> None:
    values = np.array([0.9, 0.8, 0.7, 0.6, 0.55, 0.2, 0.05])
    right = np.array([True, False, False, True, False, True, False])
    assert fit_form({}, regime(values, right), {})["conformal"]["mistaken"] == {
        "count": 4,
        "ranks": [1, 2, 3, 4],
        "values": [0.8, 0.8, 0.7, 0.55],  # two called right, one called wrong at 0.2, and one called right at 0.55
    }


def test_rows_that_weigh_double_count_as_two_and_those_of_no_weight_as_none() -> None:
    """Ten rows, five of which weigh nothing: those of the other five are the order statistics."""
    values, weights = np.arange(10) / 10, np.tile([2.0, 0.0], 5)
    both, right = np.tile(values, 2), np.arange(20) < 10
    form = fit_form({}, regime(both, right, np.tile(weights, 2)), {})["conformal"]["right"]
    assert form == {"count": 5, "ranks": [1, 2, 3], "values": [0.0, 0.2, 0.4]}


def test_rows_of_one_class_make_no_fit() -> None:
    with pytest.raises(ValueError, match="same label"):
        fit_form({}, regime(np.ones(3), np.ones(3, dtype=np.bool_)), {})


def test_models_that_the_form_cannot_hold_are_refused(rows: Any, labels: Any, models: Any) -> None:
    with pytest.raises(ValueError, match="3 columns"):
        tree_form(models, columns(0.0)[:3])
    three = HistGradientBoostingClassifier(max_iter=2).fit(rows, labels.astype(int) + (rows[:, 1] > 0))
    with pytest.raises(ValueError, match="two classes"):
        tree_form([three], columns(0.0))
    whole = np.nan_to_num(rows.round()) + 10
    kinds = HistGradientBoostingClassifier(max_iter=5, categorical_features=[2]).fit(whole, labels)
    with pytest.raises(ValueError, match="categorical"):
        tree_form([kinds], columns(0.0))
