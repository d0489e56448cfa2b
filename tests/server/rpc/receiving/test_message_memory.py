"""What a message takes is told from its bytes: never less than a bound for what it holds."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.rpc.receiving.message_memory import memory_bytes
from gradewire_server.rpc.receiving.wire_counts import Counts

_TEXTS = st.lists(st.text(max_size=8), max_size=200)


@settings(max_examples=example_count(100))
@given(references=_TEXTS, answers=_TEXTS, padding=st.sampled_from([0, 5000]))
def test_every_string_of_a_list_counts(references: list[str], answers: list[str], padding: int) -> None:
    item = types_pb2.Item(references=references, synthetic_answers=answers, prediction="x" * padding)
    entry = references_pb2.ReferenceEntry(references=references, synthetic_answers=answers, question="x" * padding)
    for message in (scoring_pb2.ScoreRequest(items=[item]), references_pb2.PrepareRequest(entries=[entry])):
        data = message.SerializeToString()
        assert memory_bytes(data, Counts(items=1)) >= 3 * len(data) + 80 * (len(references) + len(answers))


def test_a_plain_request_counts_little() -> None:
    item = types_pb2.Item(question="what?", references=["a cat"] * 10, prediction="It was a big cat, I think.")
    data = scoring_pb2.ScoreRequest(items=[item] * 64).SerializeToString()
    assert memory_bytes(data, Counts(items=64, metrics=1)) < 64 * 5000


def test_results_count() -> None:
    assert memory_bytes(b"", Counts(items=4096, metrics=32)) > 100 << 20
