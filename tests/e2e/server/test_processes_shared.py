"""What several processes of a server share: prepared sets, synthetic answers, quotas, tokens, the HTTP API.

Each test asks both processes by name, over a connection to each.
"""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import channels_by_process, process_ids, wait_until

from gradewire import Client
from gradewire_proto.v1 import (
    monitoring_pb2,
    monitoring_pb2_grpc,
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
    types_pb2,
)

TOKENS = (
    '[own]\ntoken = "right"\nscopes = ["score", "prepare", "judge", "admin"]\n'
    '[small]\ntoken = "small"\nscopes = ["score"]\nquota_tokens_per_minute = 600\n'
)
CIDER = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=types_pb2.CORPUS_PREPARED))
SMILE = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED))
ITEM = types_pb2.Item(question="q", references=["a brown dog runs fast", "a dog"], prediction="a brown dog runs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("several")
    (directory / "tokens.toml").write_text(TOKENS)
    settings = {
        "model_repository": minilm,
        "judge_backend": "none",
        "processes": 2,
        "http_api_port": 0,
        "auth_tokens_file": directory / "tokens.toml",
        "drain_s": 0,
    }
    with ServerProcess(directory, **settings) as running:
        yield running
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


@pytest.fixture(scope="module")
def both(server: ServerProcess) -> Iterator[Sequence[grpc.Channel]]:
    with channels_by_process(server.address, "right") as channels:
        yield tuple(channels.values())


def _as(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def _entries(turn: int, *answers: str) -> list[references_pb2.ReferenceEntry]:
    references = ["a brown dog runs", f"cat number {turn} sleeps"]
    return [references_pb2.ReferenceEntry(question=f"q{turn}", references=references, synthetic_answers=answers)]


def _prepare(
    channel: grpc.Channel, name: str, entries: Sequence[references_pb2.ReferenceEntry], metric: types_pb2.MetricSpec
) -> list[references_pb2.EntryFailure]:
    request = references_pb2.PrepareRequest(entries=entries, metrics=[metric], reference_set=name)
    replies = list(references_pb2_grpc.ReferencesStub(channel).Prepare(request, timeout=60, metadata=_as("right")))
    assert replies[-1].complete
    return [failure for reply in replies for failure in reply.failures]


def _score(channel: grpc.Channel, name: str, metric: types_pb2.MetricSpec, item: types_pb2.Item = ITEM) -> "_Scored":
    request = scoring_pb2.ScoreRequest(items=[item], metrics=[metric], reference_set=name)
    reply = scoring_pb2_grpc.ScoringStub(channel).Score(request, timeout=60, metadata=_as("right"))
    result = reply.items[0].results[0]
    return types_pb2.Status.Name(result.status), result.score, reply.provenance[0].corpus_digest


_Scored = tuple[str, float, str]


def test_both_answer_and_are_shown_as_one(server: ServerProcess, both: Sequence[grpc.Channel]) -> None:
    before = _calls(server)
    with Client(server.address, token="right", connections=8) as client:  # noqa: S106 - the test's own
        for _ in range(5):
            scored = client.score([{"references": ["a cat"], "prediction": "a small cat"}] * 4, "exact_match,smile")
            assert scored.items[0].scores["smile"].status == "OK"
    calls = _calls(server)
    assert calls >= before + 5
    for channel in both:
        stub = monitoring_pb2_grpc.MonitoringStub(channel)
        assert stub.Snapshot(monitoring_pb2.SnapshotRequest(), timeout=20, metadata=_as("right")).calls >= calls
    assert server.http("/readyz")[0] == 200


def _calls(server: ServerProcess) -> float:
    return server.samples().get('gradewire_calls_total{code="OK",method="gradewire.v1.Scoring/Score"}', 0.0)


def test_a_set_that_one_process_has_prepared_is_the_same_in_all_at_once(both: Sequence[grpc.Channel]) -> None:
    assert not _prepare(both[0], "grows", [*_entries(10), *_entries(11)], CIDER)
    seen = {_score(channel, "grows", CIDER)[1:] for channel in both}
    assert len(seen) == 1
    for turn in range(6):
        by = both[turn % 2]
        assert not _prepare(by, "grows", _entries(turn), CIDER)
        # The preparing call has returned: from now on nobody may count over the set as it was.
        found = [_score(channel, "grows", CIDER) for channel in (both[1 - turn % 2], by)]
        assert found[0] == found[1]
        assert found[0][0] == "STATUS_OK"
        assert found[0][1:] not in seen, "scores of a set that has grown since"
        seen.add(found[0][1:])
    old = next(iter(digest for _, digest in seen if digest != found[0][2]))
    for channel in both:
        with pytest.raises(grpc.RpcError, match="has the digest"):
            _score(channel, f"grows@{old}", CIDER)


def test_synthetic_answers_are_the_same_in_all_and_none_is_replaced(both: Sequence[grpc.Channel]) -> None:
    references = _entries(0)[0].references
    item = types_pb2.Item(question="q0", references=references, prediction="a small brown dog runs")
    assert {_score(channel, "synthetic", SMILE, item)[0] for channel in both} == {"STATUS_NOT_PREPARED"}
    assert not _prepare(both[0], "synthetic", _entries(0, "A brown dog is running.", "A cat is sleeping."), SMILE)
    first = [_score(channel, "synthetic", SMILE, item) for channel in both]
    assert first[0][0] == "STATUS_OK"
    assert first[1] == pytest.approx(first[0])
    refused = _prepare(both[1], "synthetic", _entries(0, "Something else entirely.", "A cat is sleeping."), SMILE)
    assert [failure.status for failure in refused] == [types_pb2.STATUS_INVALID_INPUT]
    assert [_score(channel, "synthetic", SMILE, item) for channel in both] == first


def test_a_caller_with_two_connections_has_one_quota(both: Sequence[grpc.Channel]) -> None:
    item = types_pb2.Item(references=["a"], prediction="a", question="x" * 1000)  # 250 of 600 tokens
    metric = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())
    request = scoring_pb2.ScoreRequest(items=[item], metrics=[metric])
    codes = []
    for turn in range(6):
        stub = scoring_pb2_grpc.ScoringStub(both[turn % 2])
        call = stub.Score.future(request, timeout=20, metadata=_as("small"))
        codes.append(call.code().name)
    assert codes[:2] == ["OK", "OK"]
    assert codes[3:] == ["RESOURCE_EXHAUSTED"] * 3, "the other process would have let it in"


def test_all_take_a_new_tokens_file(server: ServerProcess, both: Sequence[grpc.Channel]) -> None:
    path = Path(str(server.settings["auth_tokens_file"]))

    def codes() -> set[str]:
        request = scoring_pb2.ScoreRequest()
        calls = [
            scoring_pb2_grpc.ScoringStub(channel).Score.future(request, timeout=20, metadata=_as("late"))
            for channel in both
        ]
        return {call.code().name for call in calls}

    refused = codes()
    assert refused == {"UNAUTHENTICATED"}
    path.write_text(f'{TOKENS}[late]\ntoken = "late"\n')
    wait_until(lambda: codes().isdisjoint(refused))
    path.write_text(TOKENS)
    wait_until(lambda: codes() == refused)


def test_http_requests_go_to_the_process_that_answers(server: ServerProcess) -> None:
    def post() -> Mapping[str, object]:
        body = json.dumps({"items": [{"references": ["a"], "prediction": "a"}], "metrics": [{"exactMatch": {}}]})
        headers = {"content-type": "application/json", "authorization": "Bearer right"}
        url = f"{server.api}/gradewire.v1.Scoring/Score"
        asked = urllib.request.Request(url, body.encode(), headers)  # noqa: S310 - our own server
        with urllib.request.urlopen(asked, timeout=60) as reply:  # noqa: S310 - as above
            answer: Mapping[str, object] = json.load(reply)
            return answer

    post(), post()  # the channels to both are open
    stopped = process_ids(server.pid)[0]
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        os.kill(stopped, signal.SIGSTOP)
        stack.callback(os.kill, stopped, signal.SIGCONT)
        first = pool.submit(post), pool.submit(post)
        done = wait(first, timeout=30, return_when="FIRST_COMPLETED").done
        assert len(done) == 1, "one went to each process"
        assert all("items" in pool.submit(post).result(30) for _ in range(8)), "the stopped one has a call already"
        stack.close()
        assert all("items" in each.result(30) for each in first)


def test_health_tells_that_the_http_gateway_is_down(server: ServerProcess) -> None:
    def shown() -> list[str]:
        return [each for each in server.http("/healthz")[1]["degraded"] if "HTTP gateway" in each]

    wait_until(lambda: not shown())
    running = [str(line["event"]) for line in server.log() if "the HTTP gateway runs as process" in line["event"]]
    os.kill(int(running[-1].rpartition(" ")[2]), signal.SIGKILL)
    wait_until(lambda: bool(shown()))
    assert server.http("/readyz")[0] == 200, "gRPC goes on"
    wait_until(lambda: not shown())
