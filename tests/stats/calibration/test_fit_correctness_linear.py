"""The linear part of a fit: signs, absent features, weights, and what lies beyond the rows."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gradewire_stats.calibration.evaluate_fit import log_odds
from gradewire_stats.calibration.fit_correctness import linear_form
from gradewire_stats.calibration.labelled_rows import FittedFeature

FEATURES = (FittedFeature("up", 1, 0.0), FittedFeature("down", -1, 0.0), FittedFeature("free", 0, 0.0))
NO_TREES = {"roots": [], "feature": [], "threshold": [], "missing_left": [], "left": [], "right": [], "value": []}


def rows(count: int = 20_000) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Right with the log-odds 2 up - free + 1/2; "down" goes up with "up", against its direction."""
    draw = np.random.default_rng(7)
    values = draw.normal(size=(count, 3))
    values[:, 1] += values[:, 0]
    chance = 1 / (1 + np.exp(-(2 * values[:, 0] - values[:, 2] + 0.5)))
    return values, draw.random(count) < chance


def evaluated(constant: float, linear: dict[str, list[float]], values: NDArray[np.float64]) -> NDArray[np.float64]:
    features = [{"name": each.name, "width": 0.0} for each in FEATURES]
    return log_odds({"features": features, "base": constant, "trees": NO_TREES, "linear": linear}, values)


def test_it_finds_what_the_labels_were_drawn_from_but_for_what_directions_forbid() -> None:
    values, right = rows()
    constant, linear = linear_form(values, right, np.ones(len(right)), FEATURES, share=1.0)
    assert linear["weight"][0] == pytest.approx(2, abs=0.2)
    assert -0.05 < linear["weight"][1] <= 0  # alone it goes up with the labels
    assert linear["weight"][2] == pytest.approx(-1, abs=0.15)
    assert evaluated(constant, linear, np.zeros((1, 3)))[0] == pytest.approx(0.5, abs=0.15)


def test_a_share_halves_all_of_it() -> None:
    values, right = rows(500)
    whole, half = (linear_form(values, right, np.ones(500), FEATURES, share=share) for share in (1.0, 0.5))
    assert evaluated(*half, values) == pytest.approx(evaluated(*whole, values) / 2, abs=1e-6)


def test_beyond_the_rows_it_says_what_it_says_at_their_edge_and_absence_is_the_mean() -> None:
    values, right = rows(500)
    values[::5, 2] = np.nan
    constant, linear = linear_form(values, right, np.ones(500), FEATURES, share=1.0)
    far = np.array([[1e6, 0.0, 0.0], [linear["high"][0], 0.0, 0.0]])
    assert np.ptp(evaluated(constant, linear, far)) == pytest.approx(0)
    absent = np.array([[0.0, 0.0, np.nan], [0.0, 0.0, linear["missing"][2]]])
    assert np.ptp(evaluated(constant, linear, absent)) == pytest.approx(0)


def test_rows_count_by_their_weights_and_the_same_rows_give_the_same_numbers() -> None:
    values, right = rows(600)
    doubled = np.concatenate((values, values[:300])), np.concatenate((right, right[:300]))
    weights = np.where(np.arange(600) < 300, 2.0, 1.0)
    by_weight = linear_form(values, right, weights, FEATURES, share=1.0)
    by_rows = linear_form(*doubled, np.ones(900), FEATURES, share=1.0)
    # Edges are percentiles of rows, not of weights.
    assert by_weight[1]["weight"] == pytest.approx(by_rows[1]["weight"], abs=0.1)
    assert by_weight == linear_form(values, right, weights, FEATURES, share=1.0)


def test_a_feature_that_no_row_has_has_no_weight() -> None:
    values, right = rows(300)
    values[:, 0] = np.nan
    _, linear = linear_form(values, right, np.ones(300), FEATURES, share=1.0)
    assert (linear["weight"][0], linear["missing"][0]) == (0, 0)
