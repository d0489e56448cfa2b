"""submit() over a real socket."""

import asyncio
import concurrent.futures
import gc
import itertools
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from tests.client.small_server import Fault, SmallServer

import gradewire
from gradewire import AsyncClient, Client, SubmitLimits
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2

RIGHT = {"references": ["a"], "prediction": "a"}


@pytest.fixture
def client(small_server: SmallServer) -> Iterator[Client]:
    with Client(small_server.address, deadline_s=20, submit_limits=SubmitLimits(max_pending_items=10)) as client:
        yield client


def test_future_and_callback_get_the_report(client: Client) -> None:
    called: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future = client.submit([RIGHT], "sbert", callback=called.set_result)
    assert future.result(10)[0].scores["sbert"].score == 1.0
    assert called.result(10) is future


def test_it_returns_while_the_server_does_not_answer(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    futures = [client.submit([RIGHT]) for _ in range(10)]
    assert not any(future.done() for future in futures)
    assert client.flush(0.05) is False
    small_server.script.hold.set()
    assert client.flush(10) is True
    assert all(future.done() for future in futures)


def test_later_changes_of_the_caller_do_not_reach_it(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    row: dict[str, Any] = {"references": ["a"], "prediction": "a"}
    rows = [row]
    future = client.submit(rows)
    row["prediction"] = "b"
    row["references"].append("b")
    rows.clear()
    small_server.script.hold.set()
    assert future.result(10)[0].scores["smile"].score == 1.0
    assert list(small_server.script.requests[0].items[0].references) == ["a"]  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [dict, gradewire.Item])
def test_pictures_are_sent_where_a_metric_shows_them(client: Client, small_server: SmallServer, form: Any) -> None:
    pictures = [b"one"]
    small_server.script.hold.clear()
    items = [form(**RIGHT, images=pictures)]
    futures = [client.submit(items, metrics) for metrics in ("judge_verdict?image=true", "smile")]
    pictures.append(b"two")
    small_server.script.hold.set()
    for future in futures:
        future.exception(10)
    requests: list[Any] = small_server.script.requests
    sent = [(each.metrics[0].WhichOneof("metric"), [image.data for image in each.items[0].images]) for each in requests]
    assert sorted(sent) == [("judge_verdict", [b"one"]), ("smile", [])]


def test_a_full_queue_is_said_at_once_and_empties_again(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    taken = [client.submit([RIGHT] * 5) for _ in range(2)]
    refused = client.submit([RIGHT])
    assert isinstance(refused.exception(0), gradewire.Overloaded)
    assert "max_pending_items=10" in str(refused.exception(0))
    small_server.script.hold.set()
    assert [len(future.result(10)) for future in taken] == [5, 5]
    assert client.flush(10)
    assert len(client.submit([RIGHT] * 10).result(10)) == 10


def test_nothing_is_raised_into_the_caller(client: Client, small_server: SmallServer) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield RIGHT
        raise OSError("disk gone")

    small_server.script.faults = [Fault(grpc.StatusCode.INTERNAL, "defect")]
    assert isinstance(client.submit([RIGHT]).exception(10), gradewire.ServerFault)
    assert isinstance(client.submit(broken()).exception(10), OSError)
    assert isinstance(client.submit([RIGHT], "no_such_metric").exception(10), gradewire.InvalidRequest)
    assert isinstance(client.submit(3).exception(10), gradewire.InvalidRequest)  # type: ignore[arg-type]
    client.close()
    called = threading.Event()
    assert isinstance(client.submit([RIGHT], callback=lambda _: called.set()).exception(10), gradewire.ClientClosed)
    assert called.wait(10)


def test_a_failing_callback_is_logged_and_harms_nothing(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def broken(future: concurrent.futures.Future[Any]) -> None:
        raise ValueError("the caller's own", future)

    with caplog.at_level(logging.ERROR, "gradewire"):
        future = client.submit([RIGHT], callback=broken)
        assert client.flush(10)
    assert future.result(0)[0].scores["smile"].score == 1.0
    assert "the caller's own" in caplog.text
    assert client.submit([RIGHT]).result(10)


def test_a_slow_callback_holds_up_no_other_call(client: Client) -> None:
    go_on = threading.Event()
    client.submit([RIGHT], callback=lambda _: go_on.wait(10))
    assert client.submit([RIGHT]).result(10)
    assert client.score([RIGHT])[0].scores["smile"].score == 1.0
    go_on.set()
    assert client.flush(10)


def test_a_callback_may_use_the_client(client: Client) -> None:
    inner: concurrent.futures.Future[float | None] = concurrent.futures.Future()
    client.submit([RIGHT], callback=lambda _: inner.set_result(client.score([RIGHT])[0].scores["smile"].score))
    assert inner.result(10) == 1.0


def test_closing_finishes_what_is_pending(small_server: SmallServer) -> None:
    seen: list[int] = []

    def score(item: types_pb2.Item) -> float:
        seen.append(int(item.id))
        return 1.0

    small_server.script.score = score
    with Client(small_server.address) as client:
        futures = [client.submit([RIGHT | {"id": str(index)}]) for index in range(50)]
    assert [future.result(0)[0].id for future in futures] == [str(index) for index in range(50)]
    assert sorted(seen) == list(range(50))


def test_a_cancelled_submission_is_not_sent(client: Client, small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    futures = [client.submit([RIGHT]) for _ in range(8)]
    assert futures[-1].cancel()
    small_server.script.hold.set()
    assert client.flush(10)
    assert len(small_server.script.requests) == 7


async def test_async_submit(small_server: SmallServer) -> None:
    async with AsyncClient(small_server.address) as client:
        futures = [client.submit([RIGHT]) for _ in range(5)]
        assert await client.flush(10)
        reports = await asyncio.gather(*map(asyncio.wrap_future, futures))
        assert [report[0].scores["smile"].score for report in reports] == [1.0] * 5


async def test_none_is_forgotten_however_the_queue_runs_empty() -> None:
    """Submissions come exactly when the workers run out of work, in every phase of the event loop."""
    transport = StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))
    async with AsyncClient(transport=transport) as client:
        for turns in range(40):
            futures = [client.submit([RIGHT]) for _ in range(4)]
            for _ in range(turns):
                await asyncio.sleep(0)
            futures += [client.submit([RIGHT]) for _ in range(4)]
            assert await client.flush(10)
            assert all(future.done() for future in futures)


def test_without_threads_the_future_says_so_and_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    client = stub_client()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        for callback in (None, print):
            assert isinstance(client.submit([RIGHT], callback=callback).exception(0), RuntimeError)
    with client:
        assert client.submit([RIGHT]).result(10)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", start)
            assert len(client.submit([RIGHT], callback=print).result(10)) == 1
            assert client.submit(3, callback=print).exception(10)  # type: ignore[arg-type]
            assert client.flush(10)
        called = threading.Event()
        assert client.submit([RIGHT], callback=lambda _: called.set()).result(10)
        assert called.wait(10)


def test_a_core_that_cannot_be_made_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no calls")

    monkeypatch.setattr("gradewire.async_api.ClientCalls", broken)
    client = stub_client()
    before = threading.active_count()
    assert [type(client.submit([RIGHT]).exception(0)) for _ in range(10)] == [OSError] * 10
    assert threading.active_count() == before


def test_a_refusal_without_a_callback_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    client = stub_client()
    client.close()
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread for nothing"))
    assert isinstance(client.submit([RIGHT]).exception(0), gradewire.ClientClosed)


def test_the_queue_is_bounded_in_bytes_too(small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    row = {"references": ["a"], "prediction": "\u00e9" * 20}
    with Client(small_server.address, submit_limits=SubmitLimits(max_pending_bytes=100)) as client:
        taken = [client.submit([row]) for _ in range(2)]
        refused = client.submit([row])
        assert isinstance(refused.exception(0), gradewire.Overloaded)
        assert str(refused.exception(0)).startswith("82 submitted bytes are pending, and at least 41 more")
        assert "max_pending_bytes=100" in str(refused.exception(0))
        small_server.script.hold.set()
        assert [len(future.result(10)) for future in taken] == [1, 1]
        assert client.flush(10)
        assert client.submit([row, row]).result(10)


@pytest.mark.parametrize("limit", [{"max_pending_items": 100}, {"max_pending_bytes": 200}])
def test_an_endless_source_is_refused_while_it_is_read(limit: dict[str, int]) -> None:
    with stub_client(submit_limits=SubmitLimits(**limit)) as client:
        assert isinstance(client.submit(itertools.repeat(RIGHT)).exception(0), gradewire.Overloaded)
        assert client.submit([RIGHT] * 100).result(10)


def test_the_snapshot_holds_only_what_is_looked_at() -> None:
    class Image:
        pass

    image = Image()
    seen = weakref.ref(image)
    held = threading.Event()

    async def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        await asyncio.to_thread(held.wait, 10)
        return echo_scores(request, score=lambda _: 1.0)

    with Client(transport=StubTransport(answer)) as client:
        future = client.submit([RIGHT | {"image": image}])
        del image
        gc.collect()
        assert seen() is None
        held.set()
        assert future.result(10)[0].scores["smile"].score == 1.0


def stub_client(**settings: Any) -> Client:
    return Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0)), **settings)
