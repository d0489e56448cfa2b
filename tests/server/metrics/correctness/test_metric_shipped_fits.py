"""Rules and values through a whole metric: numbers by the fits that ship, denials whatever the fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.metrics.correctness.test_features import inputs
from tests.server.metrics.correctness.test_metric import METADATA_METRIC
from tests.support.engines.correctness_fits import DIGEST
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

from gradewire import Correctness as CorrectnessMetric
from gradewire import Scorer
from gradewire_models.catalog.loading import base_models, load_catalog
from gradewire_server.domain.items import (
    Item,
    ResultWarning,
)
from gradewire_server.metrics.correctness.features import (
    FEATURES,
    INPUT_KIND,
    RULED_OUT,
    VOTE_FEATURES,
    features,
    features_of,
)
from gradewire_server.metrics.correctness.fit import VERDICT, VOTES, CorrectnessFit, ItemPosition, read_fit
from gradewire_server.metrics.correctness.metric import VERSION, Correctness, CorrectnessParameters
from gradewire_stats.calibration.labelled_rows import half_of


@pytest.fixture(params=["all-MiniLM-L6-v2", "all-mpnet-base-v2", "sfve-mini"])
def fit(request: pytest.FixtureRequest) -> CorrectnessFit:
    (shipped,) = (
        each
        for each in load_catalog()[request.param].calibrations
        if each.metric == "correctness" and not each.parameters
    )
    return read_fit(shipped.fit, FEATURES, version=VERSION)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [("1000", "1,000"), ("There are 1,000 of them.", "1000"), ("3", "\u0663"), ("two", "2"), ("the 8th", "eighth")],
)
def test_equal_numbers_are_right_however_they_are_written(fit: CorrectnessFit, prediction: str, reference: str) -> None:
    """With terms of SMILE as they are where spellings differ: it sees no shared word."""
    item = inputs(prediction, reference, question="How many are there?")
    apart = replace(item.terms, sentence=0.72, keyword=0.8, exact=0.0)
    assert fit(features(replace(item, terms=apart))) > 0.5
    other = inputs("7", reference, question="How many are there?")
    assert fit(features(replace(other, terms=apart))) < 0.5


@pytest.mark.parametrize(("prediction", "overruled"), [("big cat", False), ("not cat", True)])
def test_a_denial_that_the_trees_call_right_is_called_wrong_and_uncertain(prediction: str, overruled: bool) -> None:  # noqa: FBT001
    parameters = CorrectnessParameters(model=f"m@{DIGEST}", confidence=0.8)
    table = Table({prediction: at(0), "cat": at(10)})
    result = table.run(Correctness().score(Item("1", "Which?", ("cat",), prediction), parameters, METADATA_METRIC))
    assert result.correct is not overruled
    assert (result.score == RULED_OUT) is overruled
    assert (result.parts.uncertain, ResultWarning.UNCERTAIN in result.warnings) == (overruled, overruled)


FITS = {
    (
        entry.name,
        dict(calibration.parameters).get("grader", ""),
        dict(calibration.parameters).get("fit", ""),
    ): calibration
    for entry in load_catalog().values()
    if not entry.base
    for calibration in entry.calibrations
    if calibration.metric == "correctness"
}
COLUMNS = features_of("a grader", votes=True)
OF_VOTES = [COLUMNS.index(each) for each in VOTE_FEATURES]
# Values of features are shares, similarities, counts and kinds, or absent. Without a grader the last is not read.
ITEMS = st.lists(
    st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]) | st.integers(0, 12).map(float) | st.just(float("nan")),
    min_size=len(COLUMNS),
    max_size=len(COLUMNS),
).map(np.array)
PLACES = st.none() | st.floats(0, 1).map(lambda far: ItemPosition(far, far))


@pytest.fixture(scope="module", params=sorted(FITS))
def fit_shipped(request: pytest.FixtureRequest) -> CorrectnessFit:
    _, grader, name = request.param
    found = read_fit(FITS[request.param].fit, features_of(grader, votes=name == VOTES), version=VERSION)
    assert found.form.model_digest == FITS[request.param].model_digest
    return found


def value(fit: CorrectnessFit, item: Any, place: ItemPosition | None = None) -> float:
    """The probability from values of all COLUMNS."""
    return fit(item if fit.reads_votes else np.delete(item, OF_VOTES), place)


def test_every_encoder_has_one_of_its_own() -> None:
    assert sorted(name for name, grader, fit in FITS if not grader and not fit) == sorted(
        entry.name for entry in base_models()
    )
    graders = sorted(grader for name, grader, _ in FITS if grader and name == "all-MiniLM-L6-v2")
    assert graders == ["grader-base", "grader-mini"] == sorted(grader for _, grader, _ in FITS if grader)
    assert [key for key in FITS if key[2]] == [("all-MiniLM-L6-v2", "", VOTES)]
    assert len({calibration.fit for calibration in FITS.values()}) == len(FITS)


@settings(max_examples=example_count(150))
@given(
    item=ITEMS,
    more=st.floats(0, 1),
    column=st.sampled_from([n for n, each in enumerate(COLUMNS) if each.monotone]),
    place=PLACES,
)
def test_more_of_what_speaks_for_an_answer_never_lowers_it(
    fit_shipped: CorrectnessFit, item: Any, more: float, column: int, place: ItemPosition | None
) -> None:
    raised = item.copy()
    raised[column] += more
    assert COLUMNS[column].monotone * (value(fit_shipped, raised, place) - value(fit_shipped, item, place)) >= -1e-12


@settings(max_examples=example_count(60))
@given(item=ITEMS, moved=st.floats(-1e-5, 1e-5))
def test_the_last_bits_of_vectors_move_it_by_less_than_scores_may_differ(
    fit_shipped: CorrectnessFit, item: Any, moved: float
) -> None:
    """Those features that come from vectors, all at once."""
    other = item + np.where([feature.width > 0 for feature in COLUMNS], moved, 0.0)
    assert abs(value(fit_shipped, other) - value(fit_shipped, item)) < 2e-4


def test_what_has_nothing_is_wrong_and_what_has_all_is_right(fit_shipped: CorrectnessFit) -> None:
    best = np.array([1.0 if feature.monotone > 0 else 0.0 for feature in COLUMNS])
    worst = np.array([1.0 if feature.monotone < 0 else 0.0 for feature in COLUMNS])
    assert value(fit_shipped, worst) < 0.1
    assert value(fit_shipped, best) > 0.9


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_its_bands_are_there(fit_shipped: CorrectnessFit, confidence: float) -> None:
    band = fit_shipped.band(confidence)
    assert 0 <= band.lower <= 0.5 <= band.upper <= 1


def pairs(minilm: Path, every: int) -> list[tuple[Any, bool]]:
    """Return the features of answers of the sample pairs that the grader has not read, and whether they are right.

    Of the rows, one out of `every` is taken.
    """
    sample = Path(__file__).parents[4] / "examples/flips/development.jsonl"
    read = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in read if half_of(row["question"]) == "b"][::every]
    said = [(row, row[key], label) for row in rows for key, label in (("answer", 1), ("changed", row["label"]))]
    items = [
        {"question": row["question"], "references": row["references"], "prediction": each} for row, each, _ in said
    ]
    metric = CorrectnessMetric(model="all-MiniLM-L6-v2", features_only=True)
    with Scorer.embedded(model_repository=minilm, disk_directory="", workers=1) as scorer:
        (found,) = zip(*(each.scores.values() for each in scorer.score(items, metric)), strict=True)
    return [(each.parts.features, label == 1) for each, (_, _, label) in zip(found, said, strict=True)]


@pytest.mark.timeout(400)  # all sample pairs take 40 s alone, and more beside other tests
@pytest.mark.parametrize(
    ("every", "answers"),
    [pytest.param(8, (90, 56), id="an eighth"), pytest.param(1, (726, 436), id="all", marks=pytest.mark.hostile)],
)
def test_few_answers_of_the_sample_pairs_are_judged_wrongly_without_a_warning(
    minilm: Path, every: int, answers: tuple[int, int]
) -> None:
    """By the default: the fit with the grader."""
    columns = features_of("grader-mini")
    fit = read_fit(FITS["all-MiniLM-L6-v2", "grader-mini", ""].fit, columns, version=VERSION)
    silent: dict[bool, list[bool]] = {True: [], False: []}
    for named, right in pairs(minilm, every):
        values = np.array([named.get(feature.name, np.nan) for feature in columns])
        place = fit.position_of(np.array([named[name] for name in INPUT_KIND]))
        probability = fit(values, place)
        warned = fit.band(0.9, place).holds(probability) or fit.overruled(values, place)
        warned |= fit.doubted(values, probability)
        silent[right].append(not warned and (probability >= VERDICT) is not right)
    assert (len(silent[True]), len(silent[False])) == answers
    # About twice the values. Without bands, they are 0.07 and 0.034.
    assert np.mean(silent[False]) <= 0.05
    assert np.mean(silent[True]) <= 0.025
