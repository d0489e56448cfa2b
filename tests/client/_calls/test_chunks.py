from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gradewire import Limits
from gradewire._calls.chunks import CHUNK_ITEMS, SAFE_MESSAGE_BYTES, ChunkLimits, chunk_limits, cut
from gradewire_proto.v1 import scoring_pb2, types_pb2


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
