"""An application with providers of its own, which grades answers of spans that it made: ADDRESS ENDPOINT MODELS."""

import json
import sys

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from gradewire import Client, Scorer

address, endpoint, models = sys.argv[1:]
resource = Resource.create({"service.name": "application"})
traces = TracerProvider(resource=resource)
traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
trace.set_tracer_provider(traces)
logs = LoggerProvider(resource=resource)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint)))
set_logger_provider(logs)
tracer = trace.get_tracer("application")

with Client(address) as client, tracer.start_as_current_span("evaluate") as evaluate:
    with tracer.start_as_current_span("chat model") as answer:
        context = answer.get_span_context()
    items = [
        {
            "references": ["cat"],
            "prediction": "cat",
            "traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-01",
        },
        {"references": ["cat"], "prediction": ""},
    ]
    report = client.score(items, "exact_match")
    list(client.score_stream(items, "lexical_match"))
    client.submit([{"references": ["cat"], "prediction": "a cat"}] * 2, "smile").result()

with (
    Scorer.embedded(model_repository=models, disk_directory="", judge_backend="none") as scorer,
    tracer.start_as_current_span("embedded") as embedded,
):
    scorer.score([{"references": ["cat"], "prediction": "It is a small cat."}], "smile")
    list(scorer.score_stream([{"references": ["cat"], "prediction": "It is a grey cat."}], "smile"))

traces.shutdown()
logs.shutdown()
print(
    json.dumps(
        {
            "trace": f"{context.trace_id:032x}",
            "answer": f"{context.span_id:016x}",
            "evaluate": f"{evaluate.get_span_context().span_id:016x}",
            "embedded": f"{embedded.get_span_context().trace_id:032x}",
            "line": report.provenance["exact_match"].line,
        }
    )
)
