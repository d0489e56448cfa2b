"""A large request is read in turns: other work of the event loop goes on between them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.servers.handlers import handlers_over
from tests.support.servers.wire import EXACT, item, request

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.requests import prepare as preparation
from gradewire_server.requests.forms import items
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.sets import immutable
from gradewire_server.requests.yield_budget import BYTES_PER_TURN, ITEMS_PER_TURN, YieldBudget, read_beside
from gradewire_server.settings.limits import Limits


class Element:
    """Of some size."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        return self._size_bytes


@given(st.lists(st.sampled_from([0, 10, BYTES_PER_TURN // 2, BYTES_PER_TURN, 5 * BYTES_PER_TURN]), max_size=300))
def test_no_turn_reads_more_than_its_items_or_bytes_and_none_is_empty(sizes: list[int]) -> None:
    budget = YieldBudget()
    turns: list[list[int]] = [[]]
    for size in sizes:
        if budget.is_exceeded_by(Element(size)):
            turns.append([])
        turns[-1].append(size)
    assert all(turns) or not sizes
    for turn in turns:
        assert len(turn) <= ITEMS_PER_TURN
        assert sum(turn) <= BYTES_PER_TURN or len(turn) == 1
    for turn, following in pairwise(turns):
        assert len(turn) == ITEMS_PER_TURN or sum(turn) + following[0] > BYTES_PER_TURN


async def score(handlers: Handlers, text: str) -> None:
    await handlers.score(request(*[item(text)] * 4, metrics=(EXACT,)))


async def score_stream(handlers: Handlers, text: str) -> None:
    async def messages() -> Any:
        yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT]))
        yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item(text)] * 4))

    replies = [reply async for reply in handlers.score_stream(messages())]
    assert sum(len(scored.results) for reply in replies for scored in reply.items) == 4


async def prepare(handlers: Handlers, text: str) -> None:
    entries = [references_pb2.ReferenceEntry(references=[text])] * 4
    asked = references_pb2.PrepareRequest(entries=entries, metrics=[EXACT])
    assert [step async for step in handlers.prepare(asked)][-1].complete


@pytest.mark.parametrize(
    ("call", "module", "reader"),
    [(score, items, "read_item"), (score_stream, items, "read_item"), (prepare, preparation, "read_entry")],
)
async def test_others_get_their_turn_between_large_elements(
    call: Callable[[Handlers, str], Awaitable[None]], module: Any, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    read = getattr(module, reader)

    def spy(*args: Any, **kw: Any) -> Any:
        events.append("read")
        return read(*args, **kw)

    async def neighbour() -> None:
        while True:
            events.append("turn")
            await asyncio.sleep(0)

    monkeypatch.setattr(module, reader, spy)
    task = asyncio.create_task(neighbour())
    await call(handlers_over(), "word " * (BYTES_PER_TURN // 4))
    task.cancel()
    assert events.count("read") == 4
    assert ("read", "read") not in set(pairwise(events))


async def test_a_prediction_of_a_megabyte_is_scored_and_one_beyond_the_default_limit_refused() -> None:
    reply = await handlers_over().score(
        request(item("word " * 200_000), item("word " * (Limits().max_item_bytes // 5 + 1)), metrics=(EXACT,))
    )
    statuses = [part.results[0].status for part in reply.items]
    assert statuses == [types_pb2.STATUS_OK, types_pb2.STATUS_INVALID_INPUT]


@pytest.mark.parametrize(("size_bytes", "on_loop"), [(10, True), (BYTES_PER_TURN, True), (BYTES_PER_TURN + 1, False)])
async def test_a_large_element_is_read_on_a_thread(size_bytes: int, on_loop: bool) -> None:  # noqa: FBT001 - a column
    thread = await read_beside(size_bytes, threading.current_thread)
    assert (thread is threading.current_thread()) is on_loop


async def test_what_goes_through_all_entries_of_a_set_runs_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, threading.Thread] = {}

    def watched(module: Any, name: str) -> None:
        function = getattr(module, name)

        def run(*args: Any) -> Any:
            ran[name] = threading.current_thread()
            return function(*args)

        monkeypatch.setattr(module, name, run)

    for module, name in (
        (preparation, "name_set"),
        (preparation, "check_whole"),
        (immutable, "digest_entries"),
        (immutable, "entries_of"),
    ):
        watched(module, name)
    entries = [references_pb2.ReferenceEntry(references=[f"a cat {number}"]) for number in range(3)]
    asked = references_pb2.PrepareRequest(entries=entries, metrics=[EXACT], immutable=True)
    assert [step async for step in handlers_over().prepare(asked)][-1].complete
    assert set(ran) == {"name_set", "check_whole", "digest_entries", "entries_of"}
    assert threading.current_thread() not in ran.values()
