"""What is recorded reaches a real receiver, over either protocol, with the ids that were given out before."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import SpanKind
from tests.support.servers.otlp_receiver import OtlpReceiver, otlp_receiver

from gradewire_proto.spans import current_span, record_batch, record_result, spanned
from gradewire_proto.telemetry.evaluation import Evaluation
from gradewire_proto.telemetry.providers import Providers, Service, open_providers
from gradewire_proto.telemetry.recorded import MAX_LINKS, Result
from gradewire_proto.telemetry.recorder import Recorder
from gradewire_proto.telemetry.settings import TelemetrySettings

SERVICE = Service("tested", "1")
CALLER = f"00-{'0af7651916cd43dd8448eb211c80319c'}-{'b7ad6b7169203331'}-01"


def describe(told: Result) -> Evaluation:
    return Evaluation(name=told.metric, score=told.result, item_index=told.item_index)


def recorder_to(receiver: OtlpReceiver, ratio: float = 1.0) -> Recorder:
    settings = TelemetrySettings(endpoint=receiver.endpoint, sample_ratio=ratio)
    return Recorder(Providers(settings, SERVICE), describe)


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as running:
        yield running


def test_spans_nest_and_events_belong_to_the_caller(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver)
    with recorder.begin("call", SpanKind.SERVER, CALLER) as call:
        with spanned("part", {"n": 1}) as part:
            assert current_span() is part
            record_result("smile", 3, 0.5)
        with pytest.raises(ZeroDivisionError), spanned("broken"):
            _ = 1 / 0
    assert current_span() is None
    recorder.close()

    spans = {span.name: span for span in receiver.spans}
    assert spans["part"].parent_id == spans["broken"].parent_id == spans["call"].span_id == f"{call.span_id:016x}"
    assert spans["call"].parent_id == CALLER.split("-")[2]
    assert (spans["broken"].failed, spans["broken"].attributes) == (True, {"error.type": "ZeroDivisionError"})
    (event,) = receiver.events
    assert (event.trace_id, event.span_id) == tuple(CALLER.split("-")[1:3])
    assert event.attributes["gen_ai.evaluation.score.value"] == 0.5


def test_a_call_without_a_caller_is_the_parent_of_its_events(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver)
    with recorder.begin("call", SpanKind.SERVER):
        record_result("smile", 0, 1.0)
    recorder.close()

    (span,), (event,) = receiver.spans, receiver.events
    assert (event.trace_id, event.span_id, span.parent_id) == (span.trace_id, span.span_id, "")


def test_a_long_stream_hands_over_before_it_ends(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver)
    with recorder.begin("stream", SpanKind.SERVER) as stream:
        for number in range(300):
            with spanned("slice"):
                record_result("smile", number, 1.0)
        assert len(stream.call._ended) < 256
        assert len(stream.call._results) < 256
    recorder.close()

    assert len([span for span in receiver.spans if span.name == "slice"]) == 300
    assert sorted(event.attributes["gradewire.item.index"] for event in receiver.events) == [*range(300)]


def test_what_ends_after_its_call_is_not_lost(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver)
    with recorder.begin("call", SpanKind.SERVER) as call:
        late = call.child("late")
    late.end()
    recorder.close()

    assert sorted(span.name for span in receiver.spans) == ["call", "late"]


def test_shared_work_is_a_part_of_the_first_and_refers_to_the_others(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver)
    calls = [recorder.begin("call", SpanKind.SERVER) for _ in range(MAX_LINKS + 5)]
    now_ns = time.time_ns()

    record_batch("batch", [None, *calls, calls[0]], start_ns=now_ns, end_ns=now_ns + 7, attributes={"n": 1})
    for call in calls:
        call.end()
    recorder.close()

    (batch,) = (span for span in receiver.spans if span.name == "batch")
    assert batch.trace_id == f"{calls[0].call.trace_id:032x}"
    assert batch.attributes == {"n": 1, "gradewire.batch.shared_by": len(calls)}
    assert (batch.end_ns - batch.start_ns, len(batch.links)) == (7, MAX_LINKS)
    linked = [span for span in receiver.spans if span.name == "call" and span.links == [batch.span_id]]
    assert len(linked) == len(calls) - 1


def test_what_is_not_sampled_is_not_recorded(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver, ratio=0)
    call = recorder.begin("call", SpanKind.SERVER)
    with call:
        record_result("smile", 0, 1.0)
    recorder.close()

    assert call.metadata()[0][1].endswith("-00")  # so that nobody further on samples it
    assert (receiver.spans, receiver.events) == ([], [])


def test_the_callers_sampling_wins_over_the_ratio(receiver: OtlpReceiver) -> None:
    recorder = recorder_to(receiver, ratio=0)
    with recorder.begin("call", SpanKind.SERVER, CALLER, "vendor=one") as call:
        assert call.metadata() == (
            ("traceparent", f"00-{CALLER.split('-')[1]}-{call.span_id:016x}-01"),
            ("tracestate", "vendor=one"),
        )
    recorder.close()

    assert [span.name for span in receiver.spans] == ["call"]


def test_more_than_the_thread_can_look_at_is_dropped_and_counted(receiver: OtlpReceiver) -> None:
    providers = Providers(TelemetrySettings(endpoint=receiver.endpoint, sample_ratio=1), SERVICE)
    recorder = Recorder(providers, describe)

    recorder.put([], [Result("smile", 0, 1.0)] * 20_000, None)
    recorder.put([], [Result("smile", 0, 1.0)] * 2, None)
    recorder.close()

    assert (providers.events.dropped, providers.events.exported, len(receiver.events)) == (20_000, 2, 2)


def test_what_a_defect_loses_is_counted_and_ends_no_other_trace(
    receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    def described(told: Result) -> Evaluation:
        if told.metric == "broken":
            raise ZeroDivisionError
        return describe(told)

    providers = Providers(TelemetrySettings(endpoint=receiver.endpoint, sample_ratio=1), SERVICE)
    recorder = Recorder(providers, described)
    recorder.put([], [Result("smile", 0, 1.0), Result("broken", 1, 1.0), Result("smile", 2, 1.0)], None)
    recorder.put([], [Result("smile", 3, 1.0)], None)
    recorder.close()

    assert sorted(event.attributes["gradewire.item.index"] for event in receiver.events) == [0, 3]
    assert (providers.events.dropped, providers.events.exported) == (2, 2)
    assert "a trace was lost by a defect" in caplog.text


def test_it_can_go_over_http() -> None:
    with http_receiver() as (endpoint, bodies):
        settings = TelemetrySettings(endpoint=endpoint, protocol="http/protobuf", sample_ratio=1)
        recorder = Recorder(Providers(settings, SERVICE), describe)
        with recorder.begin("call", SpanKind.SERVER):
            record_result("smile", 0, 1.0)
        recorder.close()

    traces = ExportTraceServiceRequest.FromString(bodies["/v1/traces"])
    logs = ExportLogsServiceRequest.FromString(bodies["/v1/logs"])
    assert traces.resource_spans[0].scope_spans[0].spans[0].name == "call"
    assert logs.resource_logs[0].scope_logs[0].log_records[0].event_name == "gen_ai.evaluation.result"


def test_an_unknown_protocol_is_told_and_nothing_is_traced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")

    assert open_providers(TelemetrySettings(endpoint="http://127.0.0.1:9"), SERVICE) is None
    assert "'smoke' is no protocol of collectors" in caplog.text


@contextmanager
def http_receiver() -> Iterator[tuple[str, dict[str, bytes]]]:
    bodies: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies[self.path] = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
