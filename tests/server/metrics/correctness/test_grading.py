import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.engines.correctness_fits import FORM
from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.calibration import Calibration
from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import ModelMetadata
from gradewire_server.domain.needs import Grade, Grades
from gradewire_server.domain.parts import CorrectnessParts
from gradewire_server.domain.result import MetricResult, Status
from gradewire_server.domain.result import Warning as Remark
from gradewire_server.metrics.correctness.features.catalog import FEATURES, GRADER, features_of
from gradewire_server.metrics.correctness.grading import Graded, ask_grader
from gradewire_server.metrics.correctness.metric import VERSION, Correctness, CorrectnessParameters, fit_of
from gradewire_server.metrics.grader.texts import MAX_CHARACTERS
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
    from gradewire_server.domain.result import Failure  # noqa: PLC0415 - beside its one use

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


async def test_what_the_grader_did_not_read_is_told() -> None:
    result, _ = await scored(replace(ITEM, prediction="man " * 70), HashEngine(max_tokens=64), features_only=True)
    assert Remark.TRUNCATED in result.warnings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"calibrations": (WITHOUT,)}, "this encoder has no fit for correctness with grader words: fit one with"),
        ({"calibrations": (WITH,), "grader": ""}, "this encoder has no fit for correctness: fit one with"),
        (
            {"grader": f"words@{DIGEST}"},
            f"was made with a grader of the digest {OTHER[:12]}, and words has {DIGEST[:12]}",
        ),
        ({"grader": f"letters@{OTHER}"}, "no fit for correctness with grader letters"),
        ({"calibrations": (stored(fit_with_grader(grader_digest=""), ("grader", "words")),)}, "of the digest none"),
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
    assert (beside.grader_digest, alone.grader_digest) == (OTHER, "")
    assert beside.identity != alone.identity


def test_batch_noise_of_a_logit_moves_no_probability_by_more_than_2e4() -> None:
    # Logits of one item differ by 1e-5 between batches; the steepest ramp that a fit may have is that of its width.
    assert 1e-5 / GRADER.width < 2e-4
    assert math.isfinite(GRADER.width)
