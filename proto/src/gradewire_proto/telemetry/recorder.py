"""Makes the SDK's spans and events of what was recorded, on a thread of its own and a little later.

A span of the SDK costs several times what a request can spare for it, and an event as much again for every item. So the
event loop notes a few fields, and this thread does the rest, by the ids that were given out meanwhile.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import getrandbits
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, get_current_span

from gradewire_proto.spans import ERROR_TYPE, Value
from gradewire_proto.telemetry.context import context_of, parent
from gradewire_proto.telemetry.evaluation import Evaluation, emit
from gradewire_proto.telemetry.providers import Providers
from gradewire_proto.telemetry.recorded import Call, Recorded, Result

_log = logging.getLogger(__name__)
_EVERY_S: Final = 0.25
_MAX_WAITING: Final = 16_384
"""Spans and results that are handed over and not looked at yet; more are dropped and counted."""
_GIVE_WAY_S: Final = 0.0
"""Of sleep after each: it hands the interpreter to the event loop, which else waits 5 ms for it."""
_NO_CONTEXT: Final = Context()

Describe = Callable[[Result], Evaluation]
"""What there is to say of a result."""


class Recorder:
    """One a process; `begin` is called on its event loop.

    Args:
        providers: Closed with this.
        describe: Reads results; None: there are none.
    """

    def __init__(self, providers: Providers, describe: Describe | None = None) -> None:
        self._providers = providers
        self._sampler: Sampler = providers.sampler
        self._describe = describe
        self._waiting: deque[tuple[Sequence[Recorded], Sequence[Result], SpanContext | None]] = deque()
        self._taken_in = self._looked_at = 0  # each is changed by one thread alone
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gradewire-telemetry", daemon=True)
        self._thread.start()

    def begin(
        self,
        name: str,
        kind: SpanKind,
        traceparent: str = "",
        tracestate: str = "",
        attributes: Mapping[str, Value] | None = None,
    ) -> Recorded:
        """Begins the span of a call; one that is not sampled costs next to nothing and is forgotten."""
        context = context_of(traceparent, tracestate) if traceparent else _NO_CONTEXT
        remote = _valid(get_current_span(context).get_span_context()) if traceparent else None
        trace_id = getrandbits(128) if remote is None else remote.trace_id
        decision = self._sampler.should_sample(context, trace_id, name, kind, attributes).decision
        call = Call(self, remote, trace_id, sampled=decision is Decision.RECORD_AND_SAMPLE)
        call.wants_events = call.sampled and self._describe is not None and self._providers.logger is not None
        span = Recorded(call, name, 0 if remote is None else remote.span_id, kind, attributes)
        call.evaluated_span = remote or span.context
        return span

    def put(self, spans: Sequence[Recorded], results: Sequence[Result], evaluated: SpanContext | None) -> None:
        """Takes what a call has recorded."""
        count = len(spans) + len(results)
        if self._taken_in - self._looked_at + count > _MAX_WAITING:
            self._providers.spans.lost(len(spans))
            self._providers.events.lost(len(results))
            return
        self._taken_in += count
        self._waiting.append((spans, results, evaluated))

    def close(self) -> None:
        """Exports what there is, within a bounded time."""
        self._ended.set()
        self._thread.join(1.0)
        self._providers.close()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._waiting:
            spans, results, evaluated = self._waiting.popleft()
            above = _NO_CONTEXT if evaluated is None else parent(evaluated)
            spans_left, results_left = len(spans), len(results)
            try:
                for span in spans:
                    self._make(span)
                    spans_left -= 1
                    time.sleep(_GIVE_WAY_S)
                for result in results:
                    self._emit(result, above)
                    results_left -= 1
                    time.sleep(_GIVE_WAY_S)
            except Exception:  # noqa: BLE001 - a trace that cannot be made must not end those of all others
                _log.exception("a trace was lost by a defect")
                self._providers.spans.lost(spans_left)
                self._providers.events.lost(results_left)
            self._looked_at += len(spans) + len(results)

    def _make(self, record: Recorded) -> None:
        self._providers.ids.give(record.call.trace_id, record.span_id)
        above = record.parent
        span = self._providers.tracer.start_span(
            record.name,
            context=_NO_CONTEXT if above is None else parent(above),
            kind=record.kind,
            attributes=record.attributes | ({ERROR_TYPE: record.error} if record.error else {}),
            links=[Link(each) for each in record.links],
            start_time=record.start_ns,
        )
        if record.error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(record.end_ns)

    def _emit(self, result: Result, evaluated: Context) -> None:
        logger, describe = self._providers.logger, self._describe
        if logger is not None and describe is not None:
            emit(logger, describe(result), evaluated)


def _valid(context: SpanContext) -> SpanContext | None:
    return context if context.is_valid else None
