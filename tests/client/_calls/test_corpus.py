"""Weights over the items of one request: they travel together, or the caller hears what to do instead."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gradewire import AsyncClient, Bertscore, Cider, Client, InvalidRequest, MetricsLike
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import models_pb2, scoring_pb2

LIMITS = models_pb2.ListModelsResponse(limits=models_pb2.Limits(max_items_per_request=200))
REQUEST_METRICS = ["cider", "smile,cider", Cider(corpus="request"), Bertscore(idf="request")]
OTHER_METRICS = ["smile", Cider(corpus="prepared", reference_set="set"), Bertscore(), Bertscore(idf="none")]


class Noting(StubTransport):
    """Notes how many items each request holds."""

    def __init__(self) -> None:
        super().__init__(self._note, models=LIMITS)
        self.sizes: list[int] = []

    def _note(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.sizes.append(len(request.items))
        return echo_scores(request, score=lambda _: 0.5)


def rows(count: int, prediction: str = "b") -> list[dict[str, object]]:
    return [{"id": str(index), "references": ["a"], "prediction": prediction} for index in range(count)]


@pytest.mark.parametrize("metrics", REQUEST_METRICS, ids=str)
@pytest.mark.parametrize("count", [1, 32, 33, 200])
def test_items_that_fit_travel_in_one_request(metrics: MetricsLike, count: int) -> None:
    transport = Noting()
    done: list[tuple[int, int]] = []
    report = Client(transport=transport).score(rows(count), metrics, progress=lambda *each: done.append(each))
    assert transport.sizes == [count]
    assert [item.id for item in report] == [str(index) for index in range(count)]
    assert done == [(count, count)]


@pytest.mark.parametrize("metrics", REQUEST_METRICS, ids=str)
@pytest.mark.parametrize("items", [rows(201), rows(8, "long " * 200_000)], ids=["many", "large"])
def test_items_that_do_not_fit_are_refused_with_both_ways_out(
    metrics: MetricsLike, items: list[dict[str, object]]
) -> None:
    transport = Noting()
    with pytest.raises(InvalidRequest, match="at most 200 ") as caught:
        Client(transport=transport).score(items, metrics)
    assert "reference_set" in str(caught.value)
    assert "gradewire prepare" in str(caught.value)
    assert transport.sizes == []


@pytest.mark.parametrize("metrics", OTHER_METRICS, ids=str)
def test_other_metrics_are_cut_as_ever(metrics: MetricsLike) -> None:
    transport = Noting()
    Client(transport=transport).score(rows(201), metrics)
    assert sum(transport.sizes) == 201
    assert len(transport.sizes) == 2


def test_bad_items_are_refused_alone_and_the_rest_is_one_request() -> None:
    transport = Noting()
    report = Client(transport=transport).score([*rows(40), {"references": {"a"}, "prediction": "b"}], "cider")
    assert transport.sizes == [40]
    assert [str(item.scores["cider"].status) for item in report].count("INVALID_INPUT") == 1


async def test_a_stream_is_refused_before_anything_is_read() -> None:
    async def source() -> AsyncIterator[dict[str, object]]:
        await asyncio.sleep(0)
        yield rows(1)[0]

    async with AsyncClient(transport=Noting()) as client:
        for metrics in REQUEST_METRICS:
            with pytest.raises(InvalidRequest, match="score\\(\\), or prepare"):
                [each async for each in client.score_stream(source(), metrics)]
        for metrics in OTHER_METRICS:
            assert len([each async for each in client.score_stream(source(), metrics)]) == 1
    with pytest.raises(InvalidRequest, match="stream"):
        Client(transport=Noting()).score_stream(rows(1), "cider")
    # Each metric is named once, however many of its layers are asked for.
    layers = "bertscore?layer=1&idf=request,bertscore?layer=2&idf=request,cider"
    with pytest.raises(InvalidRequest, match=r"^bertscore, cider: corpus=request"):
        Client(transport=Noting()).score_stream(rows(1), layers)
