"""What a server says that contradicts itself does not reach a mean."""

from dataclasses import dataclass

import pytest

from gradewire import Client, MetricScore, ScoreReport, ServerFault, Status
from gradewire._calls.score import _reader
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2

ROW = {"references": ["a"], "prediction": "a"}
PARTS = types_pb2.SmileParts(correct=True)


def answering(odd: types_pb2.MetricResult) -> Client:
    """Scores 0.5, and says what is given for items whose prediction is "odd"."""

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: 0.5)
        for item, answered in zip(request.items, reply.items, strict=True):
            if item.prediction == "odd":
                answered.results[0].CopyFrom(odd)
        return reply

    return Client(transport=StubTransport(answer))


def scored(odd: types_pb2.MetricResult) -> tuple[ScoreReport, MetricScore]:
    rows = [ROW, ROW | {"prediction": "odd"}]
    with answering(odd) as client:
        report = client.score(rows)
        streamed = {item.index: item for item in client.score_stream(rows)}
    assert streamed[1].scores == report[1].scores
    return report, report[1].scores["smile"]


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (types_pb2.STATUS_UNSPECIFIED, Status.UNKNOWN),
        (types_pb2.STATUS_TIMEOUT, Status.TIMEOUT),
        (types_pb2.STATUS_EMPTY_PREDICTION, Status.EMPTY_PREDICTION),
        (999, Status.UNKNOWN),
    ],
)
def test_a_score_beside_another_status_is_dropped(number: types_pb2.Status.ValueType, status: Status) -> None:
    report, result = scored(types_pb2.MetricResult(score=1.0, status=number, smile=PARTS, matched_reference=0))
    assert (result.score, result.status, result.parts, result.matched_reference) == (None, status, None, None)
    summary = report.summary()["smile"]
    assert (summary.mean, summary.scored, summary.share_right) == (0.5, 1, None)
    assert summary.counts == {Status.OK: 1, status: 1}


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), float("-inf")])
def test_ok_without_a_finite_score_is_a_defect_of_the_server(score: float | None) -> None:
    report, result = scored(types_pb2.MetricResult(score=score, status=types_pb2.STATUS_OK, smile=PARTS))
    assert (result.score, result.status, result.parts) == (None, Status.INTERNAL, None)
    assert result.message.startswith("items[1]: the server returned OK with ")
    assert report.summary()["smile"].mean == 0.5
    assert report.summary()["smile"].counts == {Status.OK: 1, Status.INTERNAL: 1}


def test_a_message_about_a_whole_item_says_which() -> None:
    said = "item: 5 bytes of text, item: 4"
    _, result = scored(types_pb2.MetricResult(status=types_pb2.STATUS_INVALID_INPUT, message=said))
    assert result.message == "items[1]: 5 bytes of text, item: 4"


def test_a_result_of_a_metric_that_was_not_asked_for_is_a_fault() -> None:
    odd = types_pb2.MetricResult(metric_index=7, status=types_pb2.STATUS_OK, score=1.0)
    with answering(odd) as client, pytest.raises(ServerFault, match="not requested"):
        client.score([ROW | {"prediction": "odd"}])


@dataclass(frozen=True, slots=True)
class OneField:
    precision: float


def test_parts_of_one_field_are_read() -> None:
    read = _reader("rouge_l", OneField)  # type: ignore[arg-type]
    assert read(types_pb2.MetricResult(rouge_l=types_pb2.RougeLParts(precision=0.5))) == OneField(0.5)
