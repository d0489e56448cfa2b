"""A large reply in pieces has the bytes that protobuf gives it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.rpc import serializing
from gradewire_server.rpc.serializing import serialize_score


@settings(max_examples=example_count(60))
@given(ids=st.lists(st.text(max_size=300), max_size=30), at_once=st.integers(0, 20), server_s=st.floats(0, 9))
async def test_pieces_are_the_whole(ids: list[str], at_once: int, server_s: float) -> None:
    reply = scoring_pb2.ScoreResponse(
        items=[scoring_pb2.ItemResult(index=index, id=name, complete=True) for index, name in enumerate(ids)],
        provenance=[types_pb2.Provenance(name="smile")],
        server_s=server_s,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serializing, "_RESULTS_AT_ONCE", at_once)
        assert await serialize_score(reply, 1 << 30) == reply.SerializeToString()


async def test_what_is_too_large_is_not_built_to_its_end() -> None:
    reply = scoring_pb2.ScoreResponse(items=[scoring_pb2.ItemResult(id="x" * 1000)] * 5000)
    assert 100_000 < len(await serialize_score(reply, 100_000)) < 110_000
