import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.small_server import Fault, SmallServer

import gradewire
from gradewire import AsyncClient, Bertscore, Cider, Client, InvalidRequest, Limits, MetricsLike, Status
from gradewire._calls.requests import CHUNK_ITEMS, SAFE_MESSAGE_BYTES, ChunkLimits, chunk_limits, cut
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2


@given(
    sizes=st.lists(st.integers(0, 400), max_size=60),
    max_items=st.integers(1, 10),
    max_bytes=st.integers(50, 600),
)
def test_chunks_keep_order_and_limits(sizes: list[int], max_items: int, max_bytes: int) -> None:
    items = [types_pb2.Item(id=str(index), prediction="x" * size) for index, size in enumerate(sizes)]
    chunks = list(cut(enumerate(items), ChunkLimits(max_items=max_items, max_bytes=max_bytes)))
    assert [message for chunk in chunks for message in chunk.messages] == items
    assert [index for chunk in chunks for index in chunk.indices] == list(range(len(items)))
    for chunk in chunks:
        assert 1 <= len(chunk.messages) <= max_items
        request = scoring_pb2.ScoreRequest(items=chunk.messages)
        assert request.ByteSize() <= max_bytes or len(chunk.messages) == 1


@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=40), max_items=st.integers(1, 5))
def test_no_chunk_could_take_the_first_of_the_next(sizes: list[int], max_items: int) -> None:
    items = [types_pb2.Item(prediction="x" * size) for size in sizes]
    limits = ChunkLimits(max_items=max_items, max_bytes=500)
    chunks = list(cut(enumerate(items), limits))
    for chunk, following in pairwise(chunks):
        room = limits.max_bytes - sum(message.ByteSize() + 8 for message in chunk.messages)
        assert len(chunk.messages) == max_items or following.messages[0].ByteSize() + 8 > room


def test_cutting_is_lazy() -> None:
    taken: list[int] = []

    def source() -> Iterator[tuple[int, types_pb2.Item]]:
        for index in range(100):
            taken.append(index)
            yield index, types_pb2.Item()

    next(cut(source(), ChunkLimits(max_items=10)))
    assert len(taken) == 11


def test_what_the_server_says_wins_and_silence_means_safe_values() -> None:
    assert chunk_limits(None, overhead_bytes=0).max_items == CHUNK_ITEMS
    assert chunk_limits(Limits(), overhead_bytes=0).max_item_bytes < SAFE_MESSAGE_BYTES
    told = chunk_limits(Limits(max_items_per_request=3, max_message_bytes=10_000), overhead_bytes=100)
    assert told.max_items == 3
    assert told.max_bytes == told.max_item_bytes < 9_900
    assert chunk_limits(Limits(max_message_bytes=2**30), overhead_bytes=0).max_item_bytes > 2**29


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


RIGHT = {"references": ["a"], "prediction": "a"}
WRONG = {"references": ["a"], "prediction": "b"}


@pytest.fixture
def client(small_server: SmallServer) -> Iterator[Client]:
    with Client(small_server.address, deadline_s=20) as client:
        yield client


def rows_score(count: int) -> list[dict[str, object]]:
    return [{"id": str(index), "references": ["a"], "prediction": "ab"[index % 2]} for index in range(count)]


def test_results_are_typed_and_in_order(client: Client) -> None:
    report = client.score([RIGHT | {"id": "one"}, WRONG], "smile:fast,sbert")
    assert [item.index for item in report] == [0, 1]
    assert [item.id for item in report] == ["one", ""]
    assert list(report[0].scores) == ["smile:fast", "sbert"]
    first = report[0].scores["smile:fast"]
    assert (first.score, first.status) == (1.0, Status.OK)
    assert first.provenance is report.provenance["smile:fast"]
    assert report.provenance["smile:fast"].metric == gradewire.Smile(preset="fast", version=1)


def test_few_items_need_one_request_and_no_list(client: Client, small_server: SmallServer) -> None:
    client.score(rows_score(32), "smile")
    assert len(small_server.script.requests) == 1
    assert small_server.script.listed == 0


def test_many_items_are_cut_and_come_back_in_order(client: Client, small_server: SmallServer) -> None:
    small_server.script.limits = models_pb2.Limits(max_items_per_request=50)
    seen = []
    report = client.score(iter(rows_score(333)), progress=lambda done, total: seen.append((done, total)))
    assert [item.id for item in report] == [str(index) for index in range(333)]
    assert [item.scores["smile"].score for item in report] == [float(index % 2 == 0) for index in range(333)]
    assert sorted(len(request.items) for request in small_server.script.requests) == [33, *[50] * 6]
    assert seen[-1] == (333, 333)
    assert seen == sorted(seen)
    client.score(rows_score(333))
    assert small_server.script.listed == 1


def test_large_items_are_cut_by_bytes(client: Client, small_server: SmallServer) -> None:
    big = {"references": ["a"], "prediction": "x" * 700_000}
    report = client.score([big, RIGHT, big, big])
    assert [item.scores["smile"].score for item in report] == [0.0, 1.0, 0.0, 0.0]
    assert sorted(len(request.items) for request in small_server.script.requests) == [1, 1, 2]


def test_an_item_above_the_message_limit_fails_alone(client: Client) -> None:
    huge = {"references": ["a"], "prediction": "x" * 5_000_000, "id": "huge"}
    report = client.score([RIGHT, huge, WRONG])
    assert [item.scores["smile"].status for item in report] == [Status.OK, Status.INVALID_INPUT, Status.OK]
    assert report[1].id == "huge"
    assert "items[1] has 5000" in report[1].scores["smile"].message


def test_an_item_that_the_servers_limit_allows_is_sent(client: Client, small_server: SmallServer) -> None:
    small_server.script.limits = models_pb2.Limits(max_message_bytes=4 * 1024 * 1024)
    report = client.score([{"references": ["a"], "prediction": "x" * 3_000_000}])
    assert report[0].scores["smile"].status is Status.OK


def test_bad_items_are_named_and_neighbours_scored(client: Client, small_server: SmallServer) -> None:
    report = client.score([{"prediction": "a"}, RIGHT, RIGHT | {"prediction": "\ud800"}, 5])
    assert [item.scores["smile"].status.value for item in report] == ["INVALID_INPUT", "OK", *["INVALID_INPUT"] * 2]
    assert "items[2].prediction has a lone surrogate" in report[2].scores["smile"].message
    (request,) = small_server.script.requests
    assert len(request.items) == 1


def test_only_bad_items_need_no_server() -> None:
    with Client("127.0.0.1:1") as client:
        assert client.score([5], "smile")[0].scores["smile"].status is Status.INVALID_INPUT


def test_no_items_give_an_empty_report_with_provenance(client: Client) -> None:
    report = client.score([], "smile")
    assert len(report) == 0
    assert report.provenance["smile"].line == "smile/1"


def test_another_version_is_refused(client: Client) -> None:
    with pytest.raises(gradewire.InvalidRequest, match="you request version 2 of smile"):
        client.score([RIGHT], "smile/2")
    assert client.score([RIGHT], "smile/1")[0].scores["smile"].score == 1.0


def test_retries_obey_the_servers_pushback(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, pushback_ms=400)]
    started = time.monotonic()
    assert client.score([RIGHT])[0].scores["smile"].score == 1.0
    # Not a limit on speed: the server asked for this pause, and gRPC's own would be about 0.1 s.
    assert time.monotonic() - started >= 0.4
    assert len(small_server.script.requests) == 2


def test_a_large_request_is_repeated_as_well(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE)]
    report = client.score([{"references": ["a"], "prediction": "x" * 900_000}])
    assert report[0].scores["smile"].status is Status.OK
    assert len(small_server.script.requests) == 2


def test_a_call_is_made_again_until_its_deadline(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "going down", pushback_ms=50)] * 500
    with pytest.raises(gradewire.ServerUnreachable, match=r"going down.* Tried \d+ times in \d\.\d s") as caught:
        client.score([RIGHT], deadline_s=1)
    assert len(small_server.script.requests) > 5, "more often than gRPC itself would try"
    assert f"Tried {len(small_server.script.requests)} times" in str(caught.value)


def test_the_list_of_models_is_asked_for_again(client: Client, small_server: SmallServer) -> None:
    small_server.script.list_faults = [Fault(grpc.StatusCode.UNAVAILABLE, pushback_ms=1)] * 12
    assert client.models().server_version == "small"


@pytest.mark.parametrize(
    ("code", "kind", "base"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, gradewire.InvalidRequest, ValueError),
        (grpc.StatusCode.FAILED_PRECONDITION, gradewire.NotReady, gradewire.RequestError),
        (grpc.StatusCode.UNAUTHENTICATED, gradewire.AccessDenied, gradewire.RequestError),
        (grpc.StatusCode.PERMISSION_DENIED, gradewire.AccessDenied, gradewire.RequestError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, gradewire.DeadlineExceeded, TimeoutError),
        (grpc.StatusCode.INTERNAL, gradewire.ServerFault, gradewire.TransportError),
        (grpc.StatusCode.UNIMPLEMENTED, gradewire.ServerFault, gradewire.TransportError),
    ],
)
def test_codes_become_typed_errors(
    client: Client, small_server: SmallServer, code: grpc.StatusCode, kind: type[Exception], base: type[Exception]
) -> None:
    small_server.script.faults = [Fault(code, "because of metrics[0]")]
    with pytest.raises(base, match=r"because of metrics\[0\]") as caught:
        client.score([RIGHT])
    assert type(caught.value) is kind
    assert len(small_server.script.requests) == 1


def test_overload_says_when_to_come_back(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", pushback_ms=60_000)]
    with pytest.raises(gradewire.Overloaded, match="full") as caught:
        client.score([RIGHT], deadline_s=30)
    assert caught.value.retry_after_s == 60


def test_a_client_outlasts_overload(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", pushback_ms=10)] * 12
    assert client.score([RIGHT])[0].scores["smile"].score == 1.0


def test_a_call_that_the_server_drops_is_made_again(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.CANCELLED, pushback_ms=1)] * 7
    assert client.score([RIGHT])[0].scores["smile"].score == 1.0
    small_server.script.faults = [Fault(grpc.StatusCode.CANCELLED, pushback_ms=60_000)]
    with pytest.raises(gradewire.Overloaded, match="too many calls"):
        client.score([RIGHT], deadline_s=30)


def test_a_call_may_let_others_go_first(client: Client, small_server: SmallServer) -> None:
    client.score([RIGHT])
    client.score([RIGHT], priority="bulk")
    client.submit([RIGHT], priority="bulk").result(10)
    sent = [request.priority for request in small_server.script.requests]
    assert sent == [scoring_pb2.PRIORITY_UNSPECIFIED, scoring_pb2.PRIORITY_BULK, scoring_pb2.PRIORITY_BULK]
    with pytest.raises(gradewire.InvalidRequest, match="priority must be one of normal, bulk, not 'urgent'"):
        client.score([RIGHT], priority="urgent")  # type: ignore[arg-type] # as a caller without types may


def test_nobody_there() -> None:
    with (
        Client("127.0.0.1:1") as client,
        pytest.raises(ConnectionError, match=r"no gradewire server answers at 127\.0\.0\.1:1.* Tried \d+ times in"),
    ):
        client.score([RIGHT], deadline_s=0.5)


@pytest.mark.parametrize("items", [1, 100])
def test_a_calls_own_deadline_holds_for_all_that_it_asks(items: int) -> None:
    # More than a few items: the server is asked for its limits first.
    with Client("127.0.0.1:1", deadline_s=1000) as client, pytest.raises(gradewire.ServerUnreachable, match="Tried"):
        client.score(rows_score(items), deadline_s=0.3)


@pytest.mark.parametrize("call", ["client.score([RIGHT], 'lave')", "client.prepare([RIGHT])"])
def test_calls_of_an_hour_look_for_a_server_no_longer_than_others(call: str) -> None:
    with Client("127.0.0.1:1", deadline_s=0.3) as client, pytest.raises(gradewire.ServerUnreachable, match="Tried"):
        eval(call, {"client": client, "RIGHT": RIGHT})  # noqa: S307 - a text of this file


def test_the_deadline_holds_for_the_whole_call(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    with pytest.raises(gradewire.DeadlineExceeded, match="deadline_s"):
        client.score(rows_score(300), deadline_s=0.3)


def test_what_was_answered_before_a_failure_stands(client: Client, small_server: SmallServer) -> None:
    small_server.script.limits = models_pb2.Limits(max_items_per_request=10)
    client.models()
    answered = threading.Semaphore(0)

    def score(item: types_pb2.Item) -> float:
        if item.id == "9":
            small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "gone", pushback_ms=20)] * 1000
            answered.release()
        return 1.0

    small_server.script.score = score
    report = client.score(rows_score(400), deadline_s=2)
    assert len(report) == 400
    statuses = report.summary()["smile"].counts
    assert statuses[Status.OK] >= 10
    assert statuses[Status.UNAVAILABLE] > 0
    # A last try that the deadline cuts off is a TIMEOUT, as one on a busy machine may be.
    assert statuses[Status.UNAVAILABLE] + statuses.get(Status.TIMEOUT, 0) == 400 - statuses[Status.OK]
    lost = next(item.scores["smile"] for item in report if item.scores["smile"].status is Status.UNAVAILABLE)
    assert lost.score is None
    assert "gone" in lost.message


def test_a_wrong_request_fails_the_call_even_when_others_were_answered(
    client: Client, small_server: SmallServer
) -> None:
    small_server.script.limits = models_pb2.Limits(max_items_per_request=10)

    def score(item: types_pb2.Item) -> float:
        small_server.script.faults.append(Fault(grpc.StatusCode.INVALID_ARGUMENT, f"items[3]{item.id[:0]}"))
        return 1.0

    small_server.script.score = score
    with pytest.raises(gradewire.InvalidRequest, match=r"items\[3\]"):
        client.score(rows_score(200))


def test_an_exception_of_progress_ends_the_call(client: Client) -> None:
    def progress(done: int, total: int) -> None:
        raise KeyError(done, total)

    with pytest.raises(KeyError):
        client.score(rows_score(300), progress=progress)
    assert client.score([RIGHT])[0].scores["smile"].score == 1.0


def test_the_token_travels_with_every_call(small_server: SmallServer) -> None:
    with Client(small_server.address, token="s3cret") as client:  # noqa: S106 - a test's own
        client.score([RIGHT])
    assert small_server.script.metadata[0]["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("deadline_s", [0, -1, float("nan"), float("inf")])
def test_deadlines_are_finite_and_positive(client: Client, deadline_s: float) -> None:
    with pytest.raises(gradewire.InvalidRequest, match="deadline_s"):
        client.score([RIGHT], deadline_s=deadline_s)


def test_a_closed_client_says_so(small_server: SmallServer) -> None:
    client = Client(small_server.address)
    client.score([RIGHT])
    client.close()
    client.close()
    with pytest.raises(gradewire.ClientClosed):
        client.score([RIGHT])


def test_models_are_typed(client: Client, small_server: SmallServer) -> None:
    small_server.script.limits = models_pb2.Limits(max_items_per_request=7)
    listed = client.models()
    assert listed.limits.max_items_per_request == 7
    assert listed.server_version == "small"


async def test_async_client_gives_the_same(small_server: SmallServer) -> None:
    async with AsyncClient(small_server.address) as client:
        report = await client.score(rows_score(300))
        assert [item.scores["smile"].score for item in report] == [float(index % 2 == 0) for index in range(300)]
        with pytest.raises(gradewire.InvalidRequest):
            await client.score([RIGHT], "no_such_metric")


def test_an_async_client_outlives_an_event_loop(small_server: SmallServer) -> None:
    client = AsyncClient(small_server.address)
    for _ in range(2):
        assert asyncio.run(client.score([RIGHT]))[0].scores["smile"].score == 1.0
    asyncio.run(client.close())


async def test_sync_client_works_under_a_running_loop(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        assert client.score([RIGHT])[0].scores["smile"].score == 1.0


def test_one_client_serves_several_threads(client: Client) -> None:
    results: list[float | None] = []
    threads = [
        threading.Thread(target=lambda: results.append(client.score([RIGHT])[0].scores["smile"].score))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == [1.0] * 16


def test_a_callback_that_waits_for_its_own_client_is_told(client: Client) -> None:
    with pytest.raises(RuntimeError, match="must not wait for the client that called it"):
        client.score([RIGHT], progress=lambda *_: client.score([RIGHT]))
