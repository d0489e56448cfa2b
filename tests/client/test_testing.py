"""The public seam for tests of other programs: what its documentation promises."""

import asyncio

import pytest

import gradewire
from gradewire import AsyncClient, Client, Smile, Status
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import models_pb2, scoring_pb2

RIGHT = {"references": ["a"], "prediction": "a"}


def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    return echo_scores(
        request, score=lambda item: None if not item.prediction else float(item.prediction in item.references)
    )


def test_a_function_takes_the_servers_place() -> None:
    transport = StubTransport(answer)
    with Client(transport=transport) as client:
        report = client.score([RIGHT, {**RIGHT, "prediction": "b"}, {**RIGHT, "prediction": ""}], Smile(preset="fast"))
        assert [item.scores["smile:fast"].score for item in report] == [1.0, 0.0, None]
        assert report[2].scores["smile:fast"].status is Status.EMPTY_PREDICTION
        assert report.provenance["smile:fast"].metric == Smile(preset="fast", version=1)
        assert len(list(client.score_stream([RIGHT] * 3))) == 3
        prepared = client.prepare([{**RIGHT, "synthetic_answers": ["It is a."]}])
        assert (prepared.entries, prepared.synthetic_answers_stored) == (1, 1)
    assert transport.closed


def test_its_limits_decide_how_the_client_cuts() -> None:
    sizes: list[int] = []

    def counting(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        sizes.append(len(request.items))
        return answer(request)

    models = models_pb2.ListModelsResponse(limits=models_pb2.Limits(max_items_per_request=60))
    with Client(transport=StubTransport(counting, models=models)) as client:
        client.score([RIGHT] * 150)
    assert sorted(sizes) == [30, 60, 60]


async def test_it_may_wait_and_fail_like_a_server() -> None:
    async def slow(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        await asyncio.sleep(60)
        return answer(request)

    def full(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise gradewire.Overloaded(f"no room for {len(request.items)}", retry_after_s=1)

    async with AsyncClient(transport=StubTransport(slow)) as client:
        with pytest.raises(gradewire.DeadlineExceeded):
            await client.score([RIGHT], deadline_s=0.05)
    async with AsyncClient(transport=StubTransport(full)) as client:
        with pytest.raises(gradewire.Overloaded, match="no room for 1"):
            await client.score([RIGHT], deadline_s=0.5)


def other_line(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    if request.items[0].id == "other":
        reply.provenance[0].line = "smile/1?model=m@ffffffff"
    return reply


def too_few(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    del reply.items[0]
    return reply


def a_metric_less(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    del reply.items[0].results[0]
    return reply


def test_scores_of_different_models_are_never_mixed() -> None:
    rows = [{**RIGHT, "id": "other" if index >= 128 else ""} for index in range(256)]
    with Client(transport=StubTransport(other_line)) as client:
        with pytest.raises(gradewire.InconsistentReplies, match="pin version and model"):
            client.score(rows)
        assert len(client.score(rows[:128])) == 128


@pytest.mark.parametrize("broken", [too_few, a_metric_less])
def test_a_reply_that_does_not_fit_the_request_is_refused(broken: object) -> None:
    with Client(transport=StubTransport(broken)) as client, pytest.raises(gradewire.ServerFault):  # type: ignore[arg-type]
        client.score([RIGHT] * 3, "smile,sbert")


def test_a_newer_servers_status_and_warning_are_told_as_unknown() -> None:
    def newer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        reply.items[0].results[0].status = 99  # type: ignore[assignment]
        reply.items[0].results[0].ClearField("score")
        reply.items[0].results[0].warnings.append(98)  # type: ignore[arg-type]
        return reply

    with Client(transport=StubTransport(newer)) as client:
        result = client.score([RIGHT])[0].scores["smile"]
    assert (result.score, result.status, result.warnings) == (None, Status.UNKNOWN, (gradewire.ScoreWarning.UNKNOWN,))
