"""score_stream over a real socket."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.small_server import Fault, SmallServer
from tests.support.examples import example_count

import gradewire
from gradewire import AsyncClient, Client, Status
from gradewire._calls.score import READ_AHEAD_ITEMS
from gradewire.testing import StubTransport, echo_scores
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import scoring_pb2


@pytest.fixture
def client(small_server: SmallServer) -> Iterator[Client]:
    with Client(small_server.address, deadline_s=20) as client:
        yield client


def row(index: int) -> dict[str, Any]:
    return {"id": str(index), "references": ["a"], "prediction": "ab"[index % 2]}


def check(results: list[gradewire.ItemScores], count: int) -> None:
    assert sorted(item.index for item in results) == list(range(count))
    for item in results:
        assert item.id == str(item.index)
        assert item.scores["smile"].score == float(item.index % 2 == 0)


def test_every_item_comes_back_once(client: Client) -> None:
    check(list(client.score_stream(row(index) for index in range(1000))), 1000)


def test_no_items(client: Client) -> None:
    assert list(client.score_stream([])) == []


def test_bad_items_are_named_and_neighbours_scored(client: Client) -> None:
    items = [
        row(0),
        {"prediction": "a"},
        row(2),
        {**row(3), "prediction": "\ud800"},
        {**row(4), "prediction": "x" * 5_000_000},
    ]
    results = sorted(client.score_stream(items), key=lambda item: item.index)
    assert [item.scores["smile"].status.value for item in results] == [
        "OK",
        "INVALID_INPUT",
        "OK",
        "INVALID_INPUT",
        "INVALID_INPUT",
    ]
    assert "items[3].prediction" in results[3].scores["smile"].message


def test_an_endless_source_is_read_only_a_little_ahead(client: Client) -> None:
    taken = itertools.count()
    results = client.score_stream(row(next(taken)) for _ in itertools.repeat(None))
    for _ in range(500):
        next(results)
    results.close()  # type: ignore[attr-defined]
    # What was read: results taken, the window, and the reader's own few.
    assert next(taken) <= 500 + READ_AHEAD_ITEMS + 2 * 64 + 2


def test_results_come_while_the_source_waits(client: Client) -> None:
    go_on = threading.Event()

    def source() -> Iterator[dict[str, Any]]:
        yield row(0)
        assert go_on.wait(10)
        yield row(1)

    results = client.score_stream(source())
    assert next(results).index == 0
    go_on.set()
    assert next(results).index == 1
    assert list(results) == []


def test_the_sources_own_exception_reaches_the_caller(client: Client) -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield row(0)
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        list(client.score_stream(source()))


def test_wrong_arguments_are_refused_at_once(client: Client) -> None:
    with pytest.raises(gradewire.InvalidRequest):
        client.score_stream([], "no_such_metric")
    with pytest.raises(gradewire.InvalidRequest):
        client.score_stream([], deadline_s=-1)


@settings(max_examples=example_count(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(breaks=st.lists(st.integers(0, 6), max_size=4), count=st.integers(0, 300))
def test_a_stream_that_breaks_goes_on_with_what_is_left(
    small_server: SmallServer, breaks: list[int], count: int
) -> None:
    small_server.script.faults = [
        Fault(grpc.StatusCode.UNAVAILABLE, pushback_ms=1, after_messages=after) for after in breaks
    ]
    # gRPC may lose results that came just before a break.
    with Client(small_server.address, deadline_s=20) as client:
        check(list(client.score_stream(map(row, range(count)))), count)
    small_server.script.faults = []


def test_breaks_without_any_result_are_resumed_until_the_deadline(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "gone", pushback_ms=10, after_messages=1)] * 500
    with pytest.raises(
        (gradewire.ServerUnreachable, gradewire.DeadlineExceeded), match=r"Tried \d+ times in"
    ) as raised:
        list(client.score_stream([row(0)], deadline_s=0.5))
    assert "gone" in str(raised.value)
    assert small_server.script.streams > 5
    small_server.script.faults = []


def test_a_server_may_be_away_for_long_while_nothing_is_in_work() -> None:
    class Away(StubTransport):
        """Breaks the first stream after its first result, and turns the next ones away."""

        streams = 0

        async def stream(
            self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
        ) -> AsyncGenerator[R]:
            self.streams += 1
            if 1 < self.streams < 8:
                raise gradewire.ServerUnreachable("away", retry_after_s=0.1)
            async for reply in super().stream(method, sent, timeout_s=timeout_s):
                yield reply
                if self.streams == 1 and isinstance(reply, scoring_pb2.ScoreStreamResponse) and reply.items:
                    raise gradewire.ServerUnreachable("away")

    def source() -> Iterator[dict[str, Any]]:
        yield row(0)
        while transport.streams < 8:  # at least 0.6 s
            time.sleep(0.01)
        yield row(1)

    transport = Away(lambda request: echo_scores(request, score=lambda item: float(item.prediction == "a")))
    with Client(transport=transport) as client:
        check(list(client.score_stream(source(), deadline_s=0.3)), 2)


def test_a_refusal_is_not_repeated(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.FAILED_PRECONDITION, "build the model", after_messages=0)]
    with pytest.raises(gradewire.NotReady, match="build the model"):
        list(client.score_stream([row(0)]))
    assert small_server.script.streams == 1


def test_a_server_that_owes_a_result_for_too_long(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    with pytest.raises(gradewire.DeadlineExceeded, match="1 items were in progress"):
        list(client.score_stream([row(0)], deadline_s=0.2))


async def test_async_stream_takes_both_kinds_of_source(small_server: SmallServer) -> None:
    async def source() -> AsyncIterator[dict[str, Any]]:
        for index in range(100):
            yield row(index)

    async with AsyncClient(small_server.address) as client:
        check([item async for item in client.score_stream(source())], 100)
        check([item async for item in client.score_stream(map(row, range(100)))], 100)


async def test_a_left_stream_leaves_no_task_behind() -> None:
    transport = StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))
    async with AsyncClient(transport=transport) as client:
        stream = client.score_stream(map(row, itertools.count()))
        async for item in stream:
            assert item.scores["smile"].status is Status.OK
            break
        await stream.aclose()
        assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(("deadline_s", "sent_s"), [(30.0, 30.0), (300.0, 300.0)])
def test_the_deadline_is_also_the_limit_of_the_servers_work(deadline_s: float, sent_s: float) -> None:
    limits_s: list[float] = []

    class Noting(StubTransport):
        """Notes the deadline of each message with items."""

        async def stream(
            self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
        ) -> AsyncGenerator[R]:
            async def noted() -> AsyncGenerator[Any]:
                assert isinstance(sent, AsyncIterator)
                async for message in sent:
                    if isinstance(message, scoring_pb2.ScoreStreamRequest) and message.HasField("items"):
                        limits_s.append(message.items.deadline_s)
                    yield message

            async for reply in super().stream(method, noted(), timeout_s=timeout_s):
                yield reply

    transport = Noting(lambda request: echo_scores(request, score=lambda _: 1.0))
    with Client(transport=transport, deadline_s=deadline_s) as client:
        assert len(list(client.score_stream(map(row, range(20))))) == 20
    assert set(limits_s) == {sent_s}
