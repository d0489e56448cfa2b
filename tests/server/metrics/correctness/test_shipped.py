"""The fits that the catalog ships: read by this version of the metric, for their weights, true to their promises."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_models.catalog.loading import base_models, load_catalog
from gradewire_server.metrics.correctness.features.catalog import features_of
from gradewire_server.metrics.correctness.fit import CorrectnessFit, Place, read_fit
from gradewire_server.metrics.correctness.metric import VERSION

FITS = {
    (entry.name, dict(calibration.parameters).get("grader", "")): calibration
    for entry in load_catalog().values()
    if not entry.base
    for calibration in entry.calibrations
    if calibration.metric == "correctness"
}
COLUMNS = features_of("a grader")
# Values of features are shares, similarities, counts and kinds, or absent. Without a grader the last is not read.
ITEMS = st.lists(
    st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]) | st.integers(0, 12).map(float) | st.just(float("nan")),
    min_size=len(COLUMNS),
    max_size=len(COLUMNS),
).map(np.array)
PLACES = st.none() | st.floats(0, 1).map(lambda far: Place(far, far))


@pytest.fixture(scope="module", params=sorted(FITS))
def fit(request: pytest.FixtureRequest) -> CorrectnessFit:
    found = read_fit(FITS[request.param].fit, features_of(request.param[1]), version=VERSION)
    assert found.model_digest == FITS[request.param].model_digest
    return found


def test_every_encoder_has_one_of_its_own() -> None:
    assert sorted(name for name, grader in FITS if not grader) == sorted(entry.name for entry in base_models())
    assert [name for name, grader in FITS if grader] == ["all-MiniLM-L6-v2"]
    assert len({calibration.fit for calibration in FITS.values()}) == len(FITS)


@settings(max_examples=example_count(150))
@given(
    item=ITEMS,
    more=st.floats(0, 1),
    column=st.sampled_from([n for n, each in enumerate(COLUMNS) if each.monotone]),
    place=PLACES,
)
def test_more_of_what_speaks_for_an_answer_never_lowers_it(
    fit: CorrectnessFit, item: Any, more: float, column: int, place: Place | None
) -> None:
    raised = item.copy()
    raised[column] += more
    assert COLUMNS[column].monotone * (fit(raised, place) - fit(item, place)) >= -1e-12


@settings(max_examples=example_count(60))
@given(item=ITEMS, moved=st.floats(-1e-5, 1e-5))
def test_the_last_bits_of_vectors_move_it_by_less_than_scores_may_differ(
    fit: CorrectnessFit, item: Any, moved: float
) -> None:
    """Those features that come from vectors, all at once."""
    other = item + np.where([feature.width > 0 for feature in COLUMNS], moved, 0.0)
    assert abs(fit(other) - fit(item)) < 2e-4


def test_what_has_nothing_is_wrong_and_what_has_all_is_right(fit: CorrectnessFit) -> None:
    best = np.array([1.0 if feature.monotone > 0 else 0.0 for feature in COLUMNS])
    worst = np.array([1.0 if feature.monotone < 0 else 0.0 for feature in COLUMNS])
    assert fit(worst) < 0.1
    assert fit(best) > 0.9


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_its_bands_are_there(fit: CorrectnessFit, confidence: float) -> None:
    band = fit.band(confidence)
    assert 0 <= band.lower <= 0.5 <= band.upper <= 1
