"""Items and results cross between wire and domain without loss."""

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

from gradewire_proto.parts import SmileParts
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.domain import items as domain
from gradewire_server.domain.items import CacheHits, Failure, Item, MetricResult, ScoredResult, Status, Timing
from gradewire_server.requests import prepare as immutable
from gradewire_server.requests import prepare as preparation
from gradewire_server.requests import score as scoring
from gradewire_server.requests import stream as streaming
from gradewire_server.requests.convert import (
    BYTES_PER_TURN,
    ITEMS_PER_TURN,
    fill_result,
    read_entry,
    read_in_turns,
    read_reference_set,
    read_row,
    reply_id,
)
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.handlers import Handlers
from gradewire_server.settings.limits import Limits

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@pytest.mark.parametrize(
    ("ours", "wires"), [(domain.Status, types_pb2.Status), (domain.ResultWarning, types_pb2.Warning)]
)
def test_numbers_equal_the_wires(ours: type[Status], wires: object) -> None:
    items = dict(wires.items())  # type: ignore[attr-defined]
    prefix = ours.__name__.upper().removeprefix("RESULT")
    assert {f"{prefix}_{value.name}": value.value for value in ours} | {f"{prefix}_UNSPECIFIED": 0} == items


def test_every_text_is_normalised_once_and_for_all() -> None:
    loose = "cafe\u0301"
    message = types_pb2.Item(
        id=loose,
        question=loose,
        references=[loose],
        prediction=loose,
        synthetic_answers=[loose],
        caption=loose,
        group=loose,
        captions=["\t", loose],
    )
    tight = "caf\u00e9"
    expected = Item(tight, tight, (tight,), tight, (tight,), (tight, tight), tight)
    assert read_row(message, Limits(), check_bytes=True) == expected


@given(prediction=TEXT, references=st.lists(TEXT, max_size=3), limit=st.integers(1, 60))
def test_an_item_is_refused_exactly_when_its_bytes_exceed_the_limit(
    prediction: str, references: list[str], limit: int
) -> None:
    message = types_pb2.Item(prediction=prediction, references=references)
    size = sum(len(text.encode()) for text in (prediction, *references))
    item = read_row(message, Limits(max_item_bytes=limit), check_bytes=True)
    assert isinstance(item, Failure) == (size > limit)
    if isinstance(item, Failure):
        assert item.status is Status.INVALID_INPUT
        assert str(size) in item.message


def test_captions_stand_behind_the_caption_in_their_order() -> None:
    item = read_row(types_pb2.Item(caption="b", captions=["c", " ", "a"]), Limits(), check_bytes=True)
    assert isinstance(item, Item)
    assert item.captions == ("b", "c", "a")


def test_pictures_beyond_all_reason_are_refused_before_they_are_taken_apart() -> None:
    few, many = (types_pb2.Item(images=[types_pb2.Image(data=b"a")] * count) for count in (1024, 1025))
    assert isinstance(read_row(few, Limits(), check_bytes=False), Item)
    refused = read_row(many, Limits(), check_bytes=False)
    assert isinstance(refused, Failure)
    assert (refused.status, refused.message.split(":")[0]) == (Status.INVALID_INPUT, "images")


def test_too_many_references_are_refused() -> None:
    limits = Limits(max_references_per_item=2)
    for refused in (
        read_row(types_pb2.Item(references=["a"] * 3), limits, check_bytes=False),
        read_entry(references_pb2.ReferenceEntry(references=["a"] * 3), limits),
    ):
        assert refused == Failure(Status.INVALID_INPUT, "references: has 3 references, but at most 2 are allowed")


@pytest.mark.parametrize(
    "field", ["id", "question", "prediction", "caption", "group", "references", "synthetic_answers", "captions"]
)
def test_the_field_with_too_many_marks_is_named(field: str) -> None:
    evil = "a" + "\u0301" * 31
    several = field in {"references", "synthetic_answers", "captions"}
    item = read_row(types_pb2.Item(**{field: ["fine", evil] if several else evil}), Limits(), check_bytes=True)  # type: ignore[arg-type]
    assert item == Failure(
        Status.INVALID_INPUT, f"{field}{'[1]' if several else ''}: more than 30 combining marks in a row"
    )


def test_a_result_carries_all_it_has() -> None:
    parts = SmileParts(0.1, 0.2, 0.3, 0.4, "big cat", 4, correct=True, harmonic_mean=0.5)
    result = MetricResult(0.75, warnings=(domain.ResultWarning.TRUNCATED,), matched_reference=0, parts=parts)
    scored = ScoredResult(result, CacheHits(1, 2, 3, 4, 5), Timing(0.1, 0.2, 0.3, 0.4))
    message = types_pb2.MetricResult()
    fill_result(message, 2, scored, diagnostics=True)
    assert message == types_pb2.MetricResult(
        metric_index=2,
        score=0.75,
        status=types_pb2.STATUS_OK,
        warnings=[types_pb2.WARNING_TRUNCATED],
        matched_reference=0,
        smile=types_pb2.SmileParts(
            sentence=0.1,
            keyword=0.2,
            exact=0.3,
            lexical=0.4,
            best_window="big cat",
            bin=4,
            correct=True,
            harmonic_mean=0.5,
        ),
        cache_hits=types_pb2.CacheHits(memory=1, disk=2, redis=3, joined=4, computed=5),
        timing=types_pb2.Timing(queue_s=0.1, cache_s=0.2, tokenize_s=0.3, inference_s=0.4),
    )


def test_a_failure_has_no_score_and_a_zero_is_a_score() -> None:
    failed, zero = types_pb2.MetricResult(), types_pb2.MetricResult()
    failure = Failure(Status.TIMEOUT, "late")
    fill_result(failed, 0, ScoredResult(MetricResult.failed(failure)), diagnostics=False)
    fill_result(zero, 0, ScoredResult(MetricResult(0.0)), diagnostics=False)
    assert not failed.HasField("score")
    assert (failed.status, failed.message) == (types_pb2.STATUS_TIMEOUT, "late")
    assert not failed.HasField("cache_hits")
    assert zero.HasField("score")
    assert zero.score == 0
    assert not zero.HasField("matched_reference")


def test_the_name_of_a_set_is_normalised_and_bounded() -> None:
    assert read_reference_set("e\u0301") == "\u00e9"
    for bad in ("x" * 257, "\u0301" * 31):
        with pytest.raises(InvalidRequestError, match="reference_set"):
            read_reference_set(bad)


def test_an_id_has_a_bound_and_a_longer_one_comes_back_cut() -> None:
    fits, long = types_pb2.Item(id="é" * 512), types_pb2.Item(id="é" * 512 + "x", references=["a"])
    assert isinstance(read_row(fits, Limits(), check_bytes=False), Item)
    assert reply_id(fits) == fits.id
    assert read_row(long, Limits(), check_bytes=False) == Failure(
        Status.INVALID_INPUT, "id: has 1025 bytes, but at most 1024 are allowed"
    )
    assert reply_id(long) == "é" * 79 + "…"


def test_a_text_among_the_parts_has_a_bound() -> None:
    message = types_pb2.MetricResult()
    parts = SmileParts(0, 0, 0, 0, best_window="w" * 100_000, bin=0, correct=False)
    fill_result(message, 0, ScoredResult(MetricResult(0.5, parts=parts)), diagnostics=False)
    assert message.smile.best_window == "w" * 8191 + "…"


def test_a_set_name_is_measured_as_it_is_used() -> None:
    grows = "\U0001d160" * 30  # 120 bytes, and three times as many in NFC
    with pytest.raises(InvalidRequestError, match="reference_set: has 360 bytes, but at most 256 are allowed"):
        read_reference_set(grows)


class Element:
    """Of some size."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        return self._size_bytes


@given(st.lists(st.sampled_from([0, 10, BYTES_PER_TURN // 2, BYTES_PER_TURN]), max_size=300))
def test_no_turn_reads_more_than_its_items_or_bytes_and_none_is_empty(sizes: list[int]) -> None:
    turns: list[list[int]] = [[]]

    async def others() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append([])

    async def run() -> None:
        beside = asyncio.create_task(others())
        await asyncio.sleep(0)
        reading = read_in_turns([Element(size) for size in sizes], Element.ByteSize)  # type: ignore[type-var]
        async for _, size in reading:
            turns[-1].append(size)
        beside.cancel()

    asyncio.run(run())
    assert all(turns) or not sizes
    assert [size for turn in turns for size in turn] == sizes
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
    [(score, scoring, "read_row"), (score_stream, streaming, "read_row"), (prepare, preparation, "read_entry")],
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
    reading = read_in_turns([Element(size_bytes)], lambda _: threading.current_thread())  # type: ignore[type-var]
    ((_, thread),) = [each async for each in reading]
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
