import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.correctness_fits import DIGEST as DIGEST_METRIC
from tests.support.engines.correctness_fits import FORM, fit_text, stored_fit
from tests.support.engines.hash_engine import HashEngine
from tests.support.engines.programs import Table, at, table_of

from gradewire_models.repository.grader_input import MAX_PIECES
from gradewire_proto.parts import CorrectnessParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.items import ResultWarning as Remark
from gradewire_server.domain.metric import NO_MODEL, Calibration, ModelMetadata, ParameterError
from gradewire_server.domain.needs import MOST_PIECES, Embed, Grade, Grades, Tier
from gradewire_server.metrics.choices.choice_match import choice_of
from gradewire_server.metrics.common import FailureError
from gradewire_server.metrics.correctness.features import FEATURES, GRADER, INPUT_KIND, features_of, gather_inputs
from gradewire_server.metrics.correctness.fit import CorrectnessFit, fit_id, read_fit
from gradewire_server.metrics.correctness.metric import (
    VERSION,
    Correctness,
    CorrectnessParameters,
    Graded,
    _chosen,
    _result,
    ask_grader,
    fit_of,
)
from gradewire_server.metrics.encoder.grader import MAX_CHARACTERS
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.scoring import MetricRequest, Scorer

DIGEST, OTHER = "5" * 64, "6" * 64
ITEM = Item(id="", question="who?", references=("a tall man", "nobody"), prediction="a man, I think")


def fit_with_grader(**changes: Any) -> str:
    """One stump: from a logit of 0.5 on (a ramp of 0.25) log-odds of 1, else of -1."""
    form = FORM | {
        "metric_version": VERSION,
        "features": [{"name": "grader", "monotone": 1, "width": 0.25}],
        "trees": {
            "roots": [0],
            "feature": [0, -1, -1],
            "threshold": [0.5, 0.0, 0.0],
            "missing_left": [False] * 3,
            "left": [1, -1, -1],
            "right": [2, -1, -1],
            "value": [0.0, -1.0, 1.0],
        },
        "base": 0.0,
        "grader_digest": OTHER,
    }
    return json.dumps(form | changes)


def stored(text: str, *parameters: tuple[str, str]) -> Calibration:
    return Calibration("correctness", VERSION, parameters, None, described="user: fitted on ten rows", fit=text)


WITHOUT = stored(json.dumps(FORM | {"metric_version": VERSION}))
WITH = stored(fit_with_grader(), ("grader", "words"))
METADATA = ModelMetadata(calibrations=(WITHOUT, WITH), digest=DIGEST, grader=f"words@{OTHER}")


async def scored(
    item: Item, engine: HashEngine, metadata: ModelMetadata = METADATA, **parameters: Any
) -> tuple[MetricResult, CorrectnessParts]:
    results: list[MetricResult] = []
    asked = CorrectnessParameters(**{"model": "hash", "grader": "words", **parameters})
    await Scorer(engine.ports).score(
        [item],
        [MetricRequest(Correctness(), asked, metadata)],
        emit=lambda _item, _metric, done: results.append(done.result),
    )
    (result,) = results
    parts = result.parts
    assert isinstance(parts, CorrectnessParts)
    return result, parts


async def test_the_logit_is_the_last_feature() -> None:
    engine = HashEngine()
    result, parts = await scored(ITEM, engine, features_only=True)
    assert features_of("words") == (*FEATURES, GRADER)
    # Two of the three words of the first reference: 3 (2 · 2/3 - 1).
    assert parts.features["grader"] == pytest.approx(1.0, abs=1e-6)
    assert result.score == parts.smile
    _, without = await scored(ITEM, HashEngine(), features_only=True, grader="")
    assert {**without.features, "grader": parts.features["grader"]} == parts.features


async def test_no_grader_is_asked_where_none_is_named() -> None:
    engine = HashEngine()
    await scored(ITEM, engine, replace(METADATA, grader=""), grader="")
    assert engine.graded == []


async def test_the_fit_reads_the_logit() -> None:
    result, parts = await scored(ITEM, HashEngine())
    assert result.score == pytest.approx(0.5 + 0.225, abs=1e-6)
    assert (result.correct, parts.uncertain is not None) == (True, True)
    worse, _ = await scored(replace(ITEM, prediction="a cat"), HashEngine())
    assert worse.score == pytest.approx(0.5 - 0.225, abs=1e-6)


async def test_at_most_three_references_are_asked_about_the_closest_ones() -> None:
    references = ("one", "two", "a red car", "a man I know", "man")
    engine = HashEngine()
    result, _ = await scored(replace(ITEM, references=references), engine, features_only=True)
    ((*asked,),) = engine.graded
    assert len(asked) == 3
    assert result.matched_reference is not None
    assert references[result.matched_reference] == asked[0][1]
    assert {"man", "a man I know"} <= {reference for _, reference, _ in asked}


async def test_a_failure_of_the_grader_fails_the_item_alone() -> None:
    from gradewire_server.domain.items import Failure  # noqa: PLC0415 - beside its one use

    engine = HashEngine()
    results: list[tuple[int, MetricResult]] = []
    items = [ITEM, replace(ITEM, prediction="broken man")]
    # The texts of SMILE are vectors and do not fail.
    engine.grade_failures["broken man"] = Failure(Status.UNAVAILABLE, "busy")
    await Scorer(engine.ports).score(
        items,
        [MetricRequest(Correctness(), CorrectnessParameters(model="hash", grader="words"), METADATA)],
        emit=lambda item, _metric, done: results.append((item, done.result)),
    )
    assert {item: result.status for item, result in results} == {0: Status.OK, 1: Status.UNAVAILABLE}


def test_the_highest_logit_counts_whichever_reference_it_is_of() -> None:
    inputs: Any = SimpleNamespace(item=ITEM, best=1)
    asking = ask_grader(inputs, "words")
    ((need,),) = [next(asking)]
    assert isinstance(need, Grade)
    assert [reference for _, reference, _ in need.items] == ["nobody", "a tall man"]
    logits = Grades(np.array([-1, 2], np.float32), np.zeros(2, np.bool_), np.ones(2, np.int32))
    with pytest.raises(StopIteration) as stop:
        asking.send((logits,))
    assert stop.value.value == Graded(2.0, truncated=False)


async def test_what_is_cut_before_the_grader_reads_it_is_told() -> None:
    # The engine's own limit is far beyond this text: only the metric cuts it.
    engine = HashEngine(max_tokens=10**6)
    long, fits = (
        replace(ITEM, references=("man " + "x" * length,), prediction="man") for length in (MAX_CHARACTERS, 10)
    )
    told = [Remark.TRUNCATED in (await scored(item, engine, features_only=True))[0].warnings for item in (long, fits)]
    assert told == [True, False]
    assert max(len(text) for (texts,) in engine.graded for text in texts) == MAX_CHARACTERS


def asked_again(pieces: int, first: float, second: float) -> tuple[Graded, int]:
    """The grade of an answer whose first reading is truncated, and the number of readings."""
    inputs: Any = SimpleNamespace(item=replace(ITEM, references=("nobody",)), best=0)
    asking = ask_grader(inputs, "words")
    next(asking)
    for rounds, (logit, truncated) in enumerate(((first, True), (second, False)), 1):
        grades = Grades(np.array([logit], np.float32), np.array([truncated]), np.array([pieces], np.int32))
        try:
            asking.send((grades,))
        except StopIteration as stop:
            graded: Graded = stop.value
            return graded, rounds
    raise AssertionError("the answer is read at most twice")


@pytest.mark.parametrize(("first", "second"), [(-1.0, 2.0), (2.0, -1.0)])
def test_the_higher_logit_of_a_long_answer_and_of_its_sentences_counts(first: float, second: float) -> None:
    assert asked_again(MAX_PIECES, first, second) == (Graded(2.0, truncated=False), 2)


def test_a_long_question_alone_is_no_reason_to_read_the_answer_again() -> None:
    assert asked_again(MAX_PIECES - 1, -1.0, 2.0) == (Graded(-1.0, truncated=True), 1)
    assert MAX_PIECES == MOST_PIECES


async def test_of_a_long_answer_the_sentences_that_mention_a_reference_are_graded_too() -> None:
    engine = HashEngine(max_tokens=64)
    notes = "It rained and it snowed. " * 60
    long = replace(ITEM, prediction=f"{notes}I saw a tall man there. {notes}")
    result, _ = await scored(long, engine, features_only=True)
    whole, mentions = engine.graded
    assert {answer for _, _, answer in whole} == {long.prediction}
    assert {(question, reference) for question, reference, _ in mentions} == {each[:2] for each in whole}
    (said,) = {answer for _, _, answer in mentions}
    assert "I saw a tall man there." in said
    assert len(said.split()) < 30
    assert Remark.TRUNCATED not in result.warnings


async def test_what_the_grader_did_not_read_is_told() -> None:
    result, _ = await scored(replace(ITEM, prediction="man " * 70), HashEngine(max_tokens=64), features_only=True)
    assert Remark.TRUNCATED in result.warnings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"calibrations": (WITHOUT,)},
            "this encoder has no fit for correctness with grader words. Omit grader, or fit one with",
        ),
        ({"calibrations": (WITH,), "grader": ""}, "this encoder has no fit for correctness: fit one with"),
        (
            {"grader": f"words@{DIGEST}"},
            f"was made for a grader with the digest {OTHER[:12]}, but words has {DIGEST[:12]}",
        ),
        ({"grader": f"letters@{OTHER}"}, "with grader letters, but with words. Omit grader, name words, or fit one"),
        ({"calibrations": (stored(fit_with_grader(grader_digest=""), ("grader", "words")),)}, "with the digest none"),
    ],
)
def test_a_fit_is_for_its_grader_alone(changes: dict[str, Any], message: str) -> None:
    found = fit_of(replace(METADATA, **changes))
    assert isinstance(found, str)
    assert message in found


def test_fits_with_and_without_a_grader_stand_beside_each_other() -> None:
    beside, alone = fit_of(METADATA), fit_of(replace(METADATA, grader=""))
    assert not isinstance(beside, str)
    assert not isinstance(alone, str)
    assert (beside.form.grader_digest, alone.form.grader_digest) == (OTHER, "")
    assert beside.identity != alone.identity


def test_batch_noise_of_a_logit_moves_no_probability_by_more_than_2e4() -> None:
    # Logits of one item differ by 1e-5 between batches; the steepest ramp that a fit may have is that of its width.
    assert 1e-5 / GRADER.width < 2e-4
    assert math.isfinite(GRADER.width)


METRIC = Correctness()
MODEL = f"m@{DIGEST_METRIC}"
METADATA_METRIC = ModelMetadata(stored_fit(fit_text()), digest=DIGEST_METRIC)
PARAMETERS = CorrectnessParameters(model=MODEL)
VECTORS = {"red cat": at(0), "cat": at(10), "dog": at(60), "red": at(40)}
SMILES = SmileParameters(model=MODEL, preset="one_pass")


def graded(
    prediction: str = "red cat",
    *references: str,
    question: str = "Which?",
    table: Table | None = None,
    parameters: CorrectnessParameters = PARAMETERS,
    metadata: ModelMetadata = METADATA_METRIC,
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
    assert result.warnings == (ResultWarning.UNCERTAIN,)
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
        found = graded(metadata=replace(METADATA_METRIC, calibrations=stored_fit(text))).parts
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


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
@pytest.mark.parametrize(
    ("prediction", "reason"), [("it is red", ""), ("older than red", "mention"), ("det är inte red", "language")]
)
def test_what_is_only_mentioned_or_cannot_be_read_is_uncertain_at_any_confidence(
    *, confidence: float, prediction: str, reason: str
) -> None:
    """The band holds 0.5 alone. P(right) is that of the fit: only the warning is added."""
    narrow = {"count": 999, "ranks": [1], "values": [0.5]}
    text = fit_text(conformal={"right": narrow, "wrong": narrow})
    result = graded(
        prediction,
        "red",
        table=table_of({prediction: at(0), "red": at(0)}),
        parameters=CorrectnessParameters(model=MODEL, confidence=confidence),
        metadata=replace(METADATA_METRIC, calibrations=stored_fit(text)),
    )
    assert (result.score, result.correct) == (pytest.approx(0.95), True)
    assert result.parts.features["related"] == float(reason == "mention")
    assert (result.parts.uncertain, result.parts.uncertain_reason) == (bool(reason), reason)
    assert result.warnings == ((ResultWarning.UNCERTAIN,) if reason else ())


def test_the_claim_is_what_smile_and_the_features_read() -> None:
    whole, claim = (graded(text, "red", table=table_of({"red": at(0)})) for text in ("Blue? No, red.", "red"))
    assert (whole.score, whole.parts) == (claim.score, claim.parts)


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
    known = {feature.name for feature in FEATURES} | set(INPUT_KIND)
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
    assert result.warnings == (ResultWarning.TRUNCATED, ResultWarning.UNCERTAIN)


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
    assert CorrectnessParameters(model="m").resolved(METADATA_METRIC).fit == identity
    assert CorrectnessParameters(model="m", fit=identity[:8]).resolved(METADATA_METRIC).fit == identity
    with pytest.raises(ParameterError, match=f"fit is {identity}, not"):
        CorrectnessParameters(model="m", fit="0" * 12).resolved(METADATA_METRIC)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("", "no fit for correctness: fit one with `gradewire calibrate"),
        ("", "run `gradewire models build NAME` again"),
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
    filled_in = CorrectnessParameters(model="m").resolved(METADATA_METRIC)
    assert filled_in.calibration == described
    assert CorrectnessParameters(model="m", fit=fit_id(fit_text())[:8]).resolved(METADATA_METRIC) == filled_in
    assert CorrectnessParameters(model="m", features_only=True).resolved(METADATA_METRIC).calibration == ""


def test_a_fit_for_another_version_of_the_metric_is_passed_over() -> None:
    old, here = stored_fit(fit_text(base=0.5)), stored_fit(fit_text(), version=METRIC.info.version)
    metadata = replace(METADATA_METRIC, calibrations=(*stored_fit("{", version=9), *here)).seen_by(METRIC.info)
    assert CorrectnessParameters(model="m").resolved(metadata).fit == fit_id(fit_text())
    later = replace(METRIC.info, version=METRIC.info.version + 1)
    assert replace(METADATA_METRIC, calibrations=old).seen_by(later).calibrations == ()


def test_a_fit_for_the_version_before_is_told_from_none() -> None:
    before = replace(METADATA_METRIC, calibrations=(*stored_fit(fit_text(), version=1), *stored_fit("{", version=1)))
    for metadata in (before.seen_by(METRIC.info), before.seen_by(METRIC.info).seen_by(METRIC.info)):
        with pytest.raises(ParameterError) as refused:
            CorrectnessParameters(model="m").resolved(metadata)
        assert refused.value.message.startswith("this encoder's fit is for correctness/1, but this release computes ")
        assert "`gradewire models build NAME`" in refused.value.message
        assert "`gradewire calibrate FILE --metric correctness`" in refused.value.message
    others = replace(METADATA_METRIC, calibrations=(replace(before.calibrations[0], metric="auto"),)).seen_by(
        METRIC.info
    )
    with pytest.raises(ParameterError, match="has no fit for correctness"):
        CorrectnessParameters(model="m").resolved(others)


def test_what_cannot_be_read_fails_this_metric_unless_features_alone_are_asked_for() -> None:
    spoilt = replace(METADATA_METRIC, unreadable=(("correctness", "take it away"), ("smile", "another")))
    metadata = spoilt.seen_by(METRIC.info)
    assert metadata.unreadable == (("correctness", "take it away"),)
    with pytest.raises(ParameterError, match="model: take it away"):
        CorrectnessParameters(model="m").resolved(metadata)
    only = CorrectnessParameters(model="m", features_only=True)
    assert only.resolved(metadata) == only


def test_what_is_no_number_is_no_score() -> None:
    """A fit that is read gives none (`FitForm`); should one ever, there is no verdict of it."""
    asked = METRIC.score(Item("1", "", ("dog",), "red cat"), PARAMETERS, METADATA_METRIC)
    assert table_of(VECTORS).run(asked).status is Status.OK
    fit = read_fit(fit_text(), FEATURES, version=METRIC.info.version)
    spoilt = replace(fit, form=fit.form.model_copy(update={"base": math.nan}))
    inputs = table_of(VECTORS).run(gather_inputs(Item("1", "", ("dog",), "red cat"), MODEL))
    with pytest.raises(FailureError) as stopped:
        _result(inputs, None, spoilt, 0.9)
    result = stopped.value.result
    assert (result.status, result.score, result.correct) == (Status.INTERNAL, None, None)
    assert "gradewire calibrate" in result.message


def test_a_fit_with_steps_where_vectors_are_compared_is_not_used() -> None:
    """The least width is the feature's own: with less the last bits of vectors would move P by more than 2e-4."""
    width = next(feature.width for feature in FEATURES if feature.name == "keyword")
    for wide, used in ((width, True), (width / 2, False), (0.0, False)):
        text = fit_text(features=[FORM["features"][0] | {"width": wide}, FORM["features"][1]])
        found = fit_of(replace(METADATA_METRIC, calibrations=stored_fit(text)))
        assert isinstance(found, CorrectnessFit) is used
        assert used or "keyword must have a width of at least 0.02" in str(found)


def test_a_fit_for_other_vectors_is_not_used() -> None:
    metadata = replace(METADATA_METRIC, digest="6" * 64)
    said = "was made for an encoder with the digest 555555555555, but this encoder has 666666666666"
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
        found.append(graded(table=table, metadata=METADATA_METRIC))
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


PETS = "Which? A) red cat B) dog"


def chosen(prediction: str, confidence: float = 0.9) -> Any:
    choice = choice_of(Item("1", PETS, ("dog",), prediction))
    assert choice is not None
    return _chosen(graded(), choice, confidence)


@pytest.mark.parametrize(
    ("prediction", "choice", "score", "uncertain"),
    [
        ("B", "right", 0.95, False),
        ("(A) is wrong, so the dog", "right", 0.95, False),
        ("A", "wrong", 0.05, False),
        ("B) red cat", "conflict", 0.1, True),
        ("A or B", "several", 0.1, True),
        ("I don't know", "none", 0.1, True),
    ],
)
def test_a_choice_replaces_the_fits_probability(prediction: str, choice: str, score: float, *, uncertain: bool) -> None:
    result = chosen(prediction)
    assert (result.score, result.correct) == (pytest.approx(score), choice == "right")
    parts = result.parts
    assert (parts.choice, parts.uncertain, parts.uncertain_reason) == (choice, uncertain, "choice" if uncertain else "")
    assert result.warnings == ((ResultWarning.UNCERTAIN,) if uncertain else ())
    assert (parts.fit, parts.smile) == (fit_id(fit_text()), graded().parts.smile)


def test_a_choice_is_uncertain_at_a_higher_confidence_than_it_has() -> None:
    result = chosen("B", confidence=0.99)
    assert (result.correct, result.parts.uncertain_reason, result.parts.band_upper) == (True, "choice", 0.99)


@pytest.mark.parametrize(("prediction", "choice"), [("dog", "right"), ("red cat", "wrong")])
def test_options_in_the_question_let_the_choice_decide(prediction: str, choice: str) -> None:
    assert graded(prediction, question=PETS).parts.choice == choice


def test_the_fit_decides_where_a_reference_names_no_option() -> None:
    result, plain = graded("red cat", "cat", question=PETS), graded("red cat", "cat")
    assert (result.score, result.warnings, result.parts.choice) == (plain.score, plain.warnings, "")


def test_features_alone_do_not_read_the_choice() -> None:
    only = CorrectnessParameters(model=MODEL, features_only=True)
    assert graded("dog", question=PETS, parameters=only, metadata=NO_MODEL).parts.choice == ""
