"""Spans and events reach a real receiver, over either protocol; one that is away is counted and holds nothing up."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry
from tests.support.servers.otlp_receiver import OtlpReceiver, otlp_receiver

from gradewire_proto.tracing.factory import open_tracing, prometheus_counts
from gradewire_proto.tracing.otel import OtelSpan
from gradewire_proto.tracing.sdk import Tracing
from gradewire_proto.tracing.settings import TracingSettings
from gradewire_proto.tracing.spans import Evaluation, current_span, record_batch, record_result, spanned

CALLER = f"00-{'0af7651916cd43dd8448eb211c80319c'}-{'b7ad6b7169203331'}-01"


def describe(metric: str, index: int | None, result: float) -> Evaluation:
    return Evaluation(name=metric, score=result, item_index=index)


def tracing_to(receiver: OtlpReceiver, ratio: float = 1.0) -> Tracing:
    return Tracing(TracingSettings(endpoint=receiver.endpoint, sample_ratio=ratio), "tested", "1")


def begin(tracing: Tracing, name: str = "call", traceparent: str = "", tracestate: str = "") -> OtelSpan:
    span = tracing.begin(name, traceparent, tracestate, {})
    tracing.emit_results(span, describe, traceparent)
    return span


def id_of(span: OtelSpan) -> str:
    return f"{span.span.get_span_context().span_id:016x}"


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as running:
        yield running


def test_spans_nest_and_events_belong_to_the_caller(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver)
    with begin(tracing, "call", CALLER) as call:
        with spanned("part", {"n": 1}) as part:
            assert current_span() is part
            record_result("smile", 3, 0.5)
        with pytest.raises(ZeroDivisionError), spanned("broken"):
            _ = 1 / 0
    assert current_span() is None
    tracing.close()

    spans = {span.name: span for span in receiver.spans}
    assert spans["part"].parent_id == spans["broken"].parent_id == spans["call"].span_id == id_of(call)
    assert spans["call"].parent_id == CALLER.split("-")[2]
    assert (spans["broken"].failed, spans["broken"].attributes) == (True, {"error.type": "ZeroDivisionError"})
    (event,) = receiver.events
    assert (event.trace_id, event.span_id) == tuple(CALLER.split("-")[1:3])
    assert event.attributes["gen_ai.evaluation.score.value"] == 0.5


def test_a_call_without_a_caller_is_the_parent_of_its_events(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver)
    with begin(tracing):
        record_result("smile", 0, 1.0)
    tracing.close()

    (span,), (event,) = receiver.spans, receiver.events
    assert (event.trace_id, event.span_id, span.parent_id) == (span.trace_id, span.span_id, "")


def test_what_ends_after_its_call_is_not_lost(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver)
    with begin(tracing) as call:
        late = call.child("late")
    late.end()
    tracing.close()

    assert sorted(span.name for span in receiver.spans) == ["call", "late"]


def test_shared_work_is_a_part_of_the_first_and_refers_to_the_others(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver)
    calls = [begin(tracing) for _ in range(5)]
    now_ns = time.time_ns()

    record_batch("batch", [None, *calls, calls[0]], start_ns=now_ns, end_ns=now_ns + 7, attributes={"n": 1})
    for call in calls:
        call.end()
    tracing.close()

    (batch,) = (span for span in receiver.spans if span.name == "batch")
    assert batch.trace_id == calls[0].exemplar()["trace_id"]
    assert batch.attributes == {"n": 1, "gradewire.batch.shared_by": len(calls)}
    assert (batch.end_ns - batch.start_ns, len(batch.links)) == (7, 4)
    linked = [span for span in receiver.spans if span.name == "call" and span.links == [batch.span_id]]
    assert len(linked) == len(calls) - 1


def test_what_is_not_sampled_is_not_recorded(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver, ratio=0)
    call = begin(tracing)
    with call:
        record_result("smile", 0, 1.0)
    tracing.close()

    assert not int(call.metadata()[0][1][-2:], 16) & 1  # so that nobody further on samples it
    assert (receiver.spans, receiver.events) == ([], [])


def test_the_standard_variable_overrides_the_ratio(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, kept in (("0", 0), (" 1 ", 1)):
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", value)
        tracing = tracing_to(receiver, ratio=1 - kept)
        with begin(tracing):
            pass
        tracing.close()
        assert len(receiver.spans) == kept


def test_the_callers_sampling_wins_over_the_ratio(receiver: OtlpReceiver) -> None:
    tracing = tracing_to(receiver, ratio=0)
    with begin(tracing, "call", CALLER, "vendor=one") as call:
        assert call.metadata() == (
            ("traceparent", f"00-{CALLER.split('-')[1]}-{id_of(call)}-01"),
            ("tracestate", "vendor=one"),
        )
    tracing.close()

    assert [span.name for span in receiver.spans] == ["call"]


def test_a_collector_that_is_away_holds_nothing_up_and_each_record_is_counted_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
    registry = CollectorRegistry()
    counts = prometheus_counts(registry, "tested")
    tracing = Tracing(TracingSettings("http://127.0.0.1:9", sample_ratio=1), "tested", "1", counts)

    started_s = time.monotonic()
    for _ in range(20):
        begin(tracing).end()
    assert time.monotonic() - started_s < 1
    tracing.close()
    assert time.monotonic() - started_s < 5

    kind = {"kind": "span"}
    assert registry.get_sample_value("tested_telemetry_dropped_total", kind) == 20
    assert registry.get_sample_value("tested_telemetry_exported_total", kind) == 0
    ours = [record.getMessage() for record in caplog.records if record.name == "gradewire_proto.tracing.sdk"]
    assert ours == ["dropping spans, because the collector is down or too slow; this is logged once"]


def test_a_collector_that_comes_back_is_logged_and_counted(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    registry = CollectorRegistry()
    counts = prometheus_counts(registry, "tested")
    tracing = Tracing(TracingSettings(receiver.endpoint, sample_ratio=1), "tested", "1", counts)
    for _ in range(100):  # more at once than two can wait
        begin(tracing).end()
    tracing.close()

    found = [
        registry.get_sample_value(f"tested_telemetry_{outcome}_total", {"kind": "span"})
        for outcome in ("exported", "dropped")
    ]
    assert sum(filter(None, found)) == 100
    assert found[0] == len(receiver.spans)
    assert caplog.messages[-1] == "the collector accepts spans again"


def test_it_can_go_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    with http_receiver() as (endpoint, bodies):
        tracing = Tracing(TracingSettings(endpoint, 1), "tested", "1")
        with begin(tracing):
            record_result("smile", 0, 1.0)
        tracing.close()

    traces = ExportTraceServiceRequest.FromString(bodies["/v1/traces"])
    logs = ExportLogsServiceRequest.FromString(bodies["/v1/logs"])
    assert traces.resource_spans[0].scope_spans[0].spans[0].name == "call"
    assert logs.resource_logs[0].scope_logs[0].log_records[0].event_name == "gen_ai.evaluation.result"


def test_an_unknown_protocol_is_told_and_nothing_is_traced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")

    assert open_tracing(TracingSettings(endpoint="http://127.0.0.1:9"), "tested") is None
    assert "'smoke' is not a collector's protocol" in caplog.text


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
