"""Which grader `correctness` has: the one of the encoder's fit, unless the request names another one or none."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.engines.correctness_fits import FORM, fit_text
from tests.support.servers.wire import Wire, item, request

from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2
from gradewire_server.domain.metric import Calibration
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.correctness.metric import VERSION

ITEMS = [item("a man, I think", "a tall man", "nobody"), item("a cat", "a tall man")]


def spec(**values: Any) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(**values))


def plain(wire: Wire) -> str:
    """Stores a fit without a grader; returns its identity."""
    text = fit_text(model_digest=wire.engine.digests["hash"])
    wire.engine.correctness["hash"] = text
    return fit_id(text)


def graded(wire: Wire, **changes: Any) -> str:
    """Stores a fit of the catalog with grader `words`; returns its identity. A logit of 0.5 or more is right."""
    form = FORM | {
        "model_digest": wire.engine.digests["hash"],
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
        "grader_digest": wire.engine.digests["words"],
    }
    text = json.dumps(form)
    made = Calibration("correctness", VERSION, (("grader", "words"),), None, described="catalog", fit=text)
    wire.engine.correctness_graded["hash"] = replace(made, **changes)
    return fit_id(text)


async def score(wire: Wire, *metrics: types_pb2.MetricSpec) -> scoring_pb2.ScoreResponse:
    reply: scoring_pb2.ScoreResponse = await wire.scoring.Score(request(*ITEMS, metrics=metrics))
    return reply


def fits_of(reply: scoring_pb2.ScoreResponse) -> list[str]:
    return [result.correctness.fit for result in reply.items[0].results]


async def test_a_request_that_names_none_has_the_grader_of_the_fit(wire: Wire) -> None:
    plain(wire)
    fit = graded(wire)
    reply = await score(wire, spec())
    (told,) = reply.provenance
    assert fits_of(reply) == [fit]
    assert (told.grader_model, told.grader_digest) == ("words", wire.engine.digests["words"])
    assert f"grader=words@{wire.engine.digests['words'][:12]}" in told.line
    # 0.5 + 0.225 of one log-odds; two of three words of the reference give the logit 1.
    assert [each.results[0].score for each in reply.items] == pytest.approx([0.725, 0.275], abs=1e-6)


async def test_none_leaves_the_grader_out_and_the_identifier_says_so(wire: Wire) -> None:
    fit = plain(wire)
    graded(wire)
    reply = await score(wire, spec(grader="none"))
    (told,) = reply.provenance
    assert fits_of(reply) == [fit]
    assert wire.engine.graded == []
    assert told.grader_model == ""
    assert "&grader=none&" in told.line
    assert told.metric.correctness.grader == "none"
    again = await score(wire, told.metric)
    assert again.items[0].results[0].correctness == reply.items[0].results[0].correctness
    assert list(again.provenance) == [told]


async def test_the_fit_that_is_required_decides(wire: Wire) -> None:
    # A score from before the encoder had a fit with a grader names its fit alone.
    without, beside = plain(wire), graded(wire)
    assert fits_of(await score(wire, spec(fit=without), spec(fit=beside[:8]))) == [without, beside]
    refused = (await score(wire, spec(fit="0" * 12))).items[0].results[0]
    assert f"the model's fit is {beside}, not 000000000000" in refused.message


async def test_features_without_a_fit_have_the_same_choice(wire: Wire) -> None:
    plain(wire)
    graded(wire)
    reply = await score(wire, spec(features_only=True), spec(features_only=True, grader="none"))
    beside, without = reply.items[0].results
    assert dict(beside.correctness.features) == {**without.correctness.features, "grader": pytest.approx(1.0, abs=1e-6)}
    assert "&grader=none&" in reply.provenance[1].line


async def test_a_fit_of_the_users_own_has_precedence(wire: Wire) -> None:
    without = plain(wire)
    (own,) = wire.engine.encoder_statuses()[0].metadata.calibrations
    wire.engine.auto["hash"] = (replace(own, origin="user"),)
    del wire.engine.correctness["hash"]
    beside = graded(wire)
    assert fits_of(await score(wire, spec(), spec(grader="words"))) == [without, beside]
    graded(wire, origin="user")
    assert fits_of(await score(wire, spec())) == [beside]


async def test_of_several_fits_the_one_with_the_default_grader_is_the_usual(wire: Wire) -> None:
    wire.engine.graders = ("words", "letters")
    wire.engine.digests["letters"] = "1e77e45" * 9 + "a"
    usual = graded(wire)
    (stored,) = wire.engine.encoder_statuses()[0].metadata.calibrations
    form = json.loads(stored.fit) | {"grader_digest": wire.engine.digests["letters"], "base": 0.1}
    other = replace(stored, parameters=(("grader", "letters"),), fit=json.dumps(form))
    wire.engine.auto["hash"] = (other,)
    assert fits_of(await score(wire, spec(), spec(grader="letters"))) == [usual, fit_id(other.fit)]
    # Without a fit for the default grader, the encoder's only fit with a grader is the usual one.
    del wire.engine.correctness_graded["hash"]
    assert fits_of(await score(wire, spec())) == [fit_id(other.fit)]


async def test_an_encoder_without_such_a_fit_has_no_grader(wire: Wire) -> None:
    fit = plain(wire)
    reply = await score(wire, spec(), spec(grader="none", confidence=0.9))
    assert fits_of(reply) == [fit, fit]
    assert reply.provenance[0].line == reply.provenance[1].line
    assert "grader" not in reply.provenance[0].line


async def test_a_grader_that_is_missing_fails_the_metric_and_says_what_to_do(wire: Wire) -> None:
    without = plain(wire)
    graded(wire)
    wire.engine.graders = ()
    reply = await score(wire, spec(), spec(grader="none"))
    failed, scored = reply.items[0].results
    assert failed.status == types_pb2.STATUS_MODEL_UNAVAILABLE
    assert failed.message.startswith(
        "metrics[0].correctness.grader: the fit of hash for correctness needs a grader (to do without: grader=none). "
        "there is no grader 'words' here"
    )
    assert scored.correctness.fit == without
    listed = await wire.models.List(models_pb2.ListModelsRequest())
    (encoder,) = [each for each in listed.models if each.name == "hash"]
    assert encoder.without_metrics["correctness"].startswith("the fit of hash for correctness needs a grader")


async def test_the_list_knows_an_encoder_whose_fit_has_a_grader(wire: Wire) -> None:
    graded(wire)
    listed = await wire.models.List(models_pb2.ListModelsRequest())
    (encoder,) = [each for each in listed.models if each.name == "hash"]
    assert "correctness" not in encoder.without_metrics
