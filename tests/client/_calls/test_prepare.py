"""prepare over a real socket."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any
from unicodedata import normalize

import grpc
import pytest
from tests.client.small_server import Fault, SmallServer
from typing_extensions import override

import gradewire
from gradewire import Client, PrepareProgress, ReferenceEntry, Status
from gradewire.testing import StubTransport
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto import wire_rules
from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2


@pytest.fixture
def client(small_server: SmallServer) -> Iterator[Client]:
    with Client(small_server.address, deadline_s=20) as client:
        yield client


def entries(count: int) -> list[dict[str, object]]:
    return [{"references": [f"r{index}"], "synthetic_answers": [f"It is r{index}."]} for index in range(count)]


def test_a_large_set_goes_in_parts_under_one_name(client: Client, small_server: SmallServer) -> None:
    small_server.script.limits = models_pb2.Limits(max_items_per_request=40)
    steps: list[PrepareProgress] = []
    report = client.prepare(iter(entries(100)), "smile", progress=steps.append)
    assert report.entries == 100
    assert report.synthetic_answers_stored == 100
    assert report.provenance["smile"].line == "smile/1"
    assert [step.entries_done for step in steps] == [40, 80, 100]
    assert {step.entries_total for step in steps} == {100}
    sent = small_server.script.requests
    assert {request.reference_set for request in sent} == {report.reference_set}
    assert len(report.reference_set) == 32


def test_the_name_does_not_hang_on_how_it_was_cut(client: Client, small_server: SmallServer) -> None:
    whole = client.prepare(entries(30)).reference_set
    small_server.script.limits = models_pb2.Limits(max_items_per_request=7)
    client.models()
    assert client.prepare(entries(30)).reference_set == whole
    assert client.prepare(entries(30)[::-1]).reference_set != whole


def test_a_break_is_taken_up_again(client: Client, small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, pushback_ms=1)] * 6
    assert client.prepare(entries(3)).entries == 3


def test_a_metric_that_names_another_set_is_refused(client: Client) -> None:
    with pytest.raises(
        gradewire.InvalidRequest, match="a metric has reference_set='another', but these entries make the set"
    ):
        client.prepare([{"references": ["a"]}], "smile?reference_set=another")
    name = client.prepare([{"references": ["a"]}], "smile").reference_set
    assert client.prepare([{"references": ["a"]}], f"smile?reference_set={name}").reference_set == name


def test_bad_entries_are_named_and_the_others_prepared(client: Client, small_server: SmallServer) -> None:
    given_entries = [
        entries(1)[0],
        {"references": {"a"}},
        ReferenceEntry(references=["a"]),
        {"references": ["\ud800"]},
        3,
        {"question": "q"},
        {"references": ["x" * 5_000_000]},
        {"references": ["a"], "synthetic_answers": [b"a"]},
    ]
    report = client.prepare(given_entries)  # type: ignore[arg-type]
    assert [failure.index for failure in report.failures] == [1, 3, 4, 5, 6, 7]
    assert {failure.status for failure in report.failures} == {Status.INVALID_INPUT}
    assert "entries[1].references[0] is a set" in report.failures[0].message
    assert "entries[7].synthetic_answers[0] is bytes" in report.failures[-1].message
    (request,) = small_server.script.requests
    assert isinstance(request, references_pb2.PrepareRequest)
    assert len(request.entries) == 2


def test_no_entries_are_refused(client: Client) -> None:
    with pytest.raises(gradewire.InvalidRequest, match="entries is empty"):
        client.prepare([])


def test_marks_without_end_are_refused_before_they_are_normalised(
    client: Client, small_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def spy(form: Any, text: str) -> str:
        seen.append(text)
        return normalize(form, text)

    monkeypatch.setattr(wire_rules, "normalize", spy)
    evil = "\U0001f389" * 40 + "a" + "\u0301" * 50_000 + "\u0316" * 50_000
    report = client.prepare([{"references": ["a" + "\u0301" * 30]}, {"references": ["a", evil]}])
    (failure,) = report.failures
    assert (failure.index, failure.status) == (1, Status.INVALID_INPUT)
    assert "30 combining marks" in failure.message
    assert "a" + "\u0301" * 30 in seen
    assert evil not in seen
    (request,) = small_server.script.requests
    assert isinstance(request, references_pb2.PrepareRequest)
    assert len(request.entries) == 1


class OlderServer(StubTransport):
    """Does not know the fields that came with immutable sets."""

    @override
    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        assert isinstance(sent, references_pb2.PrepareRequest)
        sent.ClearField("immutable")
        async for progress in super().stream(method, sent, timeout_s=timeout_s):
            yield progress


def test_a_server_that_knows_no_immutable_sets_is_told_apart() -> None:
    with (
        Client(transport=OlderServer(lambda _: scoring_pb2.ScoreResponse())) as client,
        pytest.raises(gradewire.InvalidRequest, match="this server does not support immutable sets"),
    ):
        client.prepare([{"references": ["a"]}], "smile", immutable=True)


def test_questions_without_an_answer_are_left_out(client: Client, small_server: SmallServer) -> None:
    mixed = [{"references": [], "answerable": False}, *entries(2), {"question": "Who?", "answerable": "false"}]
    report = client.prepare(mixed)
    assert (report.entries, report.failures) == (4, ())
    assert [len(request.entries) for request in small_server.script.requests] == [2]
    assert report.reference_set == client.prepare(entries(2)).reference_set
    with pytest.raises(gradewire.InvalidRequest, match="no question has an answer"):
        client.prepare(mixed[:1])
