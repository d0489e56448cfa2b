"""`correctness` over a socket: beside smile at no further text, pinned to its fit, and failing alone without one."""

from typing import Any

import pytest
from tests.support.engines.correctness_fits import fit_text
from tests.support.servers.wire import SMILE, Wire, item, request

from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2
from gradewire_server.metrics.correctness.fit import fit_id

ITEMS = [item("It was a big cat.", "the cat"), item("a dog, I think", "cat", "hound"), item("", "cat")]


ONE_PASS = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_ONE_PASS))


def spec(**values: Any) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(**values))


def give_fit(wire: Wire, **changes: Any) -> str:
    """Stores a fit with the engine's model; returns its text."""
    text = fit_text(**({"model_digest": wire.engine.digests["hash"]} | changes))
    wire.engine.correctness["hash"] = text
    return text


async def score(wire: Wire, *metrics: types_pb2.MetricSpec) -> scoring_pb2.ScoreResponse:
    reply: scoring_pb2.ScoreResponse = await wire.scoring.Score(request(*ITEMS, metrics=metrics))
    return reply


async def test_beside_smile_nothing_is_embedded_for_it(wire: Wire) -> None:
    give_fit(wire)
    await score(wire, ONE_PASS)
    of_smile = dict(wire.engine.computed)
    asked = list(wire.engine.calls)
    reply = await score(wire, ONE_PASS, spec())
    assert dict(wire.engine.computed) == of_smile
    assert wire.engine.calls == [*asked, *asked], "the needs of both are one call"
    smile, correctness = reply.items[0].results
    assert correctness.correctness.smile == smile.score
    assert correctness.correctness.keyword == smile.smile.keyword
    assert correctness.matched_reference == smile.matched_reference
    assert [result.status for result in reply.items[2].results] == [types_pb2.STATUS_EMPTY_PREDICTION] * 2


async def test_beside_the_usual_smile_a_text_passes_the_encoder_once(wire: Wire) -> None:
    give_fit(wire)
    await score(wire, SMILE)
    of_smile = {text for kind, text in wire.engine.computed}
    await score(wire, SMILE, spec())
    assert {text for kind, text in wire.engine.computed} == of_smile


async def test_the_provenance_asks_for_the_same_again(wire: Wire) -> None:
    text = give_fit(wire)
    reply = await score(wire, spec(confidence=0.8))
    (told,) = reply.provenance
    assert told.metric.correctness.fit == fit_id(text)
    assert told.line == (
        f"correctness/3?confidence=0.8&features_only=false&fit={fit_id(text)}&model=hash@{wire.engine.digests['hash'][:12]}"
    )
    assert told.calibration == "user: fitted on ten rows"
    again = await score(wire, told.metric)
    for before, after in zip(reply.items[:2], again.items[:2], strict=True):
        assert after.results[0].score == before.results[0].score
        assert after.results[0].correctness == before.results[0].correctness
    assert list(again.provenance) == [told]


async def test_a_stream_says_what_a_call_says(wire: Wire) -> None:
    give_fit(wire)
    reply = await score(wire, spec())
    opening = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[spec()]))

    async def requests() -> Any:
        yield opening
        for each in ITEMS:
            yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[each]))

    streamed = {}
    async for message in wire.scoring.ScoreStream(requests()):
        for each in message.items:
            streamed[each.index] = each.results[0]
    assert [streamed[index].score for index in range(2)] == [each.results[0].score for each in reply.items[:2]]
    assert streamed[0].correctness == reply.items[0].results[0].correctness


@pytest.mark.parametrize("changes", [None, {"metric_version": 7}, {"map": {}}])
async def test_without_a_usable_fit_it_fails_alone(wire: Wire, changes: dict[str, Any] | None) -> None:
    if changes is not None:
        give_fit(wire, **changes)
    reply = await score(wire, spec(), ONE_PASS, spec(features_only=True))
    failed, smile, features = reply.items[0].results
    assert (failed.status, failed.HasField("score")) == (types_pb2.STATUS_INVALID_PARAMETER, False)
    assert "gradewire calibrate FILE --metric correctness" in failed.message
    assert (smile.status, features.status) == (types_pb2.STATUS_OK, types_pb2.STATUS_OK)
    assert features.score == smile.score
    assert not features.HasField("correct")
    # The one that is fitted then is used at once.
    give_fit(wire)
    assert (await score(wire, spec())).items[0].results[0].status == types_pb2.STATUS_OK


async def test_another_fit_than_the_one_asked_for_is_refused(wire: Wire) -> None:
    text = give_fit(wire)
    reply = await score(wire, spec(fit="0" * 12), spec(fit=fit_id(text)[:8]))
    refused, scored = reply.items[0].results
    assert refused.status == types_pb2.STATUS_INVALID_PARAMETER
    assert f"metrics[0].correctness.fit: the model's fit is {fit_id(text)}, not" in refused.message
    assert scored.status == types_pb2.STATUS_OK


async def test_a_fit_for_other_weights_is_refused(wire: Wire) -> None:
    give_fit(wire, model_digest="0" * 64)
    result = (await score(wire, spec())).items[0].results[0]
    assert result.status == types_pb2.STATUS_INVALID_PARAMETER
    assert "was made for an encoder with the digest 000000000000" in result.message


@pytest.mark.parametrize("confidence", [0.0, 1.0, 0.49, float("nan")])
async def test_a_confidence_out_of_range_fails_the_metric(wire: Wire, confidence: float) -> None:
    give_fit(wire)
    result = (await score(wire, spec(confidence=confidence))).items[0].results[0]
    assert result.status == types_pb2.STATUS_INVALID_PARAMETER
    assert "metrics[0].correctness.confidence: must be a number from 0.5 to below 1" in result.message


@pytest.mark.parametrize(
    ("changes", "why"),
    [(None, "has no fit"), ({"metric_version": 9}, "version 9"), ({"model_digest": "0" * 64}, "digest")],
)
async def test_the_list_says_which_encoder_cannot_compute_it(
    wire: Wire, changes: dict[str, Any] | None, why: str
) -> None:
    if changes is not None:
        give_fit(wire, **changes)
    listed = await wire.models.List(models_pb2.ListModelsRequest())
    encoder, _, judge = listed.models
    assert (encoder.kind, judge.kind) == ("encoder", "judge")
    assert sorted(encoder.without_metrics) == ["auto", "correctness"]  # which is built on it
    assert why in encoder.without_metrics["correctness"]
    assert not judge.without_metrics
    give_fit(wire)
    encoder, *_ = (await wire.models.List(models_pb2.ListModelsRequest())).models
    assert list(encoder.without_metrics) == ["auto"]  # which has a fit of its own


async def test_the_list_tells_of_it(wire: Wire) -> None:
    listed = await wire.models.List(models_pb2.ListModelsRequest())
    (told,) = [metric for metric in listed.metrics if metric.name == "correctness"]
    assert [parameter.name for parameter in told.parameters] == [
        "model",
        "confidence",
        "features_only",
        "fit",
        "grader",
    ]
    assert (told.minimum, told.maximum, told.higher_is_better) == (0, 1, True)


async def test_what_cannot_be_read_fails_its_metric_alone(wire: Wire) -> None:
    give_fit(wire)
    wire.engine.unreadable = (("smile", "what was fitted for smile cannot be read: take it away"),)
    told = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(threshold=0.5, sentence_weight=0.3))
    sbert = types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())
    reply = await score(wire, SMILE, told, sbert, spec())
    failed, *others = reply.items[0].results
    assert (failed.status, failed.HasField("score")) == (types_pb2.STATUS_INVALID_PARAMETER, False)
    assert "cannot be read: take it away" in failed.message
    assert [each.status for each in others] == [types_pb2.STATUS_OK] * 3
    (model, *_) = (await wire.models.List(models_pb2.ListModelsRequest())).models
    assert sorted(model.without_metrics) == ["auto", "smile"]


async def test_what_was_fitted_for_another_version_is_told_and_does_not_count(wire: Wire) -> None:
    give_fit(wire)
    wire.engine.versions["correctness"] = 9
    (model, *_) = (await wire.models.List(models_pb2.ListModelsRequest())).models
    assert "the calibration for correctness/9 is not used, because this server has correctness/3" in model.remarks[0]
    assert "correctness" in model.without_metrics


async def test_a_claim_is_read_and_what_is_only_mentioned_is_uncertain(wire: Wire) -> None:
    """This fit says "right" wherever the reference's words are there, and its band is narrow: the doubts decide."""
    narrow = {"count": 999, "ranks": [1], "values": [0.5]}
    give_fit(wire, conformal={"right": narrow, "wrong": narrow})
    said = {
        "It is Canberra.": (True, ""),
        "Sydney? No, it is Canberra.": (True, ""),
        "Canberra? No, it is Sydney.": (False, ""),
        "Canberra, or so I think; wait, it is Sydney": (False, ""),
        "<think>Canberra?</think>Sydney": (False, ""),
        "Unlike Canberra, it is no capital": (False, ""),
        "Canberra, espera, Sydney": (False, ""),
        "maybe Canberra": (True, "mention"),
        "Canberra and Sydney": (True, "mention"),
        "a town north of Canberra": (True, "mention"),
        "Canberra? Canberra?": (True, "mention"),
    }
    items = [item(prediction, "Canberra") for prediction in said]
    for spec_ in (spec(confidence=0.5), spec(confidence=0.99)):
        reply: scoring_pb2.ScoreResponse = await wire.scoring.Score(request(*items, metrics=(spec_,)))
        for prediction, each in zip(said, reply.items, strict=True):
            result, (correct, reason) = each.results[0], said[prediction]
            found = (result.correct, result.correctness.uncertain_reason)
            assert found == (correct, reason), (prediction, result)
            assert (types_pb2.WARNING_UNCERTAIN in result.warnings) is bool(reason), prediction
            assert result.correctness.uncertain is bool(reason), prediction
