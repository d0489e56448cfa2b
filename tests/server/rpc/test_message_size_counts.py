"""What a message holds is counted as protobuf would count it, and no further than the bounds."""

import asyncio

import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2, types_pb2
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.rpc import message_size
from gradewire_server.rpc.message_size import Counts, MalformedError, count_fields, parse
from gradewire_server.settings.limits import Limits

_FEW = Limits(max_items_per_request=4, max_metrics_per_request=2)
_ITEMS = st.lists(st.builds(types_pb2.Item, prediction=st.text(max_size=300), references=st.lists(st.text(max_size=4))))
_METRICS = st.lists(
    st.builds(types_pb2.MetricSpec, smile=st.builds(types_pb2.SmileParameters, model=st.text(max_size=200))), max_size=5
)
_REQUESTS = st.builds(scoring_pb2.ScoreRequest, items=_ITEMS, metrics=_METRICS, reference_set=st.text(max_size=200))


@settings(max_examples=example_count(150))
@given(request=_REQUESTS)
def test_items_and_metrics_are_counted(request: scoring_pb2.ScoreRequest) -> None:
    data = request.SerializeToString()
    counts = count_fields(data, request.DESCRIPTOR, Limits())
    assert counts == Counts(len(request.items), len(request.metrics))


@settings(max_examples=example_count(150))
@given(data=st.binary(max_size=60))
def test_bytes_that_are_malformed_are_refused_only_where_protobuf_refuses_them(data: bytes) -> None:
    try:
        parsed = scoring_pb2.ScoreRequest.FromString(data)
    except DecodeError:
        return
    counted = count_or_none(data)
    # A group is no part of our messages and is not read; whatever else protobuf reads, is counted alike.
    assert counted is None or (counted.items, counted.metrics) == (len(parsed.items), len(parsed.metrics))


def count_or_none(data: bytes) -> Counts | None:
    try:
        return count_fields(data, scoring_pb2.ScoreRequest.DESCRIPTOR, Limits())
    except MalformedError:
        return None


@settings(max_examples=example_count(100))
@given(request=_REQUESTS, cut=st.integers(1, 50))
def test_a_message_that_is_torn_is_malformed_or_shorter(request: scoring_pb2.ScoreRequest, cut: int) -> None:
    torn = request.SerializeToString()[:-cut]
    counted = count_or_none(torn)
    assert counted is None or counted.items <= len(request.items)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (scoring_pb2.ScoreRequest(items=[types_pb2.Item()] * 5), "items"),
        (scoring_pb2.ScoreRequest(metrics=[types_pb2.MetricSpec()] * 3), "metrics"),
        (references_pb2.PrepareRequest(entries=[references_pb2.ReferenceEntry()] * 5), "entries"),
        (
            scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[types_pb2.Item()] * 5)),
            "requests[7].items",
        ),
        (
            scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[types_pb2.MetricSpec()] * 3)),
            "config.metrics",
        ),
    ],
)
def test_too_many_are_refused_by_name(message: Message, path: str) -> None:
    prefix = path[: path.index(".") + 1] if path.startswith("requests") else ""
    with pytest.raises(InvalidRequestError) as caught:
        count_fields(message.SerializeToString(), message.DESCRIPTOR, _FEW, prefix)
    assert caught.value.field == path


def test_parts_of_one_list_count_together() -> None:
    two = scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[types_pb2.Item()] * 2))
    data = two.SerializeToString()
    assert count_fields(data * 2, two.DESCRIPTOR, _FEW).items == 4
    with pytest.raises(InvalidRequestError):
        count_fields(data * 3, two.DESCRIPTOR, _FEW)


def test_fields_that_nobody_knows_are_bounded() -> None:
    descriptor = models_pb2.ListModelsRequest.DESCRIPTOR
    unknown = b"\x78\x01"
    assert count_fields(unknown * 1000, descriptor, Limits()) == Counts()
    with pytest.raises(InvalidRequestError, match="fields in addition to its items"):
        count_fields(unknown * 2000, descriptor, Limits())


def test_millions_of_empty_items_are_refused_without_being_read() -> None:
    data = b"\x0a\x00" * 16_000_000
    with pytest.raises(InvalidRequestError, match="more than 4096"):
        count_fields(data, scoring_pb2.ScoreRequest.DESCRIPTOR, Limits())


@settings(max_examples=example_count(100))
@given(request=_REQUESTS, at_once=st.integers(1, 400))
def test_parsing_in_pieces_gives_the_same_message(request: scoring_pb2.ScoreRequest, at_once: int) -> None:
    streamed = scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=request.items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_size, "_BYTES_AT_ONCE", at_once)
        for message in (request, streamed):
            assert asyncio.run(parse(type(message), message.SerializeToString())) == message


async def test_parsing_in_pieces_finds_what_is_not_utf_8() -> None:
    request = scoring_pb2.ScoreRequest(items=[types_pb2.Item(prediction="x" * 300_000)] * 4)
    data = request.SerializeToString()
    with pytest.raises(DecodeError):
        await parse(scoring_pb2.ScoreRequest, data[:-1] + b"\xff")
