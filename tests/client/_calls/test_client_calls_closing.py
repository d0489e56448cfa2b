"""Whoever waits for a client that is closed, or for one of the process that forked this one, is told so."""

import asyncio
import multiprocessing
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pytest

import gradewire
from gradewire import AsyncClient, Client
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2

RIGHT = {"references": ["a"], "prediction": "a"}
# Nobody listens there, so calls try again until their deadline.
NOBODY = "127.0.0.1:1"
DEADLINE_S = 60.0


def endless() -> Iterator[dict[str, Any]]:
    while True:
        yield RIGHT


async def never(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    await asyncio.sleep(600)
    raise AssertionError(request)


def half(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    return echo_scores(request, score=lambda _: 0.5)


CALLS: dict[str, Callable[[Client], object]] = {
    "score": lambda client: client.score([RIGHT]),
    "score_stream": lambda client: list(client.score_stream([RIGHT])),
    "prepare": lambda client: client.prepare([{"references": ["a"]}]),
    "models": lambda client: client.models(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends_with_its_client(name: str) -> None:
    client = Client(NOBODY, deadline_s=DEADLINE_S)
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(CALLS[name], client)
        time.sleep(0.3)
        client.close()
        assert isinstance(call.exception(20), gradewire.ClientClosed)


def test_a_call_over_another_transport_ends_with_its_client() -> None:
    client = Client(transport=StubTransport(never), deadline_s=DEADLINE_S)
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(client.score, [RIGHT])
        time.sleep(0.2)
        client.close()
        assert isinstance(call.exception(20), gradewire.ClientClosed)


def test_an_iterator_that_is_left_over_says_so_and_leaves_nothing_behind() -> None:
    client = Client(transport=StubTransport(half))
    results = client.score_stream(endless())
    next(results)
    client.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gradewire.ClientClosed):
            list(results)
    with pytest.raises(gradewire.ClientClosed):
        client.models()


async def test_tasks_of_an_async_client_end_with_it() -> None:
    async def stream() -> None:
        async for _ in client.score_stream([RIGHT]):
            raise AssertionError("nobody has answered")

    client = AsyncClient(NOBODY, deadline_s=DEADLINE_S)
    calls = [client.score([RIGHT]), client.models(), client.prepare([{"references": ["a"]}]), stream()]
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0.3)
    await client.close()
    ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert [type(error) for error in ended] == [gradewire.ClientClosed] * 4


async def test_who_cancels_a_task_of_a_closed_client_gets_what_was_asked_for() -> None:
    client = AsyncClient(NOBODY, deadline_s=DEADLINE_S)
    task = asyncio.ensure_future(client.score([RIGHT]))
    await asyncio.sleep(0.1)
    await client.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def told_in_a_child(work: Callable[[], object]) -> str:
    """What work raises in a forked child; "nothing" where it raises nothing."""

    def run(ours: Connection) -> None:
        try:
            work()
            ours.send("nothing")
        except Exception as error:  # noqa: BLE001 - told to the parent
            ours.send(type(error).__name__)

    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=run, args=(there,))
    child.start()
    try:
        assert here.poll(20), "the child hangs"
        return str(here.recv())
    finally:
        child.kill()
        child.join()


def test_what_began_before_a_fork_says_so_in_the_child() -> None:
    release = threading.Event()

    async def later(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        await asyncio.to_thread(release.wait, 20)
        return half(request)

    with Client(transport=StubTransport(later)) as client:
        future: Future[gradewire.ScoreReport] = client.submit([RIGHT])
        assert told_in_a_child(future.result) == "ForkedClientError"
        assert told_in_a_child(future.exception) == "ForkedClientError"
        release.set()
        assert future.result(20)[0].scores["smile"].score == 0.5
        assert told_in_a_child(future.result) == "nothing"
        results = client.score_stream(endless())
        next(results)
        assert told_in_a_child(lambda: list(results)) == "ForkedClientError"
        next(results)
