"""Trace context of callers: what is malformed counts as none, and never raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, NoOpTracer, SpanContext, TraceFlags, get_current_span
from tests.support.kept_spans import KeptSpans

from gradewire_proto.tracing.otel import OtelSpan, context_of, metadata_of, span_context_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"
HEX = st.text("0123456789abcdefABCDEFg-", max_size=40)


def found(traceparent: str, tracestate: str = "") -> SpanContext:
    return get_current_span(context_of(traceparent, tracestate)).get_span_context()


def test_a_good_one_is_read_with_its_state() -> None:
    context = found(GOOD, "vendor=one,other=two")

    assert (f"{context.trace_id:032x}", f"{context.span_id:016x}") == (TRACE, SPAN)
    assert context.is_remote
    assert context.trace_flags.sampled
    assert dict(context.trace_state) == {"vendor": "one", "other": "two"}
    assert metadata_of(NonRecordingSpan(context)) == (
        ("traceparent", GOOD),
        ("tracestate", "vendor=one,other=two"),
    )


@given(st.one_of(st.text(max_size=600), st.builds("-".join, st.lists(HEX, min_size=1, max_size=6))))
def test_anything_else_is_none(text: str) -> None:
    context = found(text)
    if context.is_valid:  # then it says what the text says
        version, trace, span, flags = text.strip(" \t").split("-")[:4]
        assert (len(version), len(flags)) == (2, 2)
        assert (f"{context.trace_id:032x}", f"{context.span_id:016x}") == (trace, span)
    assert span_context_of(text) is None or context.is_valid


@given(st.text(max_size=700))
def test_a_malformed_state_leaves_the_parent(state: str) -> None:
    assert found(GOOD, state).is_valid


def test_known_mistakes_are_none() -> None:
    for text in (
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        GOOD + " " * 600,
        "",
    ):
        assert not found(text).is_valid


def test_an_invalid_span_has_no_metadata() -> None:
    assert metadata_of(INVALID_SPAN) == ()


def test_an_exemplar_names_the_span_and_its_trace() -> None:
    context = SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=TraceFlags(1))

    assert OtelSpan(NoOpTracer(), NonRecordingSpan(context)).exemplar() == {"trace_id": TRACE, "span_id": SPAN}


def test_an_ended_span_takes_no_links(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptSpans()
    late = kept.call.child("late")
    kept.call.end()
    kept.call.link(late)

    assert not kept.named("call").links
    assert not caplog.records
