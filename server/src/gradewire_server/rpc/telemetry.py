"""Prometheus metrics of the calls; names are stable and stand in docs/operate/prometheus.md."""

from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from gradewire_server.domain.result import Status
from gradewire_server.requests.admission.telemetry import AdmissionTelemetry
from gradewire_server.tenants.telemetry import TenantTelemetry

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
