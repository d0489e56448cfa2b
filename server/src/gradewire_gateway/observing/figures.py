"""Figures of the gateway's requests; names are stable and stand in docs/operate/prometheus.md."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

_DURATION_BUCKETS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)
_NO_ROUTE: Final = "other"


class GatewayTelemetry:
    """Registers them in a registry of its own; labels are bounded: routes of the gateway and statuses of HTTP.

    Attributes:
        registry: What ``/metrics`` shows.
        in_flight: Requests being answered.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "gradewire_gateway_requests",
            "HTTP requests that have ended, by route and status; 499: the caller went away.",
            ("route", "status"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "gradewire_gateway_request_duration_seconds",
            "Time from a request's head to the end of its answer.",
            ("route",),
            registry=self.registry,
            buckets=_DURATION_BUCKETS_S,
        )
        self.in_flight = Gauge(
            "gradewire_gateway_requests_in_flight", "HTTP requests being answered.", registry=self.registry
        )

    def finished(self, route: str, status: int, duration_s: float, exemplar: dict[str, str] | None = None) -> None:
        """Counts a request that has ended.

        Args:
            route: Empty where the gateway has none such.
            status: Of HTTP.
            duration_s: Seconds that it took.
            exemplar: Leads to its trace; None where there is none.
        """
        self._requests.labels(route or _NO_ROUTE, str(status)).inc()
        self._duration.labels(route or _NO_ROUTE).observe(duration_s, exemplar)
