"""Spans and events of rewards: each caller has those of its own samples, however its calls are gathered."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.client.rewards.holding_transport import HoldingTransport
from tests.client.small_server import SmallServer

from gradewire import Status
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.rewards import FailureHandling, Gathering, RewardFailureRate, RewardSample, RewardScorer, gathering
from gradewire.transport import Endpoint

CAT = RewardSample("a cat", ["a cat"])
DOG = RewardSample("a dog", ["a cat"])
UNDECIDED = RewardSample("<think>it could be", ["a cat"])


class Event(NamedTuple):
    """What is looked at of an event; `span` is 0 where it belongs to none."""

    span: int
    item: object
    score: object
    error: object


class Application:
    """Providers of an application, which keep what they are given."""

    def __init__(self) -> None:
        self.traces, self.spans = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
        self.traces.add_span_processor(SimpleSpanProcessor(self.spans))
        self.logs, self.records = LoggerProvider(shutdown_on_exit=False), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call] # as the SDK has it
        self.logs.add_log_record_processor(SimpleLogRecordProcessor(self.records))
        self.tracer = self.traces.get_tracer("app")

    def events(self) -> list[Event]:
        """Those so far, by span and index."""
        found = []
        for each in self.records.get_finished_logs():
            said = dict(each.log_record.attributes or {})
            score, error = said.get("gen_ai.evaluation.score.value"), said.get("error.type")
            found.append(Event(each.log_record.span_id or 0, said["gradewire.item.index"], score, error))
        return sorted(found, key=lambda event: (event.span, str(event.item)))

    def parents(self, name: str) -> list[int]:
        """Span ids of the parents of the spans of that name."""
        return [
            0 if span.parent is None else span.parent.span_id
            for span in self.spans.get_finished_spans()
            if span.name == name
        ]


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    made = Application()
    monkeypatch.setattr(trace, "get_tracer", made.traces.get_tracer)
    monkeypatch.setattr("gradewire._opentelemetry.get_logger", made.logs.get_logger)
    yield made
    made.traces.shutdown()
    made.logs.shutdown()


async def in_span(application: Application, scorer: RewardScorer, name: str, *samples: RewardSample) -> int:
    """Has samples scored within a span of their own; returns the span's id."""
    with application.tracer.start_as_current_span(name) as span:
        await scorer.ascore(samples)
        return span.get_span_context().span_id


async def test_callers_who_share_a_batch_have_their_events_under_their_own_spans(
    small_server: SmallServer, application: Application
) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: False, 0)
    async with RewardScorer(transport) as scorer:
        one, other, rewards = await asyncio.gather(
            in_span(application, scorer, "one", DOG, CAT),
            in_span(application, scorer, "other", CAT),
            scorer.ascore([CAT]),  # in no span
        )

    assert transport.streams == 1
    assert rewards[0].value == 1.0
    named = {one, other}
    events = application.events()
    assert [event for event in events if event.span in named] == sorted(
        [Event(one, 0, 0.0, None), Event(one, 1, 1.0, None), Event(other, 0, 1.0, None)],
        key=lambda event: (event.span, str(event.item)),
    )
    # Whose caller has no span is no part of another caller's: its own span stands for it.
    (alone,) = (event for event in events if event.span not in named)
    (own,) = (
        span
        for span in application.spans.get_finished_spans()
        if span.name == "gradewire rewards" and span.parent is None
    )
    assert own.context is not None
    assert alone == Event(own.context.span_id, 0, 1.0, None)


async def test_every_sample_has_one_event_also_without_a_score(
    small_server: SmallServer, application: Application
) -> None:
    transport = HoldingTransport(
        GrpcTransport(Endpoint(small_server.address)), lambda item: "dog" in item.prediction, 30.0
    )
    async with RewardScorer(transport, deadline_s=0.3) as scorer:
        span = await in_span(application, scorer, "step", CAT, DOG, UNDECIDED)

    assert application.events() == [
        Event(span, 0, 1.0, None),
        Event(span, 1, None, "TIMEOUT"),
        Event(span, 2, None, "EMPTY_PREDICTION"),
    ]


async def test_a_server_that_is_away_and_a_rate_that_ends_the_run_leave_the_events(application: Application) -> None:
    failures = FailureHandling(max_failure_rate=0.1, window=32)
    async with RewardScorer("127.0.0.1:9", deadline_s=0.3, failures=failures) as scorer:
        with pytest.raises(RewardFailureRate):
            await in_span(application, scorer, "step", *[CAT] * 32)

    assert {(event.score, event.error) for event in application.events()} == {(None, "UNAVAILABLE")}
    assert len(application.events()) == 32


async def test_what_is_asked_again_has_one_event(small_server: SmallServer, application: Application) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: transport.streams == 1, 30.0)
    held = FailureHandling(policy="hold", hold_s=30)
    async with RewardScorer(transport, failures=held, deadline_s=0.2) as scorer:
        span = await in_span(application, scorer, "step", CAT)

    assert transport.streams == 2
    assert application.events() == [Event(span, 0, 1.0, None)]


async def test_a_stream_is_a_part_of_the_caller_that_opens_it(
    small_server: SmallServer, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_OPEN_S", 0.05)
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: True, 0.05)
    async with RewardScorer(transport, gathering=Gathering(max_batch=1, max_streams=1)) as scorer:
        # The second waits for the first one's stream, and is sent when that is free.
        spans = await asyncio.gather(
            in_span(application, scorer, "one", CAT), in_span(application, scorer, "other", DOG)
        )
    above = {
        span.context.span_id: span.parent.span_id
        for span in application.spans.get_finished_spans()
        if span.name == "gradewire rewards" and span.context is not None and span.parent is not None
    }

    assert transport.streams == 2
    assert [above[parent] for parent in application.parents("gradewire rewards stream")] == list(spans)


def test_blocking_calls_belong_to_the_callers_span_too(small_server: SmallServer, application: Application) -> None:
    with RewardScorer(small_server.address) as scorer, application.tracer.start_as_current_span("step") as step:
        assert scorer.score_one(CAT).status is Status.OK

    span = step.get_span_context().span_id
    assert application.parents("gradewire rewards") == [span]
    assert application.events() == [Event(span, 0, 1.0, None)]
