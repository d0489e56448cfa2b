"""Distances from fitted rows, rules and doubts: worked out on paper, and as a server computes them."""

import json

import numpy as np
import pytest
from tests.support.engines.correctness_fits import FORM

from gradewire_server.metrics.correctness.features import INPUT_KIND, Feature
from gradewire_server.metrics.correctness.fit import read_fit
from gradewire_server.metrics.correctness.fit_form import DistanceForm
from gradewire_stats.calibration.evaluate_fit import distances, doubted, overruled, probabilities, ramp
from gradewire_stats.calibration.serialise_fit import KEPT_ROWS, neighbourhood, scales


def test_the_mean_distance_to_the_closest_rows() -> None:
    kept = {"scale": [2.0, 0.5], "rows": [[0.0, 0.0], [3.0, 4.0], [30.0, 0.0]], "nearest": 2}
    assert distances(kept, np.array([[0.0, 0.0], [6.0, 2.0]])) == pytest.approx([2.5, 2.5])
    assert distances({**kept, "nearest": 9}, np.zeros((1, 2))) == pytest.approx([35 / 3])
    assert distances(kept, np.empty((0, 2))).shape == (0,)


def test_near_and_far_are_joined_by_a_line() -> None:
    assert ramp(np.array([0.0, 1.0, 1.5, 3.0, 9.0]), 1.0, 3.0).tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]


def test_every_source_is_there_with_as_many_rows() -> None:
    draw = np.random.default_rng(1)
    shapes, sources = draw.normal(size=(3000, 3)), ["large"] * 2800 + ["small"] * 200
    shapes[2800:, 0] += 50
    keys = [f"question {row}" for row in range(3000)]
    kept = neighbourhood(shapes, scales(shapes), keys, sources)
    assert len(kept["rows"]) == KEPT_ROWS
    assert (np.array(kept["rows"])[:, 0] * kept["scale"][0] > 25).sum() == KEPT_ROWS // 2
    assert kept == neighbourhood(shapes, scales(shapes), keys, sources)


def test_numbers_that_do_not_vary_are_not_blown_up() -> None:
    kept = neighbourhood(np.zeros((9, 2)), scales(np.zeros((9, 2))), [""] * 9, [""] * 9)
    assert distances(kept, np.array([[0.1, 0.0]])) == pytest.approx([0.1 / 0.25])


def test_a_server_computes_the_same() -> None:
    draw = np.random.default_rng(2)
    shapes = draw.normal(size=(500, 4))
    kept = neighbourhood(shapes, scales(shapes), [str(row) for row in range(500)], [""] * 500)
    served = DistanceForm.model_validate({**kept, "shape": list(INPUT_KIND[:4]), "near": 0.5, "far": 2.0})
    others = 2 * draw.normal(size=(50, 4))
    mine = distances(kept, others)
    assert mine == pytest.approx([served.distance(each) for each in others], abs=1e-6)
    assert ramp(mine, 0.5, 2.0) == pytest.approx([served.far_share(each) for each in mine], abs=1e-6)


def test_a_server_rules_and_doubts_the_same() -> None:
    """On random rows; the metric has the features in another order, and one more."""
    flagged = [{"name": "denied", "rules_out": True}, {"name": "retracted", "doubts": True}]
    flagged += [{"name": "contrasted", "doubts": True}]
    more = [{"monotone": -1, "width": 0.0} | each for each in flagged]
    form = FORM | {"features": [*FORM["features"], *more]}
    known = [Feature("unread", 0), *(Feature(**each) for each in reversed(form["features"]))]
    served = read_fit(json.dumps(form), known, version=FORM["metric_version"])
    draw = np.random.default_rng(4)
    rows = np.column_stack([draw.uniform(0.6, 1, 400), draw.uniform(size=400), draw.uniform(0, 2, (400, 3)) ** 2])
    rows[draw.uniform(size=rows.shape) < 0.2] = np.nan
    theirs = np.column_stack([np.zeros(400), rows[:, ::-1]])
    found = probabilities(form, rows)
    assert found == pytest.approx([served(row) for row in theirs], abs=1e-9)
    mine = doubted(form, rows, found)
    assert mine.tolist() == [served.doubted(row, each) for row, each in zip(theirs, found, strict=True)]
    assert overruled(form, rows).tolist() == [served.overruled(row) for row in theirs]
    assert 20 < mine.sum() < 380
    assert not mine[found < 0.5].any()
