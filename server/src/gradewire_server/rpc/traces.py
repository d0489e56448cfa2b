"""What a call's metadata say of its trace, and what its span says of the call."""

from typing import Final

from gradewire_proto.conventions.telemetry_names import (
    BY_CALLER,
    EVALUATED_KEY,
    EVENTS_KEY,
    ITEMS,
    METRICS,
    REQUEST_ID,
    RPC_STATUS,
    TENANT,
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
)
from gradewire_server.rpc.messages import GrpcContext
from gradewire_server.rpc.request_log import CallRecord
from gradewire_server.tracing.port import TracedCall, TraceHeaders

_KEYS: Final = frozenset({TRACEPARENT_KEY, TRACESTATE_KEY, EVENTS_KEY, EVALUATED_KEY})
_FAULTS: Final = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""Codes that are errors of a server, as OpenTelemetry has it; the others are the caller's."""


def trace_headers(context: GrpcContext) -> TraceHeaders:
    """Reads them; what is no text counts as not there."""
    found = {
        key: value for key, value in context.invocation_metadata() or () if key in _KEYS and isinstance(value, str)
    }
    by_caller = found.get(EVENTS_KEY) == BY_CALLER
    return TraceHeaders(
        found.get(TRACEPARENT_KEY, ""), found.get(TRACESTATE_KEY, ""), by_caller, found.get(EVALUATED_KEY, "")
    )


def ended(span: TracedCall, record: CallRecord) -> None:
    """Says of a call's span how the call ended, and ends it."""
    span.set(RPC_STATUS, record.code)
    span.set(REQUEST_ID, record.request_id)
    if record.tenant:
        span.set(TENANT, record.tenant)
    if record.items:
        span.set(ITEMS, record.items)
    if record.metrics:
        span.set(METRICS, record.metrics)
    if record.code in _FAULTS:
        span.fail(record.code)
    span.end()
