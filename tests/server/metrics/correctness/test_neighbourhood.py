"""Items unlike the fitted rows: another probability, and a wider band."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.correctness_fits import FORM, changed

from gradewire_server.metrics.correctness.features.catalog import Feature
from gradewire_server.metrics.correctness.fit import CorrectnessFit, FitError, Place, read_fit
from gradewire_server.metrics.correctness.regimes import Band
from gradewire_server.metrics.correctness.shape import SHAPE

KNOWN = (Feature("exact", 1), Feature("keyword", 1, 0.05))
# Two rows, at ln(1 + words) of answers of 1 and of 3 words; from 1 on an item begins to be unlike them.
DISTANCE: dict[str, Any] = {
    "shape": ["answer_words"],
    "scale": [0.5],
    "rows": [[math.log(2) / 0.5], [math.log(4) / 0.5]],
    "nearest": 1,
    "near": 1.0,
    "far": 3.0,
}
FAR: dict[str, Any] = {
    "map": {"log_odds": [-2.0, 2.0], "probability": [0.3, 0.7]},
    "conformal": {
        "right": {"count": 9, "ranks": [1], "values": [0.1]},
        "wrong": {"count": 19, "ranks": [2], "values": [0.9]},
    },
}
FORM_WITH_DISTANCE = FORM | {"distance": DISTANCE, "far": FAR}


def read(form: dict[str, Any]) -> CorrectnessFit:
    return read_fit(json.dumps(form), KNOWN, version=FORM["metric_version"])


def item_of(words: float) -> Any:
    shape = np.zeros(len(SHAPE))
    shape[SHAPE.index("answer_words")] = math.log1p(words)
    return shape


def test_the_distance_is_the_one_to_the_closest_rows_and_turns_from_near_to_far_on_a_line() -> None:
    fit = read(FORM_WITH_DISTANCE)
    assert fit.place(item_of(3)) == Place(pytest.approx(0.0), 0.0)
    place = fit.place(item_of(11))  # ln 12 - ln 4, in units of 1/2
    assert place is not None
    assert place.distance == pytest.approx(math.log(3) / 0.5)
    assert place.far == pytest.approx((math.log(3) / 0.5 - 1) / 2)
    assert fit.place(item_of(1000)) == Place(pytest.approx(math.log(1001 / 4) / 0.5), 1.0)
    both = read(FORM | {"distance": DISTANCE | {"nearest": 2}})
    assert both.place(item_of(3)) == Place(pytest.approx(math.log(2) / 0.5 / 2), 0.0)


def test_the_farther_the_closer_to_what_far_items_were_found_to_be() -> None:
    fit, features = read(FORM_WITH_DISTANCE), np.array([1.0, 0.9])  # log-odds of 2
    assert fit(features) == fit(features, Place(0.5, 0.0)) == pytest.approx(0.95)
    assert fit(features, Place(2.0, 0.5)) == pytest.approx((0.95 + 0.7) / 2)
    assert fit(features, Place(9.0, 1.0)) == pytest.approx(0.7)


def test_the_farther_the_wider_and_never_narrower() -> None:
    fit = read(FORM_WITH_DISTANCE)
    near, far = Band(0.2, 0.7), Band(0.1, 0.9)
    assert fit.band(0.9) == fit.band(0.9, Place(0.0, 0.0)) == near
    half = fit.band(0.9, Place(2.0, 0.5))
    assert (half.lower, half.upper) == (pytest.approx(0.15), pytest.approx(0.8))
    assert fit.band(0.9, Place(9.0, 1.0)) == far
    narrower = FAR | {
        "conformal": {
            "right": FAR["conformal"]["right"] | {"values": [0.4]},
            "wrong": FAR["conformal"]["wrong"] | {"values": [0.6]},
        }
    }
    assert read(FORM_WITH_DISTANCE | {"far": narrower}).band(0.9, Place(9.0, 1.0)) == near


def test_without_far_rows_in_the_fit_no_verdict_far_away_is_trusted() -> None:
    fit, features = read(FORM | {"distance": DISTANCE}), np.array([1.0, 0.9])
    assert fit(features, Place(9.0, 1.0)) == fit(features)
    assert fit.band(0.9, Place(9.0, 1.0)) == Band(0.0, 1.0)
    assert read(FORM).place(item_of(1000)) is None


def test_wrong_verdicts_that_were_sure_widen_the_band_with_confidence() -> None:
    """At 0.9 half of them lie inside, the 2nd of 4 from above; at 0.5 the rule says nothing."""
    mistaken = {"count": 4, "ranks": [1, 2, 3, 4], "values": [0.97, 0.85, 0.7, 0.6]}
    fit = read(FORM | {"conformal": FORM["conformal"] | {"mistaken": mistaken}})
    band = fit.band(0.9)
    assert (band.lower, band.upper) == (pytest.approx(0.15), 0.85)
    assert fit.band(0.5) == read(FORM).band(0.5)


def test_a_linear_part_is_added_between_its_ends_and_absent_features_count_as_it_says() -> None:
    linear = {"weight": [2.0, 0.5], "low": [0.2, 0.0], "high": [0.8, 1.0], "missing": [0.4, 0.25]}
    fit = read(FORM | {"linear": linear})
    plain = read(FORM)
    for keyword, exact, more in ((0.5, 1.0, 1.0 + 0.5), (0.1, 0.0, 0.4), (0.95, 1.0, 1.6 + 0.5)):
        features = np.array([exact, keyword])
        assert fit.raw(features) == pytest.approx(plain.raw(features) + more)
    absent = np.array([math.nan, math.nan])
    assert fit.raw(absent) == pytest.approx(plain.raw(absent) + 0.8 + 0.125)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("linear", {"weight": [1.0], "low": [0.0], "high": [1.0], "missing": [0.0]}, "1 weights for 2 features"),
        (
            "linear",
            {"weight": [-1.0, 0.0], "low": [0.0] * 2, "high": [1.0] * 2, "missing": [0.0] * 2},
            "keyword breaks",
        ),
        ("linear", {"weight": [1.0, 0.0], "low": [2.0] * 2, "high": [1.0] * 2, "missing": [0.0] * 2}, "low is above"),
        ("linear", {"weight": [1.0, 0.0], "low": [0.0] * 2, "high": [1.0] * 2, "missing": [0.0]}, "differ in length"),
        ("distance", DISTANCE | {"shape": ["of_tomorrow"]}, "no number named 'of_tomorrow'"),
        ("distance", DISTANCE | {"scale": [0.0]}, "greater than or equal"),
        ("distance", DISTANCE | {"rows": [[0.0, 1.0]]}, "not as many numbers"),
        ("distance", DISTANCE | {"nearest": 3}, "more than there are rows"),
        ("distance", DISTANCE | {"far": 1.0}, "above near"),
        ("distance", DISTANCE | {"rows": [[math.inf]]}, "finite"),
        ("distance", DISTANCE | {"rows": [[math.nan]]}, "finite"),
        ("distance", DISTANCE | {"near": math.nan}, "distance.near"),
        ("distance", DISTANCE | {"shape": ["answer_words"] * 2, "scale": [0.5] * 2, "rows": [[0.0] * 2]}, "twice"),
        ("far", FAR, "far needs a distance"),
    ],
)
def test_parts_that_no_score_should_rest_on_are_refused(part: str, value: Any, message: str) -> None:
    with pytest.raises(FitError, match=message):
        read(FORM | {part: value})


def test_order_statistics_of_wrong_verdicts_must_not_rise() -> None:
    mistaken = {"count": 4, "ranks": [1, 2], "values": [0.6, 0.7]}
    with pytest.raises(FitError, match="mistaken must not rise"):
        read(changed("conformal.mistaken", mistaken))


@given(st.lists(st.floats(0, 10), min_size=2, max_size=2), st.floats(0, 1), st.floats(0, 1))
def test_more_distance_never_narrows(words: list[float], keyword: float, exact: float) -> None:
    fit = read(FORM_WITH_DISTANCE)
    closer, farther = sorted((fit.place(item_of(math.expm1(each))) for each in words), key=lambda place: place.distance)
    one, other = fit.band(0.9, closer), fit.band(0.9, farther)
    assert other.lower <= one.lower <= 0.5 <= one.upper <= other.upper
    assert 0 <= fit(np.array([exact, keyword]), farther) <= 1
