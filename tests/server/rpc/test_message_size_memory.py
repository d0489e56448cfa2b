"""What a message takes is told from its bytes: never less than a bound for what it holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.rpc.message_size import Counts, memory_bytes

_SCORE = scoring_pb2.ScoreRequest.DESCRIPTOR
_TEXTS = st.lists(st.text(max_size=8), max_size=200)


@settings(max_examples=example_count(100))
@given(references=_TEXTS, answers=_TEXTS, padding=st.sampled_from([0, 5000]))
async def test_every_string_of_a_list_counts(references: list[str], answers: list[str], padding: int) -> None:
    item = types_pb2.Item(references=references, synthetic_answers=answers, prediction="x" * padding)
    entry = references_pb2.ReferenceEntry(references=references, synthetic_answers=answers, question="x" * padding)
    for message in (scoring_pb2.ScoreRequest(items=[item]), references_pb2.PrepareRequest(entries=[entry])):
        data = message.SerializeToString()
        assert await memory_bytes(data, Counts(items=1), message.DESCRIPTOR) >= 6 * len(data) + 120 * (
            len(references) + len(answers)
        )


def _lists_of_items() -> list[str]:
    return [field.name for field in types_pb2.Item.DESCRIPTOR.fields if field.is_repeated]


@pytest.mark.parametrize("name", _lists_of_items())
async def test_every_list_of_an_item_counts(name: str) -> None:
    entries = [types_pb2.Image(data=b"ab")] if name == "images" else ["ab"]
    item = types_pb2.Item(**{name: entries * 5000})
    data = scoring_pb2.ScoreRequest(items=[item]).SerializeToString()
    assert await memory_bytes(data, Counts(items=1), _SCORE) >= 6 * len(data) + 120 * 5000


@pytest.mark.parametrize("name", _lists_of_items())
async def test_no_list_of_an_item_may_have_millions_of_entries(name: str) -> None:
    entries = [types_pb2.Image(data=b"ab")] if name == "images" else ["ab"]
    item = types_pb2.Item(**{name: entries * 600_000})
    with pytest.raises(InvalidRequestError, match="strings and images"):
        await memory_bytes(scoring_pb2.ScoreRequest(items=[item]).SerializeToString(), Counts(items=1), _SCORE)


async def test_a_plain_request_counts_little() -> None:
    item = types_pb2.Item(question="what?", references=["a cat"] * 10, prediction="It was a big cat, I think.")
    data = scoring_pb2.ScoreRequest(items=[item] * 64).SerializeToString()
    assert await memory_bytes(data, Counts(items=64, metrics=1), _SCORE) < 64 * 5000


async def test_results_count() -> None:
    assert await memory_bytes(b"", Counts(items=4096, metrics=32), _SCORE) > 100 << 20


async def test_millions_of_empty_references_are_refused() -> None:
    item = types_pb2.Item(references=[""] * 600_000)
    with pytest.raises(InvalidRequestError) as caught:
        await memory_bytes(scoring_pb2.ScoreRequest(items=[item]).SerializeToString(), Counts(items=1), _SCORE)
    assert caught.value.field == "items"


@pytest.mark.parametrize("tag", [b"\x9a\x00", b"\x9a\x80\x00"])
async def test_tags_that_are_longer_than_they_need_count_too(tag: bytes) -> None:
    body = (tag + b"\x01x") * 5000
    data = b"\x0a" + bytes((len(body) & 0x7F | 0x80, len(body) >> 7 & 0x7F | 0x80, len(body) >> 14)) + body
    assert len(scoring_pb2.ScoreRequest.FromString(data).items[0].references) == 5000
    assert await memory_bytes(data, Counts(items=1), _SCORE) >= 6 * len(data) + 120 * 5000


async def test_text_that_is_full_of_stars_is_counted_as_what_it_is() -> None:
    item = types_pb2.Item(references=["a"], prediction="*" * 1_000_000)
    data = scoring_pb2.ScoreRequest(items=[item] * 2).SerializeToString()
    assert await memory_bytes(data, Counts(items=2), _SCORE) < 7 * len(data)


@settings(max_examples=example_count(100))
@given(references=_TEXTS, items=st.integers(0, 40), metrics=st.integers(0, 10))
async def test_a_small_message_counts_for_no_less_once_it_is_parsed(
    references: list[str], items: int, metrics: int
) -> None:
    message = scoring_pb2.ScoreRequest(
        items=[types_pb2.Item(references=references)] * items, metrics=[types_pb2.MetricSpec()] * metrics
    )
    data = message.SerializeToString()
    assert Counts(items, metrics).memory_bytes(len(data), len(data) // 2) >= 6 * len(data) + 120 * items * len(
        references
    )
