"""One trace from the caller through gateway, server and engine, as a receiver of OTLP sees it."""

import itertools
import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support.servers.otlp_receiver import OtlpReceiver, SeenSpan
from tests.support.servers.server_process import ServerProcess

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

SCORE = "gradewire.v1.Scoring/Score"
POST = f"POST /{SCORE}"
SECRET = "Zanzibar"  # noqa: S105 - a word that must not be seen anywhere
SMILE = {"smile": {}}
EXACT = {"exactMatch": {}}
CALLER = "b7ad6b7169203331"
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
APPLICATION = Path(__file__).parent / "application.py"


def traceparent(trace_id: str, *, sampled: bool = True) -> str:
    return f"00-{trace_id}-{CALLER}-{'01' if sampled else '00'}"


def post(server: ServerProcess, body: Any, path: str = SCORE, **headers: str) -> Any:
    given = {"content-type": "application/json"} | headers
    request = urllib.request.Request(f"{server.api}/{path}", json.dumps(body).encode(), given)  # noqa: S310 - our own servers
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - our own servers
        return json.load(reply)


def exposition(url: str) -> list[str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=OPENMETRICS), timeout=30) as reply:  # noqa: S310 - our own servers
        return list(reply.read().decode().splitlines())


def body_of(*predictions: str, metrics: tuple[Any, ...] = (SMILE, EXACT)) -> Any:
    items = [{"question": SECRET, "references": [SECRET], "prediction": each} for each in predictions]
    return {"items": items, "metrics": metrics}


def test_a_request_over_http_is_one_trace_down_to_the_batch(
    traced_server: ServerProcess, receiver: OtlpReceiver
) -> None:
    trace_id = secrets.token_hex(16)

    post(traced_server, body_of(f"It is {SECRET} {trace_id}."), traceparent=traceparent(trace_id))

    spans = receiver.trace_with(trace_id, POST, "score", "encode", "cache", "batch")
    receiver.spans_named(trace_id, SCORE, 2)  # the gateway's and the server's
    by_id = {span.span_id: span for span in receiver.spans if span.trace_id == trace_id}
    batch = spans["batch"]
    chain = [batch]
    while chain[-1].parent_id in by_id:
        chain.append(by_id[chain[-1].parent_id])
    assert [(each.service, each.kind, each.name) for each in chain] == [
        ("gradewire-server", "INTERNAL", "batch"),
        ("gradewire-server", "INTERNAL", "encode"),
        ("gradewire-server", "INTERNAL", "score"),
        ("gradewire-server", "SERVER", SCORE),
        ("gradewire-gateway", "CLIENT", SCORE),
        ("gradewire-gateway", "SERVER", POST),
    ]
    assert chain[-1].parent_id == CALLER
    assert all(inner.start_ns >= outer.start_ns for inner, outer in itertools.pairwise(chain))
    batches = [span for span in by_id.values() if span.name == "batch"]
    computed = sum(span.attributes["gradewire.texts"] for span in batches)
    assert spans["encode"].attributes["gradewire.answered_from.computed"] == computed
    assert spans["encode"].attributes["gen_ai.operation.name"] == "embeddings"
    assert spans[POST].attributes["http.response.status_code"] == 200
    assert chain[3].attributes["rpc.response.status_code"] == "OK"
    assert not any(span.failed for span in by_id.values())


def test_events_belong_to_the_span_of_the_caller_and_failures_have_no_score(
    traced_server: ServerProcess, receiver: OtlpReceiver
) -> None:
    trace_id = secrets.token_hex(16)

    reply = post(traced_server, body_of(SECRET, ""), traceparent=traceparent(trace_id))

    events = receiver.events_of(trace_id, 4)
    assert len(events) == 4
    assert {(event.name, event.span_id, event.service) for event in events} == {
        ("gen_ai.evaluation.result", CALLER, "gradewire-server")
    }
    said = {
        (event.attributes["gen_ai.evaluation.name"], event.attributes["gradewire.item.index"]): event.attributes
        for event in events
    }
    assert said["smile", 0]["gen_ai.evaluation.score.value"] == reply["items"][0]["results"][0]["score"]
    assert said["exact_match", 0]["gen_ai.evaluation.score.value"] == 1
    assert said["exact_match", 0]["gen_ai.evaluation.score.label"] == "correct"
    for name in ("smile", "exact_match"):
        assert said[name, 1]["error.type"] == "EMPTY_PREDICTION"
        assert not [key for key in said[name, 1] if "score" in key]


def test_no_text_of_a_caller_is_exported(traced_server: ServerProcess, receiver: OtlpReceiver) -> None:
    trace_id = secrets.token_hex(16)
    post(traced_server, body_of(f"{SECRET} again"), traceparent=traceparent(trace_id))

    receiver.trace_with(trace_id, POST, "encode")
    receiver.events_of(trace_id, 2)

    assert SECRET not in f"{receiver.spans}{receiver.events}"


def test_a_call_that_fails_says_so_in_every_span(traced_server: ServerProcess, receiver: OtlpReceiver) -> None:
    trace_id = secrets.token_hex(16)

    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(traced_server, body_of("one", metrics=({"smile": {}}, {})), traceparent=traceparent(trace_id))

    calls = receiver.spans_named(trace_id, SCORE, 2)
    codes = {span.kind: (span.attributes.get("rpc.response.status_code"), span.failed) for span in calls}
    # The caller's fault is an error of the client's span, and none of the server's.
    assert codes == {"SERVER": ("INVALID_ARGUMENT", False), "CLIENT": ("INVALID_ARGUMENT", True)}
    (http,) = receiver.spans_named(trace_id, POST, 1)
    assert (http.attributes["http.response.status_code"], http.failed) == (400, False)


def test_a_trace_that_is_not_sampled_leaves_nothing(traced_server: ServerProcess, receiver: OtlpReceiver) -> None:
    left_out, kept = secrets.token_hex(16), secrets.token_hex(16)

    post(traced_server, body_of("one"), traceparent=traceparent(left_out, sampled=False))
    post(traced_server, body_of("one"))  # the ratio of traces that begin here is 0
    post(traced_server, body_of("one"), traceparent="00-nonsense-01")
    post(traced_server, body_of("one"), traceparent=traceparent(kept))

    receiver.trace_with(kept, POST, SCORE)
    receiver.events_of(kept, 2)
    assert left_out not in {span.trace_id for span in receiver.spans}
    assert not [span for span in receiver.spans if not span.parent_id]


def test_exemplars_lead_from_latency_to_the_trace(traced_server: ServerProcess) -> None:
    trace_id = secrets.token_hex(16)

    post(traced_server, body_of("two"), traceparent=traceparent(trace_id))

    server = exposition(f"http://127.0.0.1:{traced_server.http_port}/metrics")
    gateway = exposition(f"{traced_server.api}/metrics")
    assert [line for line in server if line.startswith("gradewire_call_duration_seconds_bucket") and trace_id in line]
    assert [line for line in gateway if "request_duration_seconds_bucket" in line and trace_id in line]
    assert not any(trace_id in name for name in traced_server.samples())  # the old format knows no exemplars


def test_requests_that_share_a_batch_refer_to_it(traced_server: ServerProcess, receiver: OtlpReceiver) -> None:
    # A batch leaves as soon as a worker is free: whether calls meet in one is for the machine to say.
    for _ in range(20):
        traces = at_once(traced_server.address)
        for each in traces:
            receiver.trace_with(each, SCORE, "encode")
        batches = [span for span in receiver.spans if span.name == "batch" and span.trace_id in traces]
        if shared := [span for span in batches if span.attributes["gradewire.batch.shared_by"] > 1]:
            break
    waiting = {span.span_id: span for span in receiver.spans if span.name == "encode" and span.trace_id in traces}
    assert shared
    for batch in shared:
        others = [waiting[link] for link in batch.links]
        assert len(others) == batch.attributes["gradewire.batch.shared_by"] - 1
        assert all(batch.span_id in other.links for other in others)
        assert waiting[batch.parent_id].trace_id == batch.trace_id


def at_once(address: str) -> list[str]:
    """Send a dozen requests at a time, each in its own trace; return the traces of those that a busy server accepts."""
    traces = [secrets.token_hex(16) for _ in range(12)]
    accepted = []
    metrics = [types_pb2.MetricSpec(sbert=types_pb2.SbertParameters())]
    with grpc.insecure_channel(address) as channel:
        score = scoring_pb2_grpc.ScoringStub(channel).Score
        running = []
        for each in traces:
            items = [types_pb2.Item(references=["cat"], prediction=f"{each[:8]} {number}") for number in range(4)]
            request = scoring_pb2.ScoreRequest(items=items, metrics=metrics)
            running.append(score.future(request, metadata=(("traceparent", traceparent(each)),)))
        for each, call in zip(traces, running, strict=True):
            if call.exception(timeout=30) is None:
                accepted.append(each)
            else:
                assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return accepted


def test_a_stream_over_http_is_one_span_with_an_event_for_each_result(
    traced_server: ServerProcess, receiver: OtlpReceiver
) -> None:
    trace_id = secrets.token_hex(16)
    lines = [{"config": {"metrics": [EXACT]}}]
    lines += [{"items": {"items": [{"references": ["cat"], "prediction": f"cat {number}"}]}} for number in range(5)]
    data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    request = urllib.request.Request(  # noqa: S310 - our own servers
        f"{traced_server.api}/gradewire.v1.Scoring/ScoreStream",
        data,
        {"content-type": "application/x-ndjson", "traceparent": traceparent(trace_id)},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - our own servers
        reply.read()

    spans = receiver.trace_with(trace_id, "POST /gradewire.v1.Scoring/ScoreStream", "score")
    stream = "gradewire.v1.Scoring/ScoreStream"
    assert sorted(span.kind for span in receiver.spans_named(trace_id, stream, 2)) == ["CLIENT", "SERVER"]
    assert spans["score"].attributes["gradewire.metrics"] == ["exact_match"]
    assert sorted(event.attributes["gradewire.item.index"] for event in receiver.events_of(trace_id, 5)) == [*range(5)]


def test_an_application_sees_its_calls_and_emits_the_events_itself(
    traced_server: ServerProcess, receiver: OtlpReceiver, minilm: Path
) -> None:
    done = subprocess.run(
        [sys.executable, APPLICATION, traced_server.address, receiver.endpoint, minilm],
        capture_output=True,
        check=True,
        timeout=60,
    )
    told = json.loads(done.stdout)

    receiver.trace_with(told["trace"], "evaluate", "gradewire score", "score", "encode")
    receiver.spans_named(told["trace"], "gradewire.v1.Scoring/ScoreStream", 2)
    receiver.spans_named(told["trace"], SCORE, 4)
    ours = [span for span in receiver.spans if span.trace_id == told["trace"]]
    by_id = {span.span_id: span for span in ours}
    rpc = {(span.service, span.kind): span for span in sorted(ours, key=_start, reverse=True) if span.name == SCORE}
    client, server = rpc["application", "CLIENT"], rpc["gradewire-server", "SERVER"]
    assert server.parent_id == client.span_id
    assert by_id[client.parent_id].name == "gradewire score"
    assert by_id[client.parent_id].parent_id == told["evaluate"]
    (streamed,) = [span for span in ours if span.name == "gradewire score_stream"]
    assert streamed.parent_id == told["evaluate"]

    events = [event for event in receiver.events_of(told["trace"], 6) if event.trace_id == told["trace"]]
    assert {event.service for event in events} == {"application"}  # and none of the server's
    by_method = {
        name: [event for event in events if event.attributes["gen_ai.evaluation.name"] == name]
        for name in ("exact_match", "lexical_match", "smile")
    }
    scored, in_stream, submitted = by_method["exact_match"], by_method["lexical_match"], by_method["smile"]
    for each in (scored, in_stream):
        assert sorted((event.span_id, event.attributes["gradewire.item.index"]) for event in each) == sorted(
            [(told["answer"], 0), (told["evaluate"], 1)]
        )
    assert [event.attributes.get("error.type") for event in sorted(scored, key=_index)] == [None, "EMPTY_PREDICTION"]
    assert {event.span_id for event in submitted} == {told["evaluate"]}
    assert {event.attributes["gradewire.metric.line"] for event in scored} == {told["line"]}
    embedded = told["embedded"]
    by_id = {span.span_id: span for span in receiver.spans if span.trace_id == embedded}
    batches = receiver.spans_named(embedded, "batch", 2)
    assert {tuple(span.name for span in above(batch, by_id)) for batch in batches} == {
        ("encode", "score", "gradewire score", "embedded"),
        ("encode", "score", "gradewire score_stream", "embedded"),
    }
    assert [event.service for event in receiver.events_of(embedded, 2)] == ["application"] * 2


def test_a_run_of_the_command_is_a_trace(traced_server: ServerProcess, receiver: OtlpReceiver, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"references": ["cat"], "prediction": "cat"}) + "\n")
    command = [Path(sys.executable).with_name("gradewire"), "score", "rows.jsonl", "--metrics", "exact_match"]
    subprocess.run(
        [*command, "--server", traced_server.address, "--out", "scores.jsonl"],
        env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "OTEL_SERVICE_NAME": "nightly"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=60,
    )

    (run,) = receiver.wait_for(lambda seen: [span for span in seen.spans if span.name == "gradewire score (command)"])
    assert (run.service, run.parent_id) == ("nightly", "")
    receiver.trace_with(run.trace_id, "score")  # of the engine, in the server
    assert [event.service for event in receiver.events_of(run.trace_id, 1)] == ["nightly"]


def above(span: SeenSpan, by_id: dict[str, SeenSpan]) -> Iterator[SeenSpan]:
    while (parent := by_id.get(span.parent_id)) is not None:
        yield (span := parent)


def _index(event: Any) -> int:
    index: int = event.attributes["gradewire.item.index"]
    return index


def _start(span: Any) -> int:
    start_ns: int = span.start_ns
    return start_ns
