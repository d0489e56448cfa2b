"""Identifiers in the place of metrics: any that the client library reads, with its errors, on a real socket."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from tests.client.metrics.metric_values import metrics_named
from tests.gateway.test_app import problem
from tests.support.servers.gateway import LINES, SCORE, SCORE_STREAM, RunningGateway
from tests.support.servers.wire import item

from gradewire import InvalidRequest, format_metric_line
from gradewire.metrics import METRIC_TYPES
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_gateway.problems import Problem, ProblemError
from gradewire_gateway.wire import read_message
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2

ITEM = json_format.MessageToDict(item())
METRICS = st.sampled_from(sorted(METRIC_TYPES)).flatmap(metrics_named)


def score_request(**fields: Any) -> scoring_pb2.ScoreRequest:
    return read_message(json.dumps(fields).encode(), scoring_pb2.ScoreRequest)


@given(METRICS)
def test_an_identifier_is_the_metric_that_the_client_sends(metric: Any) -> None:
    found = outcome_of(format_metric_line(metric))
    if isinstance(found, Problem):
        with pytest.raises(InvalidRequest) as refused:
            choose_metrics(format_metric_line(metric), MetricDefaults())
        assert (found.at, found.detail) == ("metrics[0]", f"metrics[0]: {refused.value}")
        return
    choice = choose_metrics(format_metric_line(metric), MetricDefaults())
    (spec,) = choice.specs
    assert found.reference_set == choice.reference_set
    assert found.metrics[0].version == (metric.version or 0)
    found.metrics[0].ClearField("version")
    assert found.metrics[0] == spec


def outcome_of(identifier: str) -> scoring_pb2.ScoreRequest | Problem:
    try:
        return score_request(metrics=[identifier])
    except ProblemError as error:
        return error.problem


@given(st.text(max_size=30))
def test_any_text_is_a_metric_or_an_error_at_its_place(text: str) -> None:
    found = outcome_of(text)
    if isinstance(found, Problem):
        assert found.at == "metrics[0]"
        assert found.detail.startswith("metrics[0]: ")
    else:
        assert len(found.metrics) == len(text.split(","))


def test_identifiers_stand_beside_objects_and_in_any_request() -> None:
    found = score_request(metrics=["smile:fast,sbert", {"rougeL": {}}, "exact_match/1"])
    assert [spec.WhichOneof("metric") for spec in found.metrics] == ["smile", "sbert", "rouge_l", "exact_match"]
    assert found.metrics[0].smile.preset == types_pb2.SMILE_PRESET_FAST
    prepared = read_message(b'{"metrics": ["cider"]}', references_pb2.PrepareRequest)
    assert prepared.metrics[0].HasField("cider")
    stream = read_message(b'{"config": {"metrics": ["smile"]}}', scoring_pb2.ScoreStreamRequest)
    assert stream.config.metrics[0].HasField("smile")


@pytest.mark.parametrize("own", [{}, {"reference_set": ""}, {"referenceSet": "mine"}])
def test_the_set_of_an_identifier_is_that_of_the_call(own: dict[str, str]) -> None:
    found = score_request(metrics=["smile?reference_set=mine"], **own)
    assert found.reference_set == "mine"
    assert found.metrics[0].smile.synthetic == types_pb2.SYNTHETIC_MODE_PREPARED


@pytest.mark.parametrize(
    ("metrics", "own", "at", "said"),
    [
        (
            ["smyle"],
            {},
            "metrics[0]",
            "unknown metric 'smyle': use one of correctness, smile",
        ),
        ([{"smile": {}}, "smile?weight=1"], {}, "metrics[1]", "smile has no parameter 'weight'"),
        (["smile:quick"], {}, "metrics[0]", "smile has no preset 'quick': use one of v1, fast"),
        ([""], {}, "metrics[0]", "is not a metric: write NAME"),
        (["compare"], {}, "metrics[0]", "compares two answers"),
        ([3], {}, "metrics[0]", 'must be an object, or a metric identifier such as "smile:fast"'),
        (["smile"] * 257, {}, "metrics", "has 257 metric identifiers; send at most 256"),
        (["smile?reference_set=a"], {"reference_set": "b"}, "reference_set", "names 'b' and metrics[0] names 'a'"),
    ],
)
def test_what_is_wrong_with_an_identifier_names_its_place(
    metrics: list[Any], own: dict[str, str], at: str, said: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        score_request(metrics=metrics, **own)
    assert caught.value.problem.at == at
    assert said in caught.value.problem.detail


async def test_the_line_of_a_result_gives_its_scores_again(gateway: RunningGateway) -> None:
    first = (await gateway.post(SCORE, {"items": [ITEM], "metrics": ["smile:fast", "exact_match"]})).json()
    lines = [each["line"] for each in first["provenance"]]
    assert lines[0].startswith("smile:fast/1?")
    again = (await gateway.post(SCORE, {"items": [ITEM], "metrics": lines})).json()
    assert [each["line"] for each in again["provenance"]] == lines
    assert [each["score"] for each in again["items"][0]["results"]] == [
        each["score"] for each in first["items"][0]["results"]
    ]


@pytest.mark.parametrize(("identifier", "at"), [("smile/99", "metrics[1].version"), ("smile?model=hash@00000000", "")])
async def test_a_line_of_another_version_or_model_is_refused(gateway: RunningGateway, identifier: str, at: str) -> None:
    reply = await gateway.post(SCORE, {"items": [ITEM], "metrics": ["exact_match", identifier]})
    if at:
        assert problem(reply) == (400, "invalid_argument", at)
        assert "smile has version 1 here, not 99; leave the version out" in reply.json()["detail"]
    else:
        assert reply.json()["items"][0]["results"][1]["status"] == "STATUS_MODEL_UNAVAILABLE"


async def test_a_stream_takes_identifiers_too(gateway: RunningGateway) -> None:
    lines = [{"config": {"metrics": ["exact_match"]}}, {"items": {"items": [ITEM]}}]
    given = {name.replace("-", "_"): value for name, value in LINES.items()}
    reply = await gateway.post(SCORE_STREAM, "\n".join(map(json.dumps, lines)), **given)
    assert reply.status_code == 200
    assert "exact_match/1" in reply.text
    wrong = await gateway.post(SCORE_STREAM, json.dumps({"config": {"metrics": ["smyle"]}}), **given)
    assert problem(wrong) == (400, "invalid_argument", "config.metrics[0]")
    assert wrong.json()["detail"].startswith("line 1: config.metrics[0]: unknown metric")
