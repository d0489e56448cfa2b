"""Large messages are parsed in pieces, which give the same message; others have their turns between them."""

import asyncio
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.rpc import message_size
from gradewire_server.rpc.message_size import parse

Request = scoring_pb2.ScoreRequest
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
items = st.builds(
    types_pb2.Item,
    id=texts,
    references=st.lists(texts, max_size=8),
    prediction=texts,
    images=st.lists(st.builds(types_pb2.Image, data=st.binary(max_size=80), media_type=texts), max_size=3),
)
streamed = st.builds(
    scoring_pb2.ScoreStreamRequest,
    items=st.builds(scoring_pb2.ScoreStreamItems, items=st.lists(items, max_size=4)),
)


@settings(max_examples=example_count(60))
@given(
    st.one_of(st.builds(Request, items=st.lists(items, max_size=5), reference_set=texts), streamed), st.integers(1, 90)
)
def test_pieces_of_any_size_give_the_same_message(message: Any, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_size, "_BYTES_AT_ONCE", at_once)
        patch.setattr(message_size, "_FIELDS_AT_ONCE", 2)
        found = asyncio.run(parse(type(message), message.SerializeToString()))
    assert found == message


async def test_an_item_with_large_pictures_is_parsed_picture_by_picture() -> None:
    pictures = [types_pb2.Image(data=bytes(700_000), media_type="image/png") for _ in range(4)]
    message = Request(items=[types_pb2.Item(id="1", references=["a cat"], images=pictures)])
    turns = 0

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(neighbour())
    assert await parse(Request, message.SerializeToString()) == message
    task.cancel()
    assert turns >= 4


async def test_what_is_malformed_within_a_large_item_is_told() -> None:
    good = Request(items=[types_pb2.Item(images=[types_pb2.Image(data=bytes(700_000))])]).SerializeToString()
    begin = good.index(bytes(100)) - 4
    with pytest.raises(DecodeError):
        await parse(Request, good[:begin] + b"\xff\xff\xff\x7f" + good[begin + 4 :])
