"""A stored fit: what it says of features, its band, and that nothing is used that it should not rest on."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.correctness_fits import DIGEST, FORM, changed, fit_text

from gradewire_server.metrics.correctness.features import INPUT_KIND, RULED_OUT, Feature
from gradewire_server.metrics.correctness.fit import (
    Band,
    CorrectnessFit,
    FitError,
    ItemPosition,
    cached_fit,
    fit_id,
    read_fit,
)
from gradewire_server.metrics.correctness.metric import VERSION

# The metric has more features than the fit reads, in another order.
KNOWN = (Feature("exact", 1), Feature("unread", 0), Feature("keyword", 1, 0.05))


def read(form: dict[str, Any] | None = None) -> CorrectnessFit:
    return read_fit(json.dumps(form or FORM), KNOWN, version=VERSION)


def item(*, keyword: float, exact: float) -> Any:
    return np.array([exact, math.nan, keyword])


@pytest.mark.parametrize(
    ("keyword", "exact", "log_odds"),
    [
        (0.83, 1.0, 0.25 + (0.8 - 0.2) + 0.75),  # the ramp sends (0.83 - 0.8) / 0.1 + 1/2 = 0.8 to the right
        (0.9, 0.0, 0.25 + 1 - 0.5),
        (0.5, 0.5, 0.25 - 1 - 0.5),
        (0.8, math.nan, 0.25 + 0 - 0.5),  # in the middle of the ramp; what lacks exact goes left
        (math.nan, 1.0, 0.25 + 1 + 0.75),  # what lacks keyword goes right
    ],
)
def test_a_probability_worked_out_on_paper(keyword: float, exact: float, log_odds: float) -> None:
    fit = read()
    assert fit.raw(item(keyword=keyword, exact=exact)) == pytest.approx(log_odds, abs=1e-12)
    assert fit(item(keyword=keyword, exact=exact)) == pytest.approx(0.5 + 0.225 * log_odds, abs=1e-12)


def test_beyond_the_map_probabilities_stay_as_they_are_at_its_ends() -> None:
    fit = read(changed("base", 50.0))
    assert fit(item(keyword=1, exact=1)) == 0.95


@pytest.mark.parametrize(
    ("confidence", "lower", "upper"),
    [
        (0.9, 0.2, 0.7),  # right: floor(0.1 * 10) = 1st of 9; wrong: floor(0.1 * 20) = 2nd of 19
        (0.8, 0.3, 0.65),  # right: 2nd; wrong: the 4th is not kept, the 3rd is the next stricter one
        (0.95, 0.0, 0.8),  # no right row in nine can vouch for 95 %
        (0.99, 0.0, 1.0),
        (0.5, 0.4, 0.5),  # wrong: the 9th, 0.4, lies below the edge of verdicts
    ],
)
def test_the_band_follows_from_ranks(confidence: float, lower: float, upper: float) -> None:
    band = read().band(confidence)
    assert (band.lower, band.upper) == (lower, upper)
    assert band.holds(lower)
    assert band.holds(upper)
    assert band.holds(0.5)
    assert not band.holds(np.nextafter(lower, -1))
    assert not band.holds(np.nextafter(upper, 2))


@pytest.mark.parametrize(
    ("exact", "rule", "probability", "overruled"),
    [
        (1.0, 0.0, 0.95, False),
        (1.0, 1.0, RULED_OUT, True),
        (1.0, 3.0, RULED_OUT, True),
        (1.0, 0.5, 0.95, False),
        (1.0, math.nan, 0.95, False),
        (0.0, 1.0, 0.5 + 0.225 * (0.25 - 1 - 0.5), False),  # wrong by the trees as well: no rule decides
    ],
)
def test_a_rule_calls_wrong_what_no_labels_teach(
    *, exact: float, rule: float, probability: float, overruled: bool
) -> None:
    known = (*KNOWN, Feature("denied", -1, rules_out=True))
    fit = read_fit(json.dumps(FORM), known, version=VERSION)
    features = np.array([exact, math.nan, 1.0 if exact else 0.5, rule])
    assert fit(features) == pytest.approx(probability, abs=1e-12)
    assert fit.overruled(features) is overruled


@pytest.mark.parametrize(
    ("exact", "doubt", "doubted"),
    [
        (1.0, 1.0, True),
        (1.0, 3.0, True),
        (1.0, 0.5, False),
        (1.0, math.nan, False),
        (1.0, 0.0, False),
        (0.0, 1.0, False),  # wrong: there is no verdict "right" to doubt
    ],
)
def test_a_doubt_leaves_the_probability_as_it_is(*, exact: float, doubt: float, doubted: bool) -> None:
    fit = read_fit(json.dumps(FORM), (*KNOWN, Feature("retracted", -1, doubts=True)), version=VERSION)
    features = np.array([exact, math.nan, 1.0 if exact else 0.5, doubt])
    probability = fit(features)
    assert probability == fit(np.array([*features[:-1], 0.0]))
    assert fit.doubted(features, probability) is doubted
    assert not fit.overruled(features)


def test_a_rule_wins_over_a_doubt() -> None:
    known = (*KNOWN, Feature("denied", -1, rules_out=True), Feature("retracted", -1, doubts=True))
    fit = read_fit(json.dumps(FORM), known, version=VERSION)
    features = np.array([1.0, math.nan, 1.0, 1.0, 1.0])
    assert (fit(features), fit.overruled(features), fit.doubted(features, fit(features))) == (RULED_OUT, True, False)


@given(st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_more_confidence_never_narrows_the_band(one: float, other: float) -> None:
    fit = read()
    narrow, wide = fit.band(min(one, other)), fit.band(max(one, other))
    assert wide.lower <= narrow.lower
    assert narrow.upper <= wide.upper


def test_verdicts_outside_the_band_keep_their_promise_on_rows_like_the_held_out_ones() -> None:
    """Class by class the share of confident wrong verdicts is at most 1 - confidence, up to the luck of one sample.

    500 samples of 199 held-out rows a class and 50 new ones: their mean has a standard error below 0.002.
    """
    random = np.random.default_rng(7)
    ranks, missed = list(range(1, 101)), np.zeros(2)
    for _ in range(500):
        right, wrong = random.beta(4, 2, 249), random.beta(2, 3, 249)
        form = FORM | {
            "conformal": {
                "right": {"count": 199, "ranks": ranks, "values": np.sort(right[:199])[:100].tolist()},
                "wrong": {"count": 199, "ranks": ranks, "values": np.sort(wrong[:199])[::-1][:100].tolist()},
            }
        }
        band = read(form).band(0.9)
        missed += (right[199:] < band.lower).mean(), (wrong[199:] > band.upper).mean()
    shares = missed / 500
    assert (shares <= 0.1 + 0.005).all()
    assert (shares >= 0.08).all()  # and it abstains no more than that needs (k / (n + 1) = 20 / 200)


def test_the_identity_is_that_of_the_text() -> None:
    text = fit_text()
    assert read_fit(text, KNOWN, version=VERSION).identity == fit_id(text)
    assert read_fit(text + " ", KNOWN, version=VERSION).identity != fit_id(text)
    assert (len(fit_id(text)), read().form.model_digest) == (12, DIGEST)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 2, "format"),
        ("metric_version", VERSION + 1, f"version {VERSION + 1} of the metric, but this server has {VERSION}"),
        ("model_digest", "xyz", "model_digest"),
        ("features.0.name", "unknown", "has no feature 'unknown'"),
        ("features.1.name", "keyword", "twice"),
        ("features.0.monotone", 0, "keyword must have monotone [+]1"),
        ("features.0.width", -0.1, "width"),
        ("features.0.width", 0.04, "keyword must have a width of at least 0.05"),
        ("features.0.width", 0.0, "keyword must have a width"),
        ("features.1.width", 1e-320, "finite slope"),
        ("features", [], "features"),
        ("base", math.nan, "base"),
        ("base", "0.1", "base"),
        ("trees.value.1", math.inf, "trees.value.1"),
        ("trees.value.1", -1.7e308, "trees.value.1"),
        ("base", 1e7, "base"),
        ("map.log_odds", [-1.7e308, 1.7e308], "map.log_odds.0"),
        ("trees.value.1", 2.0, "violates the monotone constraint"),
        ("trees.value", [0.0], "differ in length"),
        ("trees.left.0", 0, "before its parent"),
        ("trees.feature.0", 2, "feature 2, but there are only 2"),
        ("map.probability", [0.9, 0.1], "must not fall"),
        ("map.probability", [0.9, 1.1], "map.probability.1"),
        ("map.log_odds", [1.0, 1.0], "ascending"),
        ("map.log_odds", [1.0], "differ in length"),
        ("conformal.right.ranks", [1, 1, 2], "ascending"),
        ("conformal.right.ranks", [1, 2, 10], "count"),
        ("conformal.right.values", [0.4, 0.3, 0.2], "must not fall"),
        ("conformal.wrong.values", [0.1, 0.2, 0.3, 0.4], "must not rise"),
        ("conformal.wrong.count", 0, "conformal.wrong.count"),
    ],
)
def test_what_cannot_be_relied_on_is_refused_by_name(path: str, value: Any, said: str) -> None:
    with pytest.raises(FitError, match=said):
        read(changed(path, value))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 1', "\x00", "9" * 5000, "[" * 100_000])
def test_what_is_no_fit_at_all_is_refused(text: str) -> None:
    with pytest.raises(FitError):
        read_fit(text, KNOWN, version=VERSION)


@given(
    st.recursive(st.none() | st.floats() | st.text(max_size=5), lambda v: st.lists(v) | st.dictionaries(st.text(), v))
)
def test_any_value_in_any_place_is_read_or_refused(value: Any) -> None:
    for key in FORM:
        try:
            fit = read_fit(json.dumps(FORM | {key: value}), KNOWN, version=VERSION)
        except FitError:
            continue
        assert 0 <= fit(item(keyword=0.5, exact=0.5)) <= 1


def test_provenance_is_nobodys_business_here() -> None:
    assert read(FORM | {"rows": {"count": 5}, "figures": {"ece": 0.01}, "later": [1]}).form.base == 0.25


def test_a_fit_is_read_once_and_a_broken_one_refused_once() -> None:
    assert cached_fit(fit_text(), KNOWN, 1) is cached_fit(fit_text(), KNOWN, 1)
    assert "map" in str(cached_fit(fit_text(map=5), KNOWN, 1))


KNOWN_NEIGHBOURHOOD = (Feature("exact", 1), Feature("keyword", 1, 0.05))
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


def read_neighbourhood(form: dict[str, Any]) -> CorrectnessFit:
    return read_fit(json.dumps(form), KNOWN_NEIGHBOURHOOD, version=FORM["metric_version"])


def item_of(words: float) -> Any:
    shape = np.zeros(len(INPUT_KIND))
    shape[INPUT_KIND.index("answer_words")] = math.log1p(words)
    return shape


def test_the_distance_is_the_one_to_the_closest_rows_and_turns_from_near_to_far_on_a_line() -> None:
    fit = read_neighbourhood(FORM_WITH_DISTANCE)
    assert fit.position_of(item_of(3)) == ItemPosition(pytest.approx(0.0), 0.0)
    place = fit.position_of(item_of(11))  # ln 12 - ln 4, in units of 1/2
    assert place is not None
    assert place.distance == pytest.approx(math.log(3) / 0.5)
    assert place.far == pytest.approx((math.log(3) / 0.5 - 1) / 2)
    assert fit.position_of(item_of(1000)) == ItemPosition(pytest.approx(math.log(1001 / 4) / 0.5), 1.0)
    both = read_neighbourhood(FORM | {"distance": DISTANCE | {"nearest": 2}})
    assert both.position_of(item_of(3)) == ItemPosition(pytest.approx(math.log(2) / 0.5 / 2), 0.0)


def test_the_farther_the_closer_to_what_far_items_were_found_to_be() -> None:
    fit, features = read_neighbourhood(FORM_WITH_DISTANCE), np.array([1.0, 0.9])  # log-odds of 2
    assert fit(features) == fit(features, ItemPosition(0.5, 0.0)) == pytest.approx(0.95)
    assert fit(features, ItemPosition(2.0, 0.5)) == pytest.approx((0.95 + 0.7) / 2)
    assert fit(features, ItemPosition(9.0, 1.0)) == pytest.approx(0.7)


def test_the_farther_the_wider_and_never_narrower() -> None:
    fit = read_neighbourhood(FORM_WITH_DISTANCE)
    near, far = Band(0.2, 0.7), Band(0.1, 0.9)
    assert fit.band(0.9) == fit.band(0.9, ItemPosition(0.0, 0.0)) == near
    half = fit.band(0.9, ItemPosition(2.0, 0.5))
    assert (half.lower, half.upper) == (pytest.approx(0.15), pytest.approx(0.8))
    assert fit.band(0.9, ItemPosition(9.0, 1.0)) == far
    narrower = FAR | {
        "conformal": {
            "right": FAR["conformal"]["right"] | {"values": [0.4]},
            "wrong": FAR["conformal"]["wrong"] | {"values": [0.6]},
        }
    }
    assert read_neighbourhood(FORM_WITH_DISTANCE | {"far": narrower}).band(0.9, ItemPosition(9.0, 1.0)) == near


def test_without_far_rows_in_the_fit_no_verdict_far_away_is_trusted() -> None:
    fit, features = read_neighbourhood(FORM | {"distance": DISTANCE}), np.array([1.0, 0.9])
    assert fit(features, ItemPosition(9.0, 1.0)) == fit(features)
    assert fit.band(0.9, ItemPosition(9.0, 1.0)) == Band(0.0, 1.0)
    assert read_neighbourhood(FORM).position_of(item_of(1000)) is None


def test_wrong_verdicts_that_were_sure_widen_the_band_with_confidence() -> None:
    """At 0.9 half of them lie inside, the 2nd of 4 from above; at 0.5 the rule says nothing."""
    mistaken = {"count": 4, "ranks": [1, 2, 3, 4], "values": [0.97, 0.85, 0.7, 0.6]}
    fit = read_neighbourhood(FORM | {"conformal": FORM["conformal"] | {"mistaken": mistaken}})
    band = fit.band(0.9)
    assert (band.lower, band.upper) == (pytest.approx(0.15), 0.85)
    assert fit.band(0.5) == read_neighbourhood(FORM).band(0.5)


def test_a_linear_part_is_added_between_its_ends_and_absent_features_count_as_it_says() -> None:
    linear = {"weight": [2.0, 0.5], "low": [0.2, 0.0], "high": [0.8, 1.0], "missing": [0.4, 0.25]}
    fit = read_neighbourhood(FORM | {"linear": linear})
    plain = read_neighbourhood(FORM)
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
            "weight of keyword has the wrong sign",
        ),
        ("linear", {"weight": [1.0, 0.0], "low": [2.0] * 2, "high": [1.0] * 2, "missing": [0.0] * 2}, "low is above"),
        ("linear", {"weight": [1.0, 0.0], "low": [0.0] * 2, "high": [1.0] * 2, "missing": [0.0]}, "differ in length"),
        ("distance", DISTANCE | {"shape": ["of_tomorrow"]}, "no number named 'of_tomorrow'"),
        ("distance", DISTANCE | {"scale": [0.0]}, "greater than or equal"),
        ("distance", DISTANCE | {"rows": [[0.0, 1.0]]}, "differs from the length of shape"),
        ("distance", DISTANCE | {"nearest": 3}, "exceeds the number of rows"),
        ("distance", DISTANCE | {"far": 1.0}, "exceed near"),
        ("distance", DISTANCE | {"rows": [[math.inf]]}, "finite"),
        ("distance", DISTANCE | {"rows": [[math.nan]]}, "finite"),
        ("distance", DISTANCE | {"near": math.nan}, "distance.near"),
        ("distance", DISTANCE | {"shape": ["answer_words"] * 2, "scale": [0.5] * 2, "rows": [[0.0] * 2]}, "twice"),
        ("far", FAR, "far needs distance"),
    ],
)
def test_parts_that_no_score_should_rest_on_are_refused(part: str, value: Any, message: str) -> None:
    with pytest.raises(FitError, match=message):
        read_neighbourhood(FORM | {part: value})


def test_order_statistics_of_wrong_verdicts_must_not_rise() -> None:
    mistaken = {"count": 4, "ranks": [1, 2], "values": [0.6, 0.7]}
    with pytest.raises(FitError, match="mistaken must not rise"):
        read_neighbourhood(changed("conformal.mistaken", mistaken))


@given(st.lists(st.floats(0, 10), min_size=2, max_size=2), st.floats(0, 1), st.floats(0, 1))
def test_more_distance_never_narrows(words: list[float], keyword: float, exact: float) -> None:
    fit = read_neighbourhood(FORM_WITH_DISTANCE)
    closer, farther = sorted(
        (fit.position_of(item_of(math.expm1(each))) for each in words), key=lambda place: place.distance
    )
    one, other = fit.band(0.9, closer), fit.band(0.9, farther)
    assert other.lower <= one.lower <= 0.5 <= one.upper <= other.upper
    assert 0 <= fit(np.array([exact, keyword]), farther) <= 1
