"""P(right) of an item: what it asks for, what it is made of, when it is uncertain, and when there is none."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.correctness_fits import DIGEST, FORM, fit_text, stored_fit
from tests.support.engines.programs import Table, at, table_of

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import NO_MODEL, ModelMetadata, ParameterError
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.domain.parts import CorrectnessParts
from gradewire_server.domain.result import Failure, Status, Warning  # noqa: A004 - as domain
from gradewire_server.metrics.correctness.features.catalog import FEATURES
from gradewire_server.metrics.correctness.features.inputs import gather_inputs
from gradewire_server.metrics.correctness.fit import CorrectnessFit, fit_id, read_fit
from gradewire_server.metrics.correctness.metric import Correctness, CorrectnessParameters, Measured, _result, fit_of
from gradewire_server.metrics.correctness.shape import SHAPE
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters

METRIC = Correctness()
MODEL = f"m@{DIGEST}"
METADATA = ModelMetadata(stored_fit(fit_text()), digest=DIGEST)
PARAMETERS = CorrectnessParameters(model=MODEL)
VECTORS = {"red cat": at(0), "cat": at(10), "dog": at(60), "red": at(40)}
SMILES = SmileParameters(model=MODEL, preset="one_pass")


def graded(
    prediction: str = "red cat",
    *references: str,
    question: str = "Which?",
    table: Table | None = None,
    parameters: CorrectnessParameters = PARAMETERS,
    metadata: ModelMetadata = METADATA,
) -> Any:
    item = Item("1", question, references or ("dog",), prediction)
    return (table or table_of(VECTORS)).run(METRIC.score(item, parameters, metadata))


def test_the_terms_are_smiles() -> None:
    """Closest window of "dog" is "red": cosine of 20 degrees, so the ramp at 0.8 is passed, and exact is 0."""
    result = graded()
    smile = table_of(VECTORS).run(Smile().score(Item("1", "Which?", ("dog",), "red cat"), SMILES, NO_MODEL))
    assert isinstance(result.parts, CorrectnessParts)
    for name in ("sentence", "keyword", "exact", "best_window"):
        assert getattr(result.parts, name) == getattr(smile.parts, name)
    assert (result.parts.smile, result.matched_reference) == (smile.score, smile.matched_reference)
    assert result.parts.keyword == pytest.approx((1 + math.cos(math.radians(20))) / 2, abs=1e-6)
    # 0.25 + 1 - 0.5 = 0.75 log-odds
    assert result.score == pytest.approx(0.5 + 0.225 * 0.75, abs=1e-9)
    assert (result.status, result.correct) == (Status.OK, True)


def test_a_verdict_inside_the_band_is_uncertain() -> None:
    result = graded()  # 0.66875, and wrong answers up to 0.7 are not rare enough at 0.9
    assert (result.parts.band_lower, result.parts.band_upper) == (0.2, 0.7)
    assert (result.parts.uncertain, result.parts.uncertain_reason, result.parts.distance) == (True, "band", None)
    assert result.warnings == (Warning.UNCERTAIN,)
    certain = graded(parameters=CorrectnessParameters(model=MODEL, confidence=0.8))
    assert (certain.parts.uncertain, certain.warnings, certain.score) == (False, (), result.score)
    assert (certain.correct, certain.parts.fit) == (True, fit_id(fit_text()))


def test_results_say_how_unlike_the_fitted_rows_an_item_is_and_why_it_is_uncertain() -> None:
    """One fitted row, whose answer had three words; this one has two, and 0.66875 is outside a band of one point."""
    row = {"shape": ["answer_words"], "scale": [0.5], "rows": [[math.log(4) / 0.5]], "nearest": 1}
    narrow = {
        "right": {"count": 9, "ranks": [1], "values": [0.5]},
        "wrong": {"count": 19, "ranks": [2], "values": [0.5]},
    }

    def parts(near: float, **more: Any) -> CorrectnessParts:
        text = fit_text(distance=row | {"near": near, "far": near + 0.1}, **more)
        found = graded(metadata=replace(METADATA, calibrations=stored_fit(text))).parts
        assert isinstance(found, CorrectnessParts)
        return found

    like = parts(1.0, conformal=narrow)
    assert like.distance == pytest.approx(math.log(4 / 3) / 0.5)
    assert (like.uncertain, like.uncertain_reason) == (False, "")
    unlike = parts(0.1, conformal=narrow)
    assert (unlike.uncertain, unlike.uncertain_reason) == (True, "unlike")
    assert (unlike.band_lower, unlike.band_upper) == (0.0, 1.0)
    assert parts(0.1).uncertain_reason == "band"


def test_a_right_word_is_surely_right() -> None:
    result = graded("red cat", "dog", "cat")
    assert result.matched_reference == 1
    assert result.score == pytest.approx(0.95)  # 0.25 + 1 + 0.75 log-odds: the end of the map
    assert (result.correct, result.parts.uncertain) == (True, False)


@pytest.mark.parametrize("references", [("dog",), ("dog", "cat"), ("red cat", "dog")])
def test_what_smile_asks_for_is_asked_for_and_nothing_else(references: tuple[str, ...]) -> None:
    mine, smiles = table_of(VECTORS), table_of(VECTORS)
    graded("red cat", *references, table=mine)
    smiles.run(Smile().score(Item("1", "", references, "red cat"), SMILES, NO_MODEL))
    assert mine.rounds == smiles.rounds


@pytest.mark.parametrize("question", ["", "  ", "\u200b", "x" * 40_000])
def test_without_a_question_there_is_a_score_all_the_same(question: str) -> None:
    assert graded(question=question).score == graded().score  # this fit reads no feature of the question


def test_a_feature_that_does_not_apply_is_left_out() -> None:
    known = {feature.name for feature in FEATURES} | set(SHAPE)
    for question in ("Which?", ""):
        features = graded(question=question).parts.features
        assert set(features) <= known
        assert all(map(math.isfinite, features.values()))
    assert {"keyword", "exact", "sentence"} <= set(features)


def test_features_alone_need_no_fit() -> None:
    result = graded(parameters=CorrectnessParameters(model=MODEL, features_only=True), metadata=NO_MODEL)
    with_fit = graded()
    assert result.score == with_fit.parts.smile
    assert (result.correct, result.warnings) == (None, ())
    assert result.parts == replace(
        with_fit.parts, uncertain=None, band_lower=None, band_upper=None, fit="", uncertain_reason=""
    )


def test_a_cut_reference_is_a_warning_beside_the_other() -> None:
    result = graded(table=table_of(VECTORS, truncated=frozenset({"dog"})))
    assert result.warnings == (Warning.TRUNCATED, Warning.UNCERTAIN)


@pytest.mark.parametrize("question", ["Which?", ""])
def test_a_failure_of_the_engine_is_the_result(question: str) -> None:
    failure = Failure(Status.TIMEOUT, "late")
    result = graded(table=Table(VECTORS, failure=failure), question=question)
    assert (result.status, result.message, result.score) == (Status.TIMEOUT, "late", None)
    assert Table(failure=failure).run(METRIC.prepare(ReferenceEntry("q", ("x",)), PARAMETERS)) == failure


def test_bad_items_have_a_status_and_no_score() -> None:
    assert graded(" ").status is Status.EMPTY_PREDICTION
    assert graded("red cat", " ").status is Status.INVALID_INPUT
    assert Table().run(METRIC.prepare(ReferenceEntry("q", ()), PARAMETERS)).status is Status.INVALID_INPUT


def test_prepare_asks_for_all_that_scoring_asks_of_references() -> None:
    table = Table(dict.fromkeys(("A Cat", "a cat"), at(0)))
    assert table.run(METRIC.prepare(ReferenceEntry("Which?", ("A Cat",)), PARAMETERS)) is None
    assert table.embedded == [{"A Cat", "a cat"}]
    ((need,),) = table.rounds
    assert isinstance(need, Embed)
    assert need.tier is Tier.REFERENCE


@pytest.mark.parametrize("confidence", [0.49, 1.0, math.nan, math.inf, -1])
def test_a_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        CorrectnessParameters(confidence=confidence)


@pytest.mark.parametrize("fit", ["1234567", "x" * 12, "A" * 12, "1" * 65])
def test_what_cannot_name_a_fit_is_refused(fit: str) -> None:
    with pytest.raises(ParameterError, match="fit"):
        CorrectnessParameters(fit=fit)


def test_the_models_fit_is_named_and_insisted_on() -> None:
    identity = fit_id(fit_text())
    assert CorrectnessParameters(model="m").resolved(METADATA).fit == identity
    assert CorrectnessParameters(model="m", fit=identity[:8]).resolved(METADATA).fit == identity
    with pytest.raises(ParameterError, match=f"fit is {identity} here"):
        CorrectnessParameters(model="m", fit="0" * 12).resolved(METADATA)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("", "no fit for correctness: fit one with `gradewire calibrate"),
        ("", "earlier release built gets it by `gradewire models build NAME`"),
        ("{", "cannot be used"),
        (fit_text(metric_version=9), "version 9"),
        (fit_text(features=[{"name": "of_tomorrow", "monotone": 0, "width": 0.0}] * 2), "twice"),
    ],
)
def test_a_model_without_a_usable_fit_fails_the_metric_and_says_what_to_do(stored: str, said: str) -> None:
    metadata = ModelMetadata(stored_fit(stored) if stored else ())
    with pytest.raises(ParameterError, match=said):
        CorrectnessParameters(model="m").resolved(metadata)
    only = CorrectnessParameters(model="m", features_only=True)
    assert only.resolved(metadata) == only


def test_whose_fit_is_used_is_told_also_where_it_is_insisted_on() -> None:
    described = stored_fit(fit_text())[0].described
    filled_in = CorrectnessParameters(model="m").resolved(METADATA)
    assert filled_in.calibration == described
    assert CorrectnessParameters(model="m", fit=fit_id(fit_text())[:8]).resolved(METADATA) == filled_in
    assert CorrectnessParameters(model="m", features_only=True).resolved(METADATA).calibration == ""


def test_a_fit_for_another_version_of_the_metric_is_passed_over() -> None:
    old, here = stored_fit(fit_text(base=0.5)), stored_fit(fit_text(), version=METRIC.info.version)
    metadata = replace(METADATA, calibrations=(*stored_fit("{", version=9), *here)).seen_by(METRIC.info)
    assert CorrectnessParameters(model="m").resolved(metadata).fit == fit_id(fit_text())
    later = replace(METRIC.info, version=METRIC.info.version + 1)
    assert replace(METADATA, calibrations=old).seen_by(later).calibrations == ()


def test_a_fit_for_the_version_before_is_told_from_none() -> None:
    before = replace(METADATA, calibrations=(*stored_fit(fit_text(), version=1), *stored_fit("{", version=1)))
    for metadata in (before.seen_by(METRIC.info), before.seen_by(METRIC.info).seen_by(METRIC.info)):
        with pytest.raises(ParameterError) as refused:
            CorrectnessParameters(model="m").resolved(metadata)
        assert refused.value.message.startswith("this encoder's fit is for correctness/1, and this release computes ")
        assert "`gradewire models build NAME`" in refused.value.message
        assert "`gradewire calibrate FILE --metric correctness`" in refused.value.message
    others = replace(METADATA, calibrations=(replace(before.calibrations[0], metric="auto"),)).seen_by(METRIC.info)
    with pytest.raises(ParameterError, match="has no fit for correctness"):
        CorrectnessParameters(model="m").resolved(others)


def test_what_cannot_be_read_fails_this_metric_unless_features_alone_are_asked_for() -> None:
    spoilt = replace(METADATA, unreadable=(("correctness", "take it away"), ("smile", "another")))
    metadata = spoilt.seen_by(METRIC.info)
    assert metadata.unreadable == (("correctness", "take it away"),)
    with pytest.raises(ParameterError, match="model: take it away"):
        CorrectnessParameters(model="m").resolved(metadata)
    only = CorrectnessParameters(model="m", features_only=True)
    assert only.resolved(metadata) == only


def test_what_is_no_number_is_no_score() -> None:
    """A fit that is read gives none (`FitForm`); should one ever, there is no verdict of it."""
    asked = METRIC.score(Item("1", "", ("dog",), "red cat"), PARAMETERS, METADATA)
    assert table_of(VECTORS).run(asked).status is Status.OK
    spoilt = replace(read_fit(fit_text(), FEATURES, version=METRIC.info.version), base=math.nan)
    inputs = table_of(VECTORS).run(gather_inputs(Item("1", "", ("dog",), "red cat"), MODEL))
    result = _result(inputs, Measured.of(inputs), spoilt, 0.9)
    assert (result.status, result.score, result.correct) == (Status.INTERNAL, None, None)
    assert "gradewire calibrate" in result.message


def test_a_fit_with_steps_where_vectors_are_compared_is_not_used() -> None:
    """The least width is the feature's own: with less the last bits of vectors would move P by more than 2e-4."""
    width = next(feature.width for feature in FEATURES if feature.name == "keyword")
    for wide, used in ((width, True), (width / 2, False), (0.0, False)):
        text = fit_text(features=[FORM["features"][0] | {"width": wide}, FORM["features"][1]])
        found = fit_of(replace(METADATA, calibrations=stored_fit(text)))
        assert isinstance(found, CorrectnessFit) is used
        assert used or "keyword must have ramps 0.02 wide" in str(found)


def test_a_fit_for_other_vectors_is_not_used() -> None:
    metadata = replace(METADATA, digest="6" * 64)
    said = "was made for the digest 555555555555, and it has 666666666666"
    with pytest.raises(ParameterError, match=said):
        CorrectnessParameters(model="m").resolved(metadata)
    result = graded(metadata=metadata)
    assert (result.status, result.score) == (Status.INVALID_PARAMETER, None)
    assert said in result.message


ANGLES = st.integers(0, 180)


@given(ANGLES, ANGLES, ANGLES)
def test_a_better_keyword_match_never_lowers_it(sentence: int, near: int, nearer: int) -> None:
    """Windows move, all else stays: the sentence term, the exact term, all words."""
    found = []
    for degrees in sorted((near, nearer), reverse=True):
        table = table_of({"red cat": at(sentence), "dog": at(0), "red": at(degrees), "cat": at(180)})
        found.append(graded(table=table, metadata=METADATA))
    far, close = found
    assert close.parts.keyword >= far.parts.keyword - 1e-7
    assert close.score >= far.score - 1e-6


def test_every_direction_that_is_promised_is_one_of_the_metric() -> None:
    names = [feature.name for feature in FEATURES]
    assert len(set(names)) == len(names)
    assert {feature.monotone for feature in FEATURES} <= {-1, 0, 1}
    assert all(feature.width >= 0 and np.isfinite(feature.width) for feature in FEATURES)
    promised = {feature.name: feature.monotone for feature in FEATURES}
    assert promised["keyword"] == promised["exact"] == promised["sentence"] == 1
    assert all(promised[feature["name"]] == feature["monotone"] for feature in FORM["features"])
