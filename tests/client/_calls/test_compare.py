"""compare and compare_stream: what becomes of pairs, over a stub that says who wins."""

import grpc
import pandas as pd
import pytest
from tests.client.small_server import Fault, SmallServer

import gradewire
from gradewire import AsyncClient, Client, Compare, Pair, Status
from gradewire.testing import StubTransport, echo_comparisons, echo_scores
from gradewire_proto.v1 import judging_pb2, models_pb2, types_pb2

LONG = Pair("which?", "the longer one", "short", id="1", group="g")


def longer(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
    """The longer answer wins, of equally long ones none."""

    def winner(pair: judging_pb2.Pair) -> gradewire.Winner | None:
        if len(pair.answer_a) == len(pair.answer_b):
            return None
        return "a" if len(pair.answer_a) > len(pair.answer_b) else "b"

    return echo_comparisons(request, winner=winner)


@pytest.fixture
def client() -> Client:
    return Client(transport=StubTransport(compare=longer))


def test_winners_come_in_order_with_what_belongs_to_the_pair(client: Client) -> None:
    found = client.compare([LONG, {"question": "q", "response_a": "x", "answer_b": "yy"}, Pair("q", "xx", "yy")])

    assert [each.winner for each in found] == ["a", "b", None]
    assert [each.status for each in found] == [Status.OK, Status.OK, Status.INCONSISTENT]
    assert [each.index for each in found] == [0, 1, 2]
    assert (found[0].id, found[0].group, found[0].decided_by) == ("1", "g", "judge")
    assert (found[0].probability_a, found[2].probability_a, found[2].probability_tie) == (1.0, 0.5, 0.0)
    assert [(order.first, order.winner) for order in found[2].orders] == [("a", "a"), ("b", "b")]


def test_its_line_is_what_was_asked_and_reads_back(client: Client) -> None:
    line = "compare?references=true&mode=reason&decision=majority"
    (found,) = client.compare([LONG], line, judge="small")

    assert found.line == "compare/1?decision=majority&mode=reason&model=small&references=true"
    assert found.provenance is not None
    assert found.provenance.metric == Compare(
        references=True, mode="reason", decision="majority", model="small", version=1
    )
    assert client.compare([LONG], found.line)[0].line == found.line


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"caption": "A dog."}, ["A dog."]),
        ({"caption": "A dog.", "captions": ["A cat."]}, ["A dog.", "A cat."]),
        ({"caption": "A dog.", "captions": "A cat."}, ["A dog.", "A cat."]),
        ({"caption": float("nan"), "captions": ["A cat."]}, ["A cat."]),
        ({"captions": ["A cat."]}, ["A cat."]),
        ({}, []),
    ],
)
def test_a_single_caption_of_a_row_is_shown_too(row: dict[str, object], shown: list[str]) -> None:
    sent: list[judging_pb2.Pair] = []

    def answer(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        sent.extend(request.pairs)
        return longer(request)

    Client(transport=StubTransport(compare=answer)).compare(
        [{"question": "q", "answer_a": "x", "answer_b": "yy"} | row]
    )
    assert list(sent[0].captions) == shown


def test_a_caption_that_is_no_text_is_told(client: Client) -> None:
    row = {"question": "q", "answer_a": "x", "answer_b": "yy", "caption": b"dog"}
    (found,) = client.compare([row])
    assert (found.status, found.message) == (Status.INVALID_INPUT, "pairs[0].caption is bytes: give a string")


def test_a_pair_that_cannot_be_sent_fails_alone(client: Client) -> None:
    found = client.compare(
        [LONG, {"question": "q", "answer_a": "x"}, 3, Pair("q", "a", b"b"), Pair("q", "\ud800", "b")]
    )  # type: ignore[list-item, arg-type]

    assert [each.status for each in found] == [Status.OK] + [Status.INVALID_INPUT] * 4
    assert "pairs[1].answer_b is missing" in found[1].message
    assert "pairs[2] is a int: give a mapping or a gradewire.Pair" in found[2].message
    assert "pairs[3].answer_b is bytes" in found[3].message
    assert "pairs[4].answer_a has a lone surrogate" in found[4].message


def test_a_table_is_read_row_by_row(client: Client) -> None:
    table = pd.DataFrame({"question": ["q", "q"], "answer_a": ["long", "s"], "answer_b": ["s", "long"], "id": [7, 8]})
    assert [(each.id, each.winner) for each in client.compare(table)] == [("7", "a"), ("8", "b")]


def test_pictures_are_sent_where_they_are_shown() -> None:
    seen: list[int] = []

    def looked(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        seen.append(len(request.pairs[0].images))
        return longer(request)

    client = Client(transport=StubTransport(compare=looked))
    pair = Pair("q", "long", "s", images=["https://example.org/a.png"], captions=["a cat"])
    client.compare([pair])
    client.compare([pair], "compare?image=true")
    assert seen == [0, 1]


def test_many_pairs_are_cut_into_requests_and_progress_is_told() -> None:
    sizes: list[int] = []
    told: list[tuple[int, int]] = []

    def counted(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        sizes.append(len(request.pairs))
        return longer(request)

    models = models_pb2.ListModelsResponse(limits=models_pb2.Limits(max_items_per_request=100))
    client = Client(transport=StubTransport(compare=counted, models=models))
    found = client.compare([LONG] * 40, progress=lambda done, total: told.append((done, total)))
    assert sorted(sizes) == [8, 16, 16]
    assert told[-1] == (40, 40)
    assert [each.index for each in found] == list(range(40))


def test_a_stream_gives_each_pair_back_once(client: Client) -> None:
    found = list(client.compare_stream(Pair("q", "x" * length, "yy", id=str(length)) for length in range(1, 70)))
    assert sorted(int(each.id) for each in found) == list(range(1, 70))
    assert all(each.winner == ("b" if each.id == "1" else "a") for each in found if each.id != "2")


async def test_the_asynchronous_twin() -> None:
    async with AsyncClient(transport=StubTransport(compare=longer)) as client:
        assert (await client.compare([LONG]))[0].winner == "a"
        assert [each.winner async for each in client.compare_stream([LONG])] == ["a"]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("smile", "unknown comparison 'smile'"),
        ("compare?mode=fast", "has no mode 'fast'"),
        ("compare?shots=2", "no parameter 'shots'; its parameters"),
        (3, "by is a int"),
    ],
)
def test_what_is_no_comparison_is_refused(client: Client, by: object, said: str) -> None:
    with pytest.raises(gradewire.InvalidRequest, match=said):
        client.compare([LONG], by)  # type: ignore[arg-type]
    with pytest.raises(gradewire.InvalidRequest, match=said):
        client.compare_stream([LONG], by)  # type: ignore[arg-type]


@pytest.mark.parametrize("metrics", ["compare", "smile,compare?references=true", Compare()])
def test_a_comparison_is_no_metric_of_items(metrics: object) -> None:
    stub = StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))
    with pytest.raises(gradewire.InvalidRequest, match=r"compares two answers: use Client\.compare"):
        Client(transport=stub).score([{"references": ["a"], "prediction": "a"}], metrics)  # type: ignore[arg-type]


def test_an_unknown_option_and_a_single_pair_are_errors_of_the_call(client: Client) -> None:
    with pytest.raises(TypeError, match=r"Client\.compare\(\) got an unexpected keyword argument 'preset'"):
        client.compare([LONG], preset="v1")  # type: ignore[call-arg]
    with pytest.raises(gradewire.InvalidRequest, match="pairs is one Pair: give a list"):
        client.compare(LONG)  # type: ignore[arg-type]
    with pytest.raises(gradewire.InvalidRequest, match="priority must be one of normal, bulk"):
        client.compare([LONG], priority="first")  # type: ignore[arg-type]


def test_a_reply_without_a_winner_is_no_verdict() -> None:
    def wrong(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = longer(request)
        reply.pairs[0].winner = judging_pb2.WINNER_UNSPECIFIED
        return reply

    (found,) = Client(transport=StubTransport(compare=wrong)).compare([LONG])
    assert (found.winner, found.status) == (None, Status.INTERNAL)
    assert found.message == "pairs[0]: the server returned OK without a winner: report this defect"


def test_a_winner_beside_another_status_is_dropped() -> None:
    def wrong(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = longer(request)
        reply.pairs[0].status = types_pb2.STATUS_UNPARSABLE
        return reply

    (found,) = Client(transport=StubTransport(compare=wrong)).compare([LONG])
    assert (found.winner, found.status) == (None, Status.UNPARSABLE)


def test_requests_that_fail_leave_the_others_standing() -> None:
    def failing(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        if request.pairs[0].id == "16":
            raise gradewire.ServerFault("broken")
        return longer(request)

    pairs = [Pair("q", "long", "s", id=str(index)) for index in range(48)]
    found = Client(transport=StubTransport(compare=failing)).compare(pairs)
    assert [each.id for each in found if each.status is Status.UNAVAILABLE] == [str(index) for index in range(16, 32)]
    assert sum(each.winner == "a" for each in found) == 32


def test_a_comparison_as_json(client: Client) -> None:
    (found,) = client.compare([LONG])
    row = found.to_dict()
    assert (row["id"], row["group"], row["winner"], row["status"], row["line"]) == ("1", "g", "a", "OK", "compare/1")
    assert row["orders"][1] == {
        "first": "b",
        "winner": "a",
        "probability_a": 1.0,
        "probability_b": 0.0,
        "probability_tie": 0.0,
    }


def test_a_stub_says_what_it_lacks() -> None:
    with pytest.raises(gradewire.InvalidRequest, match="this stub cannot compare"):
        Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))).compare([LONG])
    with pytest.raises(gradewire.InvalidRequest, match="this stub cannot score"):
        Client(transport=StubTransport(compare=longer)).score([{"references": ["a"], "prediction": "a"}])


def test_a_stream_hands_back_the_whole_id_where_the_server_has_cut_it() -> None:
    def cutting(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = longer(request)
        for pair in reply.pairs:
            pair.id = pair.id[:3]
        return reply

    with Client(transport=StubTransport(compare=cutting)) as client:
        (found,) = client.compare_stream([Pair("q", "xx", "y", id="i" * 9)])
    assert found.id == "i" * 9


def test_calls_go_on_after_a_break(small_server: SmallServer) -> None:
    pairs = [Pair("q", "x", "y", id=str(index)) for index in range(300)]
    with Client(small_server.address) as client:
        small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "gone")]
        assert client.compare(pairs[:3])[2].winner == "a"
        small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "gone", after_messages=2)]
        found = list(client.compare_stream(pairs))
    assert small_server.script.streams == 2
    assert sorted(int(each.id) for each in found) == list(range(300))
