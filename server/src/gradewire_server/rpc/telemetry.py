"""Prometheus metrics for calls, and snapshots of the server's load."""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache, partial
from importlib.metadata import version
from operator import attrgetter
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from gradewire_proto.v1 import monitoring_pb2
from gradewire_proto.wire_rules import MONITORING
from gradewire_server.domain.caller import Caller
from gradewire_server.domain.items import Status
from gradewire_server.requests.admission import Admission
from gradewire_server.tenants.quota import text_tokens

_DURATION_BUCKETS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)
_LATE_BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_LATENESS_EVERY_S: Final = 0.025
_SIZE_BUCKETS_BYTES: Final = tuple(float(4**power) for power in range(3, 14))
"""Buckets from 64 B to 64 MiB."""

_ADMISSION: Final = (
    ("items.taken", "gradewire_items_in_flight", "Items that hold a permit."),
    ("bytes.taken", "gradewire_requests_in_flight_bytes", "Request bytes that hold a permit."),
    ("wait_s", "gradewire_admission_wait_seconds", "Predicted wait for a small request that arrives now."),
    (
        "tokens_per_s",
        "gradewire_service_rate_tokens",
        "Tokens that the encoders compute per second, measured under load.",
    ),
    ("waiting_tokens", "gradewire_bulk_waiting_tokens", "Tokens in bulk work that waits for its turn."),
    ("overload_s", "gradewire_overload_seconds", "Time since small requests were first refused; 0 without overload."),
)
"""Attribute path, name and help text of each gauge."""

SNAPSHOT_SAMPLES: Final = (
    "gradewire_calls_total",
    "gradewire_calls_in_flight",
    "gradewire_call_duration_seconds_bucket",
    "gradewire_items_total",
    "gradewire_items_in_flight",
    "gradewire_engine_texts_total",
    "gradewire_admission_wait_seconds",
    "gradewire_overload_seconds",
    "gradewire_judge_queue_items",
    "gradewire_engine_memory_bytes",
)


class TenantTelemetry:
    """The Prometheus metrics for tenants."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        calls = counter("gradewire_tenant_calls", "Calls that have ended, by tenant and gRPC code.", ("tenant", "code"))
        tokens = counter(
            "gradewire_tenant_text_tokens",
            "Text tokens in a tenant's accepted calls, as counted for quotas.",
            ("tenant",),
        )
        refusals = counter(
            "gradewire_quota_refusals",
            "Calls that were refused because their tenant's text quota is used up.",
            ("tenant",),
        )
        self._calls, self._tokens, self._refusals = cache(calls.labels), cache(tokens.labels), cache(refusals.labels)

    def finished(self, caller: Caller, code: str) -> None:
        """Count a finished call."""
        if caller.tenant:
            self._calls(caller.tenant, code).inc()

    def sent(self, caller: Caller, size_bytes: int) -> None:
        """Count a message's text tokens, as estimated from the message's size."""
        if caller.tenant:
            self._tokens(caller.tenant).inc(text_tokens(size_bytes))

    def refused(self, caller: Caller) -> None:
        """Count a call that was refused because of the tenant's quota."""
        if caller.tenant:
            self._refusals(caller.tenant).inc()


class MethodTelemetry:
    """The Prometheus metrics for one gRPC method. `calls` returns the counter of finished calls for a gRPC code."""

    def __init__(self, telemetry: "RpcTelemetry", method: str) -> None:
        self.calls = cache(partial(telemetry.calls.labels, method))
        self.in_flight = telemetry.in_flight.labels(method)
        self.duration = telemetry.duration.labels(method)
        self.request_bytes = telemetry.request_bytes.labels(method)
        self.reply_bytes = telemetry.reply_bytes.labels(method)
        self.items = telemetry.items.labels(method)
        self.tenants = telemetry.tenants


class RpcTelemetry:
    """The Prometheus metrics for calls and admission control."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        sizes = partial(histogram, labelnames=("method",), buckets=_SIZE_BUCKETS_BYTES)
        self.calls = counter("gradewire_calls", "Calls that have ended, by method and gRPC code.", ("method", "code"))
        self.duration = histogram(
            "gradewire_call_duration_seconds",
            "Time from a call's arrival to its end.",
            ("method",),
            buckets=_DURATION_BUCKETS_S,
        )
        self.in_flight = gauge("gradewire_calls_in_flight", "Calls being served.", ("method",))
        self.request_bytes = sizes("gradewire_request_message_bytes", "Size of received messages.")
        self.reply_bytes = sizes("gradewire_reply_message_bytes", "Size of sent messages.")
        self.items = counter("gradewire_items", "Received items and entries.", ("method",))
        self.tenants = TenantTelemetry(registry)
        self.serving = gauge("gradewire_serving", "1 while the health service reports SERVING, else 0.")
        self.degraded = gauge("gradewire_degraded", "Number of current problems (see /healthz).")
        self.log_dropped = counter(
            "gradewire_log_records_dropped",
            "Dropped request log records: too many similar calls, or writing was too slow.",
        )
        self.log_left_out = counter(
            "gradewire_log_messages_left_out", "Server messages that were omitted because the log was flooded."
        )
        self.lost_replies = counter("gradewire_lost_replies", "Replies whose caller was gone when gRPC sent them.")
        self.gateway_restarts = counter("gradewire_gateway_restarts", "Restarts of a lost HTTP gateway.")
        self.messages_shed = counter(
            "gradewire_messages_shed", "Messages in transit that were dropped because memory was short."
        )
        self.loop_late = histogram(
            "gradewire_event_loop_late_seconds",
            "Delay of the event loop's timers, measured every 25 ms.",
            buckets=_LATE_BUCKETS_S,
        )
        Info("gradewire_build", "Version of the server.", registry=registry).info({"version": version("gradewire")})
        results = counter("gradewire_results", "Results by metric and status.", ("metric", "status"))
        self._results = cache(results.labels)
        self._synthetic = counter(
            "gradewire_synthetic_answers",
            "Synthetic answers that a judge wrote for Prepare calls, by outcome.",
            ("outcome",),
        )
        self.count_synthetic(0, 0)
        self._admission = {path: gauge(name, text) for path, name, text in _ADMISSION}

    def count_result(self, metric: str, status: Status) -> None:
        """Count a result."""
        self._results(metric, status.name).inc()

    def count_synthetic(self, generated: int, fallback: int) -> None:
        """Count references with a generated synthetic answer, and references that are used as synthetic answers."""
        self._synthetic.labels("generated").inc(generated)
        self._synthetic.labels("fallback").inc(fallback)

    def expose_admission(self, admission: Admission) -> None:
        """Connect the gauges to `admission`."""
        for path, gauge in self._admission.items():
            gauge.set_function(partial(attrgetter(path), admission))


async def watch_lateness(late: Callable[[float], None]) -> None:
    """Call `late` repeatedly with the event loop's delay in seconds, until cancelled."""
    while True:
        due_s = time.monotonic() + _LATENESS_EVERY_S
        await asyncio.sleep(_LATENESS_EVERY_S)
        late(max(0.0, time.monotonic() - due_s))


class Snapshots:
    """A source of load snapshots. If the server has several processes, `together` returns all their metrics."""

    def __init__(
        self,
        registry: CollectorRegistry,
        report: Callable[[], Mapping[str, Any]],
        together: Callable[[], Awaitable[list[Metric]]] | None = None,
    ) -> None:
        self._together = together
        self._registry = registry.restricted_registry(SNAPSHOT_SAMPLES)
        self._process = ProcessCollector(registry=None)
        self._report = report

    async def take(self) -> monitoring_pb2.SnapshotResponse:
        """Return the current load. Values for missing parts, for example judges, are 0."""
        if self._together is None:
            samples = _by_name([*self._registry.collect(), *self._process.collect()])
        else:
            samples = _by_name(await self._together())
        calls = samples["gradewire_calls_total"]
        bounds, counts = _buckets(samples["gradewire_call_duration_seconds_bucket"])
        report = self._report()
        return monitoring_pb2.SnapshotResponse(
            at_s=time.monotonic(),
            phase=report["phase"],
            degraded=report["degraded"],
            calls=_sum(calls),
            failed_calls=_sum(one for one in calls if one.labels["code"] != "OK"),
            calls_in_flight=_sum(samples["gradewire_calls_in_flight"]),
            items=_sum(samples["gradewire_items_total"]),
            items_in_flight=_sum(samples["gradewire_items_in_flight"]),
            latency_bounds_s=bounds,
            latency_counts=counts,
            texts_by_source={one.labels["source"]: int(one.value) for one in samples["gradewire_engine_texts_total"]},
            admission_wait_s=_number(samples["gradewire_admission_wait_seconds"]),
            overload_s=_number(samples["gradewire_overload_seconds"]),
            judge_queue_items=_sum(samples["gradewire_judge_queue_items"]),
            cache_bytes=_sum(samples["gradewire_engine_memory_bytes"]),
            resident_bytes=_sum(samples["process_resident_memory_bytes"]),
        )


def _by_name(metrics: Iterable[Metric]) -> defaultdict[str, list[Sample]]:
    """Return samples by name. Leave out the samples for snapshot calls."""
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for metric in metrics:
        for sample in metric.samples:
            if not sample.labels.get("method", "").startswith(f"{MONITORING}/"):
                found[sample.name].append(sample)
    return found


def _number(samples: Iterable[Sample]) -> float:
    return sum(sample.value for sample in samples if math.isfinite(sample.value))


def _sum(samples: Iterable[Sample]) -> int:
    return max(0, int(_number(samples)))


def _buckets(samples: Iterable[Sample]) -> tuple[list[float], list[int]]:
    """Return the finite bucket bounds and the number of calls in each bucket, for all methods together."""
    up_to: defaultdict[float, float] = defaultdict(float)
    for sample in samples:
        up_to[float(sample.labels["le"])] += sample.value
    bounds = sorted(up_to)
    counts = [
        int(up_to[bound] - up_to.get(before, 0.0)) for before, bound in zip([-1.0, *bounds], bounds, strict=False)
    ]
    return [bound for bound in bounds if math.isfinite(bound)], counts
