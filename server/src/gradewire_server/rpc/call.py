"""One call: its method, the rights and quota of its caller, and the Prometheus metrics of calls."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from gradewire_server.domain.caller import LOCAL, Caller, Scope
from gradewire_server.domain.items import Status
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import OverloadedError, QuotaExceededError
from gradewire_server.requests.permits import SlowedMessages
from gradewire_server.rpc.errors import PermissionDeniedError
from gradewire_server.rpc.log import CallRecord
from gradewire_server.tenants.quota import text_tokens


class AdmissionTelemetry:
    """Registers the gauges; they are 0 until `expose` names an admission."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._items_in_flight = Gauge("gradewire_items_in_flight", "Items that hold a permit.", registry=registry)
        self._bytes_in_flight = Gauge(
            "gradewire_requests_in_flight_bytes", "Request bytes that hold a permit.", registry=registry
        )
        self._wait = Gauge(
            "gradewire_admission_wait_seconds",
            "What a small request would wait for now, as predicted.",
            registry=registry,
        )
        self._rate = Gauge(
            "gradewire_service_rate_tokens",
            "Tokens of text that the encoders get through in a second, as measured under load.",
            registry=registry,
        )
        self._bulk_waiting = Gauge(
            "gradewire_bulk_waiting_tokens", "Tokens of bulk work that waits for its turns.", registry=registry
        )
        self._overload = Gauge(
            "gradewire_overload_seconds",
            "How long small requests have been refused; 0 without overload.",
            registry=registry,
        )

    def expose(self, admission: Admission) -> None:
        """Shows the permits of `admission` from now on."""
        self._items_in_flight.set_function(lambda: admission.items.taken)
        self._bytes_in_flight.set_function(lambda: admission.bytes.taken)
        self._wait.set_function(lambda: admission.wait_s)
        self._rate.set_function(lambda: admission.tokens_per_s)
        self._bulk_waiting.set_function(lambda: admission.waiting_tokens)
        self._overload.set_function(lambda: admission.overload_s)


class TenantTelemetry:
    """Counts calls, text and refusals by tenant."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "gradewire_tenant_calls",
            "Calls that have ended, by tenant and gRPC code.",
            ("tenant", "code"),
            registry=registry,
        )
        self._text_tokens = Counter(
            "gradewire_tenant_text_tokens",
            "Tokens of text that a tenant's calls have sent, as quotas count them; what was refused is left out.",
            ("tenant",),
            registry=registry,
        )
        self._refusals = Counter(
            "gradewire_quota_refusals",
            "Calls that were refused because their tenant's quota of text is used up.",
            ("tenant",),
            registry=registry,
        )
        self._by_code: dict[tuple[str, str], Counter] = {}
        self._by_tenant: dict[str, Counter] = {}

    def finished(self, caller: Caller, code: str) -> None:
        """Counts a call that has ended with `code`."""
        if caller.tenant:
            counter = self._by_code.get((caller.tenant, code))
            if counter is None:
                counter = self._by_code[caller.tenant, code] = self._calls.labels(caller.tenant, code)
            counter.inc()

    def sent(self, caller: Caller, size_bytes: int) -> None:
        """Counts a message that was taken in."""
        if caller.tenant:
            counter = self._by_tenant.get(caller.tenant)
            if counter is None:
                counter = self._by_tenant[caller.tenant] = self._text_tokens.labels(caller.tenant)
            counter.inc(text_tokens(size_bytes))

    def refused(self, caller: Caller) -> None:
        """Counts a call that its tenant's quota had no room for."""
        if caller.tenant:
            self._refusals.labels(caller.tenant).inc()


_DURATION_BUCKETS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)
_LATE_BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_SIZE_BUCKETS_BYTES: Final = tuple(float(4**power) for power in range(3, 14))
"""64 B to 64 MiB."""


class MethodTelemetry:
    """The children of one method, looked up once: a call pays for counting, not for looking up labels."""

    def __init__(self, telemetry: "RpcTelemetry", method: str) -> None:
        self._calls = telemetry.calls
        self._method = method
        self._by_code: dict[str, Counter] = {}
        self.in_flight = telemetry.in_flight.labels(method)
        self._duration = telemetry.duration.labels(method)
        self._request_bytes = telemetry.request_bytes.labels(method)
        self._reply_bytes = telemetry.reply_bytes.labels(method)
        self.items = telemetry.items.labels(method)
        self.tenants = telemetry.tenants

    def finished(self, code: str, duration_s: float, exemplar: dict[str, str] | None = None) -> None:
        """Counts a call that has ended with `code`; `exemplar` leads to its trace."""
        counter = self._by_code.get(code)
        if counter is None:
            counter = self._by_code[code] = self._calls.labels(self._method, code)
        counter.inc()
        self._duration.observe(duration_s, exemplar)

    def request_message(self, size_bytes: int) -> None:
        """Counts a message that came in."""
        self._request_bytes.observe(size_bytes)

    def reply_message(self, size_bytes: int) -> None:
        """Counts a message that went out."""
        self._reply_bytes.observe(size_bytes)


class ResultTelemetry:
    """Counts results by metric and status."""

    def __init__(self, results: Counter) -> None:
        self._results = results
        self._by_kind: dict[tuple[str, Status], Counter] = {}

    def count(self, metric: str, status: Status) -> None:
        """Counts one result."""
        counter = self._by_kind.get((metric, status))
        if counter is None:
            counter = self._by_kind[metric, status] = self._results.labels(metric, status.name)
        counter.inc()


class SyntheticTelemetry:
    """Counts references by what stands for them now."""

    def __init__(self, answers: Counter) -> None:
        self._generated = answers.labels("generated")
        self._fallback = answers.labels("fallback")

    def count(self, generated: int, fallback: int) -> None:
        """Counts what has been added."""
        self._generated.inc(generated)
        self._fallback.inc(fallback)


class RpcTelemetry:
    """Registers all metrics of this room; labels are bounded: methods, codes, metrics, statuses, tenants."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "gradewire_calls", "Calls that have ended, by method and gRPC code.", ("method", "code"), registry=registry
        )
        self.duration = Histogram(
            "gradewire_call_duration_seconds",
            "Time from a call's arrival to its end.",
            ("method",),
            registry=registry,
            buckets=_DURATION_BUCKETS_S,
        )
        self.in_flight = Gauge("gradewire_calls_in_flight", "Calls being served.", ("method",), registry=registry)
        self.request_bytes = Histogram(
            "gradewire_request_message_bytes",
            "Size of messages that come in.",
            ("method",),
            registry=registry,
            buckets=_SIZE_BUCKETS_BYTES,
        )
        self.reply_bytes = Histogram(
            "gradewire_reply_message_bytes",
            "Size of messages that go out.",
            ("method",),
            registry=registry,
            buckets=_SIZE_BUCKETS_BYTES,
        )
        self.items = Counter("gradewire_items", "Items and entries that have come in.", ("method",), registry=registry)
        self.tenants = TenantTelemetry(registry)
        self._results = Counter(
            "gradewire_results", "Results by metric and status.", ("metric", "status"), registry=registry
        )
        self.results = ResultTelemetry(self._results)
        self.synthetic = SyntheticTelemetry(
            Counter(
                "gradewire_synthetic_answers",
                "Synthetic answers that calls of Prepare had a judge write, by outcome.",
                ("outcome",),
                registry=registry,
            )
        )
        self.serving = Gauge("gradewire_serving", "1 while health says SERVING, else 0.", registry=registry)
        self.degraded = Gauge(
            "gradewire_degraded", "How many things work less well than they should (see /healthz).", registry=registry
        )
        self.admission = AdmissionTelemetry(registry)
        self.log_dropped = Counter(
            "gradewire_log_records_dropped",
            "Request log records left out: too many failed calls of one kind, or writing was too slow.",
            registry=registry,
        )
        self.log_left_out = Counter(
            "gradewire_log_messages_left_out", "Messages of the server left out of a flooded log.", registry=registry
        )
        self.lost_replies = Counter(
            "gradewire_lost_replies", "Replies that had nobody to go to when gRPC took them.", registry=registry
        )
        self.gateway_restarts = Counter(
            "gradewire_gateway_restarts", "HTTP gateways that were lost and started again.", registry=registry
        )
        self.messages_shed = Counter(
            "gradewire_messages_shed", "Messages on their way that were ended for want of memory.", registry=registry
        )
        self.loop_late = Histogram(
            "gradewire_event_loop_late_seconds",
            "How late the event loop comes to what is due, looked at every 25 ms.",
            registry=registry,
            buckets=_LATE_BUCKETS_S,
        )
        Info("gradewire_build", "Version of the server.", registry=registry).info({"version": version("gradewire")})


RequestT = TypeVar("RequestT", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT]):
    """A method of a service.

    Attributes:
        name: ``gradewire.v1.Scoring/Score``.
        request_type: Message class of its requests.
        scope: What a token must be good for; None: any token will do.
        rows: Path of the items, pairs, questions or entries of a request; empty: it has none.
        metrics: Path of the metrics of a request; empty: it names none.
        judges: Path of what a judge is always asked for; empty: none is, or the metrics or `may_judge` say so.
        may_judge: Name of the field that asks a judge where it is set; empty: there is none.
        metric: Name of the one metric of all its requests; empty: there is none.
    """

    name: str
    request_type: type[RequestT]
    scope: Scope | None = None
    rows: str = ""
    metrics: str = ""
    judges: str = ""
    may_judge: str = ""
    metric: str = ""


class RpcCall:
    """One call that is being served.

    Attributes:
        record: What the log will say of it.
        telemetry: Of its method.
        deadline_s: Seconds that the caller still waits; None where it has not said.
        waited_s: Seconds that it has waited for its first step, by the loop's last round; None where none was measured.
        caller: Who calls, once that is known.
    """

    __slots__ = ("caller", "deadline_s", "record", "telemetry", "waited_s")

    def __init__(
        self,
        record: CallRecord,
        telemetry: MethodTelemetry,
        deadline_s: float | None,
        waited_s: float | None = None,
    ) -> None:
        self.record = record
        self.telemetry = telemetry
        self.deadline_s = deadline_s
        self.waited_s = waited_s
        self.caller = LOCAL

    def see(self, method: Method[Any], request: Any, context: RequestContext) -> None:
        """Count what a message of the call brings; raise PermissionDeniedError where its token asks no judge."""
        # Without rows a judge writes one text.
        count = len(attrgetter(method.rows)(request)) if method.rows else bool(method.judges)
        if count:
            self.record.items += count
            self.telemetry.items.inc(count)
        specs = attrgetter(method.metrics)(request) if method.metrics else ()
        if specs:
            self.record.metrics = [spec.WhichOneof("metric") or "?" for spec in specs]
        elif method.metric:
            self.record.metrics = [method.metric]
        if Scope.JUDGE in self.caller.scopes:
            return
        judges = method.judges or (method.may_judge and request.HasField(method.may_judge) and method.may_judge)
        for index, spec in enumerate(specs):
            name = spec.WhichOneof("metric") or ""
            if name in context.metrics and context.metrics[name].info.asks_judge:
                raise _denied(self.caller, f"{method.metrics}[{index}].{name}", Scope.JUDGE)
        if judges:
            raise _denied(self.caller, judges, Scope.JUDGE)

    def saw_request(self, size_bytes: int) -> None:
        """Notes a message that came in and was let in."""
        self.telemetry.request_message(size_bytes)
        self.telemetry.tenants.sent(self.caller, size_bytes)
        self.record.request_bytes += size_bytes

    def saw_reply(self, size_bytes: int) -> None:
        """Notes a message that goes out."""
        self.telemetry.reply_message(size_bytes)
        self.record.reply_bytes += size_bytes


def check_scope(caller: Caller, method: Method[Any]) -> None:
    """Raises PermissionDeniedError where a token is not good for a method."""
    if method.scope is not None and method.scope not in caller.scopes:
        raise _denied(caller, method.name, method.scope)


def charge(caller: Caller, size_bytes: int) -> None:
    """Draws a message from the tenant's quota; raises QuotaExceededError where too little of it is left."""
    if caller.quota is not None:
        pause_s = caller.quota.take(text_tokens(size_bytes))
        if pause_s > 0:
            raise QuotaExceededError(
                f"tenant {caller.key} has used up its quota of text (quota_tokens_per_minute); this message counts for "
                f"{text_tokens(size_bytes)} tokens",
                retry_after_s=pause_s,
            )


async def charge_stream(caller: Caller, size_bytes: int, slowed: SlowedMessages) -> None:
    """Draws a message of a stream from the tenant's quota, as soon as that has room for it.

    Args:
        caller: Of the tenant.
        size_bytes: Of the message.
        slowed: Room for messages that wait here: while they do, they take nothing of what others need.

    Raises:
        QuotaExceededError: Too many of the tenant's messages wait already, or of all tenants'.
    """
    quota, tokens = caller.quota, text_tokens(size_bytes)
    if quota is None or quota.take_in_turn(tokens):
        return
    try:
        with slowed.hold(caller.key, size_bytes):
            await quota.wait(tokens)
    except OverloadedError as error:
        raise QuotaExceededError(
            f"tenant {caller.key} has used up its quota of text (quota_tokens_per_minute), and too many messages of "
            "streams wait for it; send on fewer streams, or come back later",
            retry_after_s=error.retry_after_s,
        ) from None


def _denied(caller: Caller, what: str, scope: Scope) -> PermissionDeniedError:
    good_for = ", ".join(sorted(caller.scopes))
    return PermissionDeniedError(
        f"{what}: needs a token with the scope {scope}; this one of {caller.key} has {good_for}"
    )


def run_sized(name: str) -> Callable[[Any, Any, RpcCall], Awaitable[Message]]:
    """Run the handlers' method `name` on a request, with the deadline, the size and the caller of its call."""

    def run(handlers: Any, request: Any, call: RpcCall) -> Awaitable[Message]:
        handler: Callable[..., Awaitable[Message]] = getattr(handlers, name)
        return handler(request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller)

    return run


def run_stream(name: str) -> Callable[[Any, Any, RpcCall], AsyncGenerator[Message]]:
    """Run the handlers' method `name`, which answers with a stream, with the deadline and the caller of its call."""

    def run(handlers: Any, requests: Any, call: RpcCall) -> AsyncGenerator[Message]:
        handler: Callable[..., AsyncGenerator[Message]] = getattr(handlers, name)
        return handler(requests, deadline_s=call.deadline_s, caller=call.caller)

    return run
