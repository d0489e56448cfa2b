"""A level: against a search over all offsets and slopes, a drawn truth, and the server that reads the levelled form."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.correctness.features import INPUT_KIND, Feature
from gradewire_server.metrics.correctness.fit import ItemPosition, read_fit
from gradewire_stats.calibration.level import (
    LEAST_ROWS,
    Level,
    LevelRows,
    check_level_rows,
    cross_fitted,
    fit_level,
    levelled_form,
)
from gradewire_stats.calibration.serialise_fit import DistanceBand, Points, distance_band_form


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x, float)))


def drawn(count: int, level: Level, *, seed: int = 0, shares: bool = False) -> LevelRows:
    """Rows whose labels have the probabilities of the near map, and of the far one, at this level."""
    random = np.random.default_rng(seed)
    near, far = sigmoid(random.normal(0.5, 2.0, count)), sigmoid(random.normal(0.0, 1.0, count))
    share = random.random(count) if shares else np.zeros(count)
    right = random.random(count) < (1 - share) * level(near) + share * level(far)
    keys = [f"question {row}" for row in range(count)]
    return LevelRows(near, far, share, np.zeros((count, 1)), right, keys, np.zeros(count, bool))


def test_log_odds_are_shifted_and_stretched() -> None:
    # ln(.7 / .3) = .8473; 1 + 2 · .8473 = 2.6946
    found = Level(1.0, 2.0)(np.array([0.0, 0.5, 0.7, 1.0]))
    assert found == pytest.approx([0.0, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2.694596)), 1.0], abs=1e-6)
    assert Level(0.0, 1.0)(np.array([0.2, 0.9])) == pytest.approx([0.2, 0.9])


@pytest.mark.parametrize("rows", [drawn(50, Level(-1.0, 0.6), seed=3, shares=shares) for shares in (False, True)])
def test_the_level_is_the_most_probable_of_a_search(rows: LevelRows) -> None:
    best, found = math.inf, (math.nan, math.nan)
    for offset in np.arange(-1.5, 1.5, 0.01):
        for slope in np.exp(np.arange(-1.2, 0.8, 0.02)):
            near, far = (sigmoid(offset + slope * np.log(p / (1 - p))) for p in (rows.near, rows.far))
            p = (1 - rows.share) * near + rows.share * far
            loss = -np.log(np.where(rows.right, p, 1 - p)).sum() + offset**2 / 0.5 + np.log(slope) ** 2 / 0.32
            if loss < best:
                best, found = loss, (offset, slope)
    level = fit_level(rows)
    assert level.offset == pytest.approx(found[0], abs=0.011)
    assert level.slope == pytest.approx(found[1], rel=0.021)


def test_many_rows_give_back_the_level_that_drew_them() -> None:
    found = fit_level(drawn(40_000, Level(-1.2, 0.7), shares=True))
    assert found.offset == pytest.approx(-1.2, abs=0.05)
    assert found.slope == pytest.approx(0.7, abs=0.03)


PROBABILITIES = st.floats(0, 1)
ANY_ROWS = st.lists(st.tuples(PROBABILITIES, PROBABILITIES, st.floats(0, 1), st.booleans()), min_size=1, max_size=30)


@given(ANY_ROWS)
@settings(max_examples=example_count(60), deadline=None)
def test_no_rows_bring_nonsense(rows: list[tuple[float, float, float, bool]]) -> None:
    near, far, share, right = (np.array(column) for column in zip(*rows, strict=True))
    keys, nothing = [str(row) for row in range(len(rows))], np.zeros((len(rows), 1))
    given_rows = LevelRows(near, far, share, nothing, right, keys, np.zeros(len(rows), bool))
    level = fit_level(given_rows)
    assert level.slope > 0
    # No row can move the offset further than the sum of all gradients, 1 for each row, against the prior.
    assert abs(level.offset) <= len(rows) * 0.25 + 1e-5
    found = given_rows.probabilities(level)
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()
    order = np.argsort(near, kind="stable")
    assert (np.diff(level(near[order])) >= 0).all()


def test_rows_of_one_class_move_the_level_only_so_far() -> None:
    count = LEAST_ROWS
    high, nothing = np.full(count, 0.9), np.zeros(count)
    rows = LevelRows(high, high, nothing, nothing[:, None], nothing > 0, ["q"] * count, nothing > 0)
    level = fit_level(rows)
    assert -2.5 < level.offset < -0.5
    assert 0.05 < level.slope < 1.0


def test_what_a_rule_calls_wrong_stays_so_and_does_not_count() -> None:
    rows = drawn(60, Level(0.8, 1.0), seed=5)
    rules = (np.arange(60) % 3 == 0).astype(float)[:, None]
    ruled = replace(rows, rules=rules)
    assert fit_level(ruled) == fit_level(rows.where(rules[:, 0] < 1))
    high = ruled.probabilities(Level(3.0, 1.0))
    assert high[rules[:, 0] == 1].max() <= 0.4
    assert high[rules[:, 0] == 0].max() > 0.9


def test_a_row_is_measured_at_a_level_that_has_not_seen_its_question() -> None:
    rows = drawn(60, Level(-1.0, 1.0), seed=7)
    keys = [f"question {row // 2}" for row in range(60)]
    rows = replace(rows, keys=keys)
    found = cross_fitted(rows)
    changed = np.array(rows.right)
    changed[:2] = ~changed[:2]
    again = cross_fitted(replace(rows, right=changed))
    assert again[:2] == pytest.approx(found[:2], abs=1e-9)
    assert np.abs(again[2:] - found[2:]).max() > 1e-4


@pytest.mark.parametrize(
    ("count", "right", "says"),
    [
        (LEAST_ROWS - 1, [True, False], f"19 rows are too few for a level. Label at least {LEAST_ROWS}"),
        (LEAST_ROWS, [True], "all rows are right, but a level needs right and wrong answers"),
        (LEAST_ROWS, [False], "all rows are wrong, but a level needs right and wrong answers"),
    ],
)
def test_too_few_rows_and_rows_of_one_class_are_refused(count: int, right: list[bool], says: str) -> None:
    rows = drawn(count, Level(0.0, 1.0))
    given_rows = replace(rows, right=np.resize(np.array(right), count))
    with pytest.raises(ValueError, match=says):
        check_level_rows(given_rows)
    check_level_rows(drawn(LEAST_ROWS, Level(0.0, 1.0)))


FEATURE = Feature("keyword", 1, 0.1)


def stored() -> dict[str, Any]:
    """A form whose log-odds are four times its only feature, minus two; the far map halves them."""
    random = np.random.default_rng(11)
    steps = np.linspace(-8, 8, 161)
    held = sigmoid(random.normal(0, 2, 4000))
    right = random.random(4000) < held
    bands = [
        distance_band_form(DistanceBand(Points(steps, sigmoid(scale * steps).round(9)), held, right, np.ones(4000)))
        for scale in (1.0, 0.5)
    ]
    trees: dict[str, list[Any]] = {"roots": [0], "feature": [-1], "threshold": [0.0], "missing_left": [False]}
    trees |= {"left": [-1], "right": [-1], "value": [0.0]}
    return {
        "format": 1,
        "metric_version": 1,
        "model": "m",
        "model_digest": "0" * 64,
        "features": [{"name": FEATURE.name, "monotone": 1, "width": 0.1}],
        "base": -2.0,
        "trees": trees,
        "linear": {"weight": [4.0], "low": [0.0], "high": [1.0], "missing": [0.5]},
        **bands[0],
        "distance": {
            "shape": [INPUT_KIND[0]],
            "scale": [1.0],
            "rows": [[0.0]],
            "nearest": 1,
            "near": 1.0,
            "far": 2.0,
        },
        "far": bands[1],
    }


def test_a_server_reads_the_levelled_form_and_says_the_same() -> None:
    form, random = stored(), np.random.default_rng(13)
    values, shapes = random.random((60, 1)), random.random((60, 1)) * 3
    level = Level(-0.7, 1.4)
    plain = LevelRows.of_form(form, values, shapes, random.random(60) < 0.5, [str(row) for row in range(60)])
    assert plain.near == pytest.approx(sigmoid(4 * values[:, 0] - 2), abs=1e-3)
    assert plain.far == pytest.approx(sigmoid(2 * values[:, 0] - 1), abs=1e-3)
    assert plain.share == pytest.approx((shapes[:, 0] - 1).clip(0, 1), abs=1e-6)
    found = levelled_form(form, level, plain, cross_fitted(plain))
    assert {name for name in found if found[name] != form[name]} == {"map", "conformal", "far"}
    served = read_fit(json.dumps(found), (FEATURE,), version=1)
    for value, share, expected in zip(values, plain.share, plain.probabilities(level), strict=True):
        assert served(value, ItemPosition(0.0, float(share))) == pytest.approx(expected, abs=5e-4)


def test_the_band_moves_with_the_level_and_holds_its_shares_on_rows_like_the_labelled_ones() -> None:
    # The stored evidence says that probabilities are shares of right answers; of the user's rows they are too high.
    form, truth = stored(), Level(-1.5, 1.0)
    random = np.random.default_rng(17)

    def users(count: int) -> LevelRows:
        values = random.normal(0.5, 0.5, (count, 1))
        near = sigmoid(4 * values[:, 0].clip(0, 1) - 2)
        right = random.random(count) < truth(near)
        return LevelRows.of_form(form, values, np.zeros((count, 1)), right, [str(row) for row in range(count)])

    rows, others = users(200), users(20_000)
    level = fit_level(rows)
    served = read_fit(json.dumps(levelled_form(form, level, rows, cross_fitted(rows))), (FEATURE,), version=1)
    before = read_fit(json.dumps(form), (FEATURE,), version=1)
    after = others.probabilities(level)
    below, above = served.band(0.9).lower, served.band(0.9).upper
    assert ((after < below) & others.right).sum() / others.right.sum() <= 0.13
    assert ((after > above) & ~others.right).sum() / (~others.right).sum() <= 0.13
    # Without the level, more wrong answers were called right than promised.
    plain = others.probabilities()
    assert ((plain > before.band(0.9).upper) & ~others.right).sum() / (~others.right).sum() > 0.13
    assert served.form.conformal.right.count > 100


def upper_edge(form: dict[str, Any]) -> float:
    return read_fit(json.dumps(form), (FEATURE, DOUBT), version=1).band(0.9).upper


DOUBT = Feature("retracted", -1, 0.0, doubts=True)


@pytest.mark.parametrize("offset", [-0.4, 0.0, 0.4])
def test_a_band_leaves_doubted_rows_to_the_doubts(offset: float) -> None:
    """A tenth of the answers take a reference back: the probability calls them right, annotators call them wrong."""
    form, random, level = stored(), np.random.default_rng(19), Level(offset, 1.0)
    form["features"] = [*form["features"], {"name": DOUBT.name, "monotone": -1, "width": 0.0, "doubts": True}]
    form["linear"] = {"weight": [4.0, 0.0], "low": [0.0, 0.0], "high": [1.0, 1.0], "missing": [0.5, 0.0]}
    del form["far"], form["distance"]
    values = np.column_stack([random.random(400), np.arange(400) % 10 == 0])
    values[values[:, 1] == 1, 0] = 0.99
    right = (random.random(400) < sigmoid(4 * values[:, 0] - 2)) & (values[:, 1] == 0)
    rows = LevelRows.of_form(form, values, None, right, [str(row) for row in range(400)])
    assert rows.doubts.tolist() == (values[:, 1] == 1).tolist()
    assert rows.where(rows.doubts).doubts.sum() == 40
    held_out = rows.probabilities(level)
    found = levelled_form(form, level, rows, held_out)
    # On paper: a doubted row has the probability 0.5 in the evidence, which is the lowest that calls it right.
    assert found == levelled_form(
        form, level, replace(rows, doubts=~right & False), np.where(rows.doubts, 0.5, held_out)
    )
    assert upper_edge(found) < upper_edge(levelled_form(form, level, replace(rows, doubts=~right & False), held_out))


@pytest.mark.parametrize(("offset", "moved"), [(0.4, 0.5), (-0.4, 1 / (1 + math.exp(0.4)))])
def test_doubted_verdicts_of_the_stored_evidence_stay_uncertain(offset: float, moved: float) -> None:
    """The stored evidence has the probability 0.5 for doubted verdicts. A higher level must not make them certain."""
    held = np.concatenate([np.full(300, 0.5), np.linspace(0.01, 0.99, 700)])
    right = np.arange(1000) % 2 == 0
    points = Points(np.linspace(-8, 8, 161), sigmoid(np.linspace(-8, 8, 161)).round(9))
    form = {**stored(), **distance_band_form(DistanceBand(points, held, right, np.ones(1000)))}
    del form["far"], form["distance"]
    random = np.random.default_rng(23)
    rows = LevelRows.of_form(form, random.random((400, 1)), None, random.random(400) < 0.5, list(map(str, range(400))))

    def wrong_from(**flags: bool) -> Any:
        flagged = {**form, "features": [{**form["features"][0], **flags}]}
        return np.array(levelled_form(flagged, Level(offset, 1.0), rows, rows.near)["conformal"]["wrong"]["values"])

    level_of_half = 1 / (1 + math.exp(-offset))
    assert (np.abs(wrong_from() - level_of_half) < 1e-5).sum() > 5
    assert (np.abs(wrong_from(doubts=True) - moved) < 1e-5).sum() > 5
