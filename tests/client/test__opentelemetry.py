"""An engine's spans by the API of an application's provider."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gradewire._opentelemetry import engine_span
from gradewire_proto.tracing.otel import OtelSpan
from gradewire_proto.tracing.spans import current_span, record_batch, spanned


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    provider, memory = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield memory
    provider.shutdown()


def by_name(memory: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in memory.get_finished_spans()}


def test_parts_stand_under_the_applications_span_and_failures_are_told(exported: InMemorySpanExporter) -> None:
    with trace.get_tracer("app").start_as_current_span("app"), engine_span():
        with spanned("score", {"n": 1}) as score:
            assert score is not None
            score.set("more", 2)
        with pytest.raises(KeyError), spanned("encode"):
            raise KeyError("a user's text")
    assert current_span() is None

    spans = by_name(exported)
    parent = spans["app"].context
    assert parent is not None
    for name in ("score", "encode"):
        above = spans[name].parent
        assert above is not None
        assert above.span_id == parent.span_id
    assert spans["score"].attributes == {"n": 1, "more": 2}
    assert spans["encode"].attributes == {"error.type": "KeyError"}
    assert "a user's text" not in str(spans["encode"].to_json())


def test_a_batch_has_the_times_that_it_is_given_and_links_both_ways(exported: InMemorySpanExporter) -> None:
    tracer = trace.get_tracer("app")
    one, other = (OtelSpan(tracer, tracer.start_span(name)) for name in ("one", "other"))
    record_batch("batch", [one, other], start_ns=100, end_ns=200, attributes={})
    one.end()
    other.end()

    spans = by_name(exported)
    assert (spans["batch"].start_time, spans["batch"].end_time) == (100, 200)
    assert [link.context for link in spans["batch"].links] == [spans["other"].context]
    assert [link.context for link in spans["other"].links] == [spans["batch"].context]


def test_without_a_recorded_span_nothing_is_traced(exported: InMemorySpanExporter) -> None:
    with engine_span(), spanned("score") as score:
        assert score is None
    assert exported.get_finished_spans() == ()
