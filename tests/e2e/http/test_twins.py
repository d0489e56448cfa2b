"""The JSON twin of a method gives what the method gives, bit for bit."""

import json
import random
from collections.abc import Iterator
from typing import Any

import grpc
import httpx2
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from tests.support.examples import example_count
from tests.support.servers.gateway import SCORE, SCORE_STREAM
from tests.support.servers.server_process import ServerProcess

from gradewire.metrics import METRIC_TYPES
from gradewire_gateway.wire import all_methods
from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2

BEARER = {"authorization": "Bearer right"}
JSON = {"content-type": "application/json", **BEARER}
LINES = {"content-type": "application/x-ndjson", **BEARER}
SAID = "the a two big black cats sat on mat in 1997 Paris not yes no 3.5 km café naïve 北京"
WORDS = [*SAID.split(), "\0", '"', "\\", "\n"]
METRICS = [
    types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_FAST, sentence_weight=0.1)),
    types_pb2.MetricSpec(sfve=types_pb2.SfveParameters(threshold=0.7)),
    *(kind().to_spec() for kind in METRIC_TYPES.values() if not kind.asks_judge()),
]


def drawn(seed: int) -> scoring_pb2.ScoreRequest:
    """A request, sometimes with items that cannot be scored."""
    rng = random.Random(seed)  # noqa: S311 - a sample

    def text(most: int = 9) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(0, most)))

    items = [
        types_pb2.Item(
            id=f"{seed}/{number}",
            question=text(),
            references=[text() for _ in range(rng.randint(0, 3))],
            prediction=text(20),
            group=text(1),
        )
        for number in range(rng.randint(0, 4))
    ]
    return scoring_pb2.ScoreRequest(items=items, metrics=rng.sample(METRICS, rng.randint(1, 3)), omit_diagnostics=True)


@pytest.fixture(scope="module")
def channel(http_server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(http_server.address) as made:
        yield made


@pytest.fixture(scope="module")
def client(http_server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=http_server.api, timeout=60, trust_env=False) as made:
        yield made


def by_grpc(channel: grpc.Channel, path: str, request: Message) -> bytes | str:
    """The bytes of the reply without its timing, or the code of the error with its details."""
    method = next(method for method in all_methods() if method.path == path)
    call = channel.unary_unary(path, method.request_type.SerializeToString, method.reply_type.FromString)
    done = call.future(request, metadata=[("authorization", "Bearer right")], timeout=60)
    if done.code() is grpc.StatusCode.OK:
        return untimed(done.result())
    return f"{done.code().name.lower()}: {done.details()}"


def by_http(client: httpx2.Client, path: str, request: Message) -> bytes | str:
    method = next(method for method in all_methods() if method.path == path)
    reply = client.post(path, content=json_format.MessageToJson(request), headers=JSON)
    if reply.status_code != 200:
        return f"{reply.json()['code']}: {reply.json()['detail']}"
    return untimed(json_format.Parse(reply.content, method.reply_type()))


def untimed(reply: Any) -> bytes:
    if isinstance(reply, scoring_pb2.ScoreResponse):
        reply.ClearField("server_s")
    data: bytes = reply.SerializeToString(deterministic=True)
    return data


def test_drawn_requests_are_answered_alike(channel: grpc.Channel, client: httpx2.Client) -> None:
    statuses = set()
    empty = scoring_pb2.ScoreRequest(items=[types_pb2.Item(references=["a"], prediction="")], metrics=METRICS)
    for request in (*map(drawn, range(example_count(60))), empty):
        ours = by_http(client, SCORE, request)
        assert ours == by_grpc(channel, SCORE, request), request
        if isinstance(ours, bytes):
            reply = scoring_pb2.ScoreResponse.FromString(ours)
            statuses |= {result.status for item in reply.items for result in item.results}
    assert statuses >= {types_pb2.STATUS_OK, types_pb2.STATUS_INVALID_INPUT, types_pb2.STATUS_EMPTY_PREDICTION}


def test_errors_are_the_server_s(channel: grpc.Channel, client: httpx2.Client) -> None:
    wrong = [
        scoring_pb2.ScoreRequest(items=[types_pb2.Item()]),
        scoring_pb2.ScoreRequest(items=[types_pb2.Item()], metrics=[types_pb2.MetricSpec()]),
        scoring_pb2.ScoreRequest(items=[types_pb2.Item()] * 5000, metrics=METRICS[:1]),
        scoring_pb2.ScoreRequest(
            items=[types_pb2.Item(references=["a"], prediction="a")],
            metrics=[types_pb2.MetricSpec(lave=types_pb2.LaveParameters())],
        ),
    ]
    for request in wrong:
        ours = by_http(client, SCORE, request)
        assert isinstance(ours, str), ours
        assert ours == by_grpc(channel, SCORE, request)


def test_what_the_server_can_do_is_the_same(channel: grpc.Channel, client: httpx2.Client) -> None:
    path = "/gradewire.v1.Models/List"
    request = models_pb2.ListModelsRequest()
    assert by_http(client, path, request) == by_grpc(channel, path, request)


def test_streams_give_the_same_results(channel: grpc.Channel, client: httpx2.Client) -> None:
    items = [item for seed in range(40) for item in drawn(seed).items]
    config = scoring_pb2.ScoreStreamConfig(metrics=METRICS[:3], omit_diagnostics=True)
    parts = [scoring_pb2.ScoreStreamItems(items=items[at : at + 9]) for at in range(0, len(items), 9)]
    messages = [
        scoring_pb2.ScoreStreamRequest(config=config),
        *(scoring_pb2.ScoreStreamRequest(items=part) for part in parts),
    ]
    call = channel.stream_stream(
        SCORE_STREAM, scoring_pb2.ScoreStreamRequest.SerializeToString, scoring_pb2.ScoreStreamResponse.FromString
    )
    theirs = list(call(iter(messages), metadata=[("authorization", "Bearer right")], timeout=60))
    body = "\n".join(json_format.MessageToJson(message, indent=None) for message in messages)
    reply = client.post(SCORE_STREAM, content=body, headers=LINES)
    assert reply.status_code == 200
    ours = [json_format.Parse(line, scoring_pb2.ScoreStreamResponse()) for line in reply.text.splitlines()]
    assert by_place(ours) == by_place(theirs)
    assert len(by_place(ours)) == 3 * len(items)
    assert ours[0].provenance == theirs[0].provenance


def by_place(replies: list[scoring_pb2.ScoreStreamResponse]) -> dict[tuple[int, int], bytes]:
    """Each result by item and metric: in which order and in which messages they come differs from run to run."""
    return {
        (item.index, result.metric_index): result.SerializeToString(deterministic=True)
        for reply in replies
        for item in reply.items
        for result in item.results
    }


def test_a_preparation_tells_of_its_progress(client: httpx2.Client) -> None:
    asked = {"entries": [{"references": ["a cat"]}, {"references": [" "]}], "metrics": [{"smile": {}}]}
    reply = client.post("/gradewire.v1.References/Prepare", content=json.dumps(asked), headers=JSON)
    steps = [json.loads(line) for line in reply.text.splitlines()]
    assert steps[-1]["complete"]
    assert steps[-1]["entriesDone"] == steps[-1]["entriesTotal"] == 2
    assert [failure["index"] for step in steps for failure in step.get("failures", ())] == [1]
